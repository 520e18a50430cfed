"""The certificate file: data, weights and claims as exact integers and decimals.

Layout (JSON, schema ``marginlab-certificate/1``)::

    schema, kind, statement, data_sha256
    keys, queries   {"exponent": e, "mantissa": [[integer]]}: entries mantissa * 2**e; a dense (N, D) problem
                    has its rows as keys and the one query (1)
    sample          [index of a query] for each constraint: z_i = vec(keys[i] queries[sample[i]]^T)
    separator       W, as keys (absent if nothing separates)
    support         [index of a constraint with a dual weight], increasing
    dual            {"exponent": e, "mantissa": [[integer > 0]]}, one row, and
    denominator     integer >= 1: p_i = mantissa * 2**e / denominator
    claims          decimals as strings (margin_lower, margin_upper, achieved, angle), margin_squared "a/b"
"""

from __future__ import annotations

from typing import Any

import numpy as np

from marginlab.proofs_check.certificates.dyadic import Integers, common_exponent, decimal, integers
from marginlab.proofs_check.certificates.errors import CertificateError
from marginlab.proofs_check.certificates.problem import lifted
from marginlab.proofs_check.certificates.sandwich import Sandwich
from marginlab.proofs_check.certificates.verify import MAX_BITS, MAX_EXPONENT, SCHEMA, data_digest, statement
from marginlab.theory.constraints import RankOneConstraints
from marginlab.theory.validation import Float, Int

#: Digits of an angle: its bound is not tight to more.
ANGLE_DIGITS = 6


def block(array: Float) -> dict[str, Any]:
    """A matrix as integers times one power of two."""
    exponent = common_exponent(array)
    return {"exponent": exponent, "mantissa": integers(array, exponent).tolist()}


def dual_block(rows: Int, weights: Integers, exponent: int, denominator: int = 1) -> dict[str, Any]:
    """Positive weights p_i = weights_i 2**exponent / denominator on `rows`, in increasing order of rows.

    Raises
    ------
    CertificateError
        Numbers beyond what the file format allows.
    """
    entries = sorted((int(i), int(w)) for i, w in zip(rows, weights, strict=True) if w)
    zeros = min((w & -w).bit_length() - 1 for _, w in entries)
    longest = max(max(w.bit_length() for _, w in entries) - zeros, denominator.bit_length())
    if longest > MAX_BITS or abs(exponent + zeros) > MAX_EXPONENT:
        raise CertificateError(
            f"a certificate file holds integers of at most {MAX_BITS} bits and exponents within +-{MAX_EXPONENT}, "
            f"the dual weights need {longest} bits and exponent {exponent + zeros}."
        )
    return {
        "support": [i for i, _ in entries],
        "dual": {"exponent": exponent + zeros, "mantissa": [[w >> zeros for _, w in entries]]},
        "denominator": denominator,
    }


def unscaled_weights(weights: Integers, exponent: int, bits: Int, shift: int) -> tuple[Integers, int]:
    """Weights of the data's own units from those of the scaled problem: p_i = 2**(bits_i - 2 shift) p'_i."""
    low = int(bits.min())
    plain = [w << (b - low) for w, b in zip(weights.tolist(), bits.tolist(), strict=True)]
    return np.array(plain, dtype=np.object_), exponent - 2 * shift + low


def claims_of(bounds: Sandwich) -> dict[str, str]:
    """The bounds as decimals, rounded outward."""
    return {
        "margin_lower": decimal(bounds.lower, up=False),
        "margin_upper": decimal(bounds.upper, up=True),
        "achieved": decimal(bounds.achieved, up=False),
        "angle": decimal(bounds.angle, up=True, digits=ANGLE_DIGITS),
    }


def document_of(
    kind: str,
    constraints: Float | RankOneConstraints,
    weights: dict[str, Any],
    claims: dict[str, str],
    W: Float | None = None,
) -> dict[str, Any]:
    """The whole file of one certificate."""
    data = lifted(constraints)
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "kind": kind,
        "keys": block(data.key_diffs),
        "queries": block(data.queries),
        "sample": data.sample.tolist(),
        **weights,
        "claims": claims,
    }
    if W is not None:
        document["separator"] = block(W.reshape(data.shape))
    document["data_sha256"] = data_digest(document)
    document["statement"] = statement(document)
    return document
