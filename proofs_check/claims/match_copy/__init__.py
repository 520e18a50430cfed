"""Claims of Gaussian match-and-copy (Gonon, Cordonnier, Boumal, arXiv 2602.07562v1)."""

from marginlab.proofs_check.claims.match_copy import asymptotics, numerics, rivals, separators

#: In the order of reports; each module lists its own.
CLAIMS = tuple(claim for module in (separators, numerics, asymptotics, rivals) for claim in module.CLAIMS)
