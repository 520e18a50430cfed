"""The claims of the package: each becomes one test item, and one for each of its controls."""

from marginlab.proofs_check.claims.ngrams import CLAIMS as CLAIMS
