"""Proofs that gradient descent or flow converges from one iterate on: theorems with conditions checked in balls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from marginlab.theory.lazy import lazy_names

if TYPE_CHECKING:
    from marginlab.proofs_check.convergence.proof import ConvergenceProof as ConvergenceProof
    from marginlab.proofs_check.convergence.prover import first_proof as first_proof
    from marginlab.proofs_check.convergence.prover import prove_convergence as prove_convergence

_NAMES = {"proof": ("ConvergenceProof",), "prover": ("first_proof", "prove_convergence")}

__getattr__, __dir__ = lazy_names(
    __name__, {name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names}
)
