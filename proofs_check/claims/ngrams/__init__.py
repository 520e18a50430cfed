"""Claims on n-gram induction heads (D'Angelo, Yuksel, Narashiman, Flammarion, arXiv 2607.02800)."""

from __future__ import annotations

from marginlab.proofs_check.engine.claim import Claim

CLAIMS: tuple[Claim, ...] = ()
