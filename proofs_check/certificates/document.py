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

import hashlib
import json
from typing import Any

import numpy as np

from marginlab.proofs_check.certificates.dyadic import Integers, common_exponent, decimal, integers
from marginlab.proofs_check.certificates.errors import CertificateError
from marginlab.proofs_check.certificates.problem import lifted
from marginlab.proofs_check.certificates.sandwich import Sandwich
from marginlab.proofs_check.certificates.verify import (
    MAX_BITS,
    MAX_BYTES,
    MAX_ENTRIES,
    MAX_EXPONENT,
    MAX_STORE,
    MAX_WORK,
    burden,
)
from marginlab.theory.constraints import RankOneConstraints
from marginlab.theory.validation import Float, Int

SCHEMA = "marginlab-certificate/1"

#: Entries up to which an array's common exponent is found before its length is estimated: a hundredth of a second.
SEARCHED = 1 << 20

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
    document["data_sha256"] = _digest(document)
    document["statement"] = _sentence(document, data.shape)
    return document


def _digest(document: dict[str, Any]) -> str:
    """SHA-256 of [keys, queries, sample] as compact JSON, the names in alphabetical order."""
    keys, queries, sample = (
        json.dumps(part, separators=(",", ":"), sort_keys=True)
        for part in (document["keys"], document["queries"], document["sample"])
    )
    return hashlib.sha256(f"[{keys},{queries},{sample}]".encode()).hexdigest()


def _sentence(document: dict[str, Any], shape: tuple[int, int]) -> str:
    """What the certificate proves, in words of our own: the checker words it again, from its own numbers."""
    kind, claims = document["kind"], document["claims"]
    about = (
        f"{len(document['sample'])} constraints <W, z_i> >= 1 on {shape[0]} x {shape[1]} matrices "
        f"(data SHA-256 {document['data_sha256']}): "
    )
    if kind == "not-separable":
        return about + "no W has <W, z_i> > 0 for all i: sum p_i z_i = 0 for weights p >= 0, not all 0."
    if kind == "norm-bound":
        return about + f"no U with ||U||_F = 1 has margin min_i <U, z_i> above {claims['margin_upper']}."
    bounds = (
        f"the largest margin min_i <U, z_i> over ||U||_F = 1 lies in [{claims['margin_lower']}, "
        f"{claims['margin_upper']}]; the W of this file has margin at least {claims['achieved']} and is at an "
        f"angle of at most {claims['angle']} rad to the max-margin one"
    )
    if kind == "exact":
        square = claims["margin_squared"]
        return f"{about}{bounds}; the largest margin squared is exactly {square}, attained by sum p_i z_i."
    if kind == "active-set":
        return (
            f"{about}{bounds}, a positive combination of exactly the {len(document['support'])} linearly "
            "independent constraints that have a dual weight; every other constraint has a strictly larger margin."
        )
    return f"{about}{bounds}."


def _length(array: Float) -> tuple[int, float]:
    """Upper bounds of the bits of the longest integer of `block(array)`, and of the block's characters.

    An integer |a| 2**-e has at most log2|a| + 1 - e bits, and e is no more than 53 below the exponent of the
    smallest entry; the mean of log2|a| is at most log2 of the mean. Large arrays are not searched for an e that
    trailing zeros would allow.
    """
    size = np.abs(array)
    count = int(np.count_nonzero(size))
    if count == 0:
        return 0, 4.0 * array.size
    least = size.min() if count == size.size else size[size > 0].min()
    exponent = int(np.frexp(least)[1]) - 53 if size.size > SEARCHED else common_exponent(array)
    longest = int(np.frexp(size.max())[1]) - exponent
    top = np.ldexp(size.max(), -1000)  # the sum of entries near 2**1024 would overflow
    mean = int(np.frexp(size.sum() / count if top < 1 else size.max())[1]) - exponent
    return (
        longest,
        mean * 0.30103 * count + 4.0 * size.size,
    )  # log10(2) digits a bit; sign, comma, rounding up


def too_much(
    constraints: Float | RankOneConstraints, weights: dict[str, Any], W: Float | None, rungs: int
) -> str | None:
    """Which of the checker's limits a file with these contents exceeds, as a sentence; None if it keeps them all.

    Parameters
    ----------
    rungs : int
        The checker's first precisions that it may have to go through for a Gram system; 0 for no system.
    """
    data = lifted(constraints)
    arrays = [data.key_diffs, data.queries, *([] if W is None else [W.reshape(data.shape)])]
    lengths, characters = zip(*map(_length, arrays), strict=True)
    integers_of_dual = weights["dual"]["mantissa"][0]
    dual_bits = max(map(int.bit_length, integers_of_dual))
    total = sum(characters) + len(integers_of_dual) * (dual_bits * 0.30103 + 12) + 9 * len(data) + 10_000
    if max(*(a.size for a in arrays), len(data)) > MAX_ENTRIES or total > MAX_BYTES:
        return (
            f"a certificate file holds at most {MAX_ENTRIES} numbers in one array and {MAX_BYTES} bytes, "
            f"got {max(a.size for a in arrays)} and some {total:.3g}."
        )
    # integers of `bits` in all the products, as the checker counts them
    bits = 64 + 2 * (sum(lengths) + dual_bits)
    work, store = burden(rungs, len(data), len(data.queries), *data.shape, len(integers_of_dual), bits)
    if work > MAX_WORK or store > MAX_STORE:
        return (
            f"a certificate must take at most {MAX_WORK} word operations to check and {MAX_STORE} bits for one "
            f"matrix, got {work} and {store}."
        )
    return None
