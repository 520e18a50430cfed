"""Rigorous certificates: separators enclosed in exact and ball arithmetic, and the files that show it.

The checker of these files is the module `marginlab.proofs_check.certificates.verify`, which shares no code
with what stands here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from marginlab.proofs_check.certificates.certificate import Certificate, NonSeparableCertificate
    from marginlab.proofs_check.certificates.cosines import CosineEnclosure, alignment
    from marginlab.proofs_check.certificates.errors import CertificateError
    from marginlab.proofs_check.certificates.nonseparable import certify_non_separable
    from marginlab.proofs_check.certificates.rigorous import certify

_HOMES = {
    "Certificate": "certificate",
    "CertificateError": "errors",
    "CosineEnclosure": "cosines",
    "NonSeparableCertificate": "certificate",
    "alignment": "cosines",
    "certify": "rigorous",
    "certify_non_separable": "nonseparable",
}

__all__ = [
    "Certificate",
    "CertificateError",
    "CosineEnclosure",
    "NonSeparableCertificate",
    "alignment",
    "certify",
    "certify_non_separable",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
