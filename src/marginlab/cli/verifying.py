"""``marginlab verify``: certificate files against the independent verifier."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from marginlab.theory.errors import InvalidInput


def verify_files(paths: Sequence[Path]) -> int:
    """Print what each certificate proves or why it is rejected; 0 if all are accepted, else 1.

    Raises
    ------
    InvalidInput
        A path that is no file.
    """
    from marginlab.proofs_check.certificates import verify, verify_convergence

    for path in paths:
        if not path.is_file():
            raise InvalidInput(f"a certificate is a file, got '{path}'.")
    console = Console(highlight=False, markup=False, soft_wrap=True)
    accepted = True
    for path in paths:
        verdict = (verify_convergence if _is_convergence(path) else verify).verify(path)
        accepted &= verdict.accepted
        if verdict.accepted:
            console.print(f"accepted {path}: {verdict.statement}")
        else:
            console.print(f"REJECTED {path}: {verdict.failed_inequality}")
    return 0 if accepted else 1


def _is_convergence(path: Path) -> bool:
    """Whether the file says that it is a proof of convergence; what is malformed goes to the other verifier."""
    from marginlab.proofs_check.certificates.verify import read
    from marginlab.proofs_check.certificates.verify_convergence import SCHEMA

    try:
        return read(path)["schema"] == SCHEMA
    except Exception:  # whatever a malformed file provokes: the verifier says what is wrong with it
        return False
