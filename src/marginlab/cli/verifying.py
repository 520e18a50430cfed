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
    from marginlab.proofs_check.certificates.verify import verify

    for path in paths:
        if not path.is_file():
            raise InvalidInput(f"a certificate is a file, got '{path}'.")
    console = Console(highlight=False, markup=False, soft_wrap=True)
    accepted = True
    for path in paths:
        verdict = verify(path)
        accepted &= verdict.accepted
        if verdict.accepted:
            console.print(f"accepted {path}: {verdict.statement}")
        else:
            console.print(f"REJECTED {path}: {verdict.failed_inequality}")
    return 0 if accepted else 1
