"""The certificate file of a proof of convergence: exact data, witnesses, and claims as decimals rounded outward.

Layout (JSON, schema ``marginlab-convergence/1``)::

    schema, kind, statement, data_sha256
    keys, values    {"exponent": e, "mantissa": [[integer]]}: rows mantissa * 2**e, sample by sample, K each
    queries, W      the same, one row a sample, and (d, d)
    match           [index of the selected key]
    step            one number, as a matrix (1, 1); null for gradient flow
    separator, dual a feasible W and weights >= 0 of the constraints, one row (kinds that speak of a separator)
    normals         one row a sample (kinds that rest on A3)
    claims          decimals as strings; each is checked as the bound that the statement needs
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from marginlab.proofs_check.certificates.document import block
from marginlab.proofs_check.certificates.dyadic import decimal, fraction_of_arb
from marginlab.proofs_check.certificates.verify_convergence import (
    CLAIMS,
    SCHEMA,
    SEPARATED,
    data_digest,
    statement,
)
from marginlab.proofs_check.convergence.geometry import Geometry
from marginlab.theory.validation import Float

#: Which constant, and which end of it, each claim states.
_ENDS = {
    "loss": ("loss", True),
    "loss_lower": ("loss", False),
    "rate": ("rate", False),
    "rate_upper": ("rate_upper", True),
    "squared_gradients": ("squared_gradients", True),
    "norm_lower": ("separator_norm", False),
    "norm_upper": ("separator_norm", True),
    "share": ("share", False),
    "margin": ("margin", False),
    "direction": ("direction", True),
    "excess": ("excess", True),
}


def ends(value: Any) -> tuple[Fraction, Fraction]:
    """Exact ends of a ball, or of the interval between two balls."""
    low, high = value if isinstance(value, tuple) else (value, value)
    return fraction_of_arb(low.lower()), fraction_of_arb(high.upper())


def document_of(
    kind: str, geometry: Geometry, W: Float, step: float | None, constants: dict[str, Any]
) -> dict[str, Any]:
    """The file of a proof of this kind."""
    problem = geometry.problem
    n, K, d, d_v = problem.shape
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "kind": kind,
        "keys": block(problem.keys.reshape(n * K, d)),
        "values": block(problem.values.reshape(n * K, d_v)),
        "queries": block(problem.queries),
        "match": problem.match.tolist(),
        "W": block(W),
        "step": None if step is None else block(np.array([[step]])),
    }
    if kind in SEPARATED:
        assert not isinstance(geometry.separator, str)
        document["separator"] = block(geometry.separator.W)
        document["dual"] = block(np.maximum(geometry.separator.dual, 0.0)[None])
    if kind.startswith("identifiable"):
        document["normals"] = block(geometry.normals)
    document["claims"] = {name: _stated(constants, *_ENDS[name]) for name in CLAIMS[kind]}
    document["data_sha256"] = data_digest(document)
    return document | {"statement": statement(document)}


def _stated(constants: dict[str, Any], name: str, up: bool) -> str:
    value = ends(constants[name])[up]
    return decimal(value, up=up) if value >= 0 else "-" + decimal(-value, up=not up)
