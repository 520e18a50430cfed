"""What a run depends on beside its configuration: versions, BLAS, threads, processor, revision."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from marginlab.theory.errors import MarginlabError

_PACKAGES = (
    "numpy",
    "scipy",
    "torch",
    "numba",
    "cvxpy",
    "clarabel",
    "daqp",
    "python-flint",
    "joblib",
    "pytest",
)


class SubnormalsFlushed(MarginlabError):
    """This process rounds subnormal numbers to zero, so float64 does not mean what the claims assume."""


def flushes_to_zero() -> bool:
    """Whether subnormal float64 numbers are rounded to zero in this process."""
    import numpy as np

    # By bit patterns: a literal is folded when the file is compiled, and comparisons flush as well.
    subnormal = np.array([2, 2**14], dtype=np.uint64).view(np.float64)  # 2^-1073 and 2^-1060
    product = (subnormal * np.array([1.0, 0.5])).view(np.uint64)
    return product.tolist() != [2, 2**13]


def require_gradual_underflow() -> None:
    """Refuse to judge anything while subnormals are flushed.

    Raises
    ------
    SubnormalsFlushed
        Some imported library has set the processor's flush-to-zero mode.
    """
    if flushes_to_zero():
        raise SubnormalsFlushed(
            "this process rounds subnormal numbers to zero (a library set flush-to-zero, often by "
            "-ffast-math): claims are not judged under changed float64 semantics."
        )


def environment() -> dict[str, Any]:
    """JSON-able record of the environment, for the report."""
    from threadpoolctl import threadpool_info

    libraries = [
        {k: info.get(k) for k in ("user_api", "internal_api", "version", "num_threads", "architecture")}
        for info in threadpool_info()
    ]
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "versions": {name: found for name in _PACKAGES if (found := _version(name))},
        "blas": libraries,
        "threads": 1,
        "flush_to_zero": flushes_to_zero(),
        "git": _revision(),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _revision() -> dict[str, Any]:
    """Revision of the checkout that holds this file; nulls for an installed wheel."""

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(Path(__file__).resolve().parent), *arguments],
                capture_output=True,
                text=True,
                timeout=10,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout.strip()

    if not git("ls-files", "--error-unmatch", str(Path(__file__).resolve())):
        return {"revision": None, "dirty": None}  # a wheel inside somebody else's checkout
    status = git("status", "--porcelain", "--untracked-files=no")
    return {"revision": git("rev-parse", "HEAD"), "dirty": None if status is None else bool(status)}
