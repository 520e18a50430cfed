"""The claims of the package: each becomes one test item, and one for each of its controls."""

from marginlab.proofs_check.claims.match_copy import CLAIMS as CLAIMS
