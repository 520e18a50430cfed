"""Checks a certificate file from scratch: nothing of marginlab or NumPy, only integers and Arb balls.

A file holds z_i = vec(k_i q_s(i)^T) as exact dyadics, weights p >= 0, a matrix W, claims. V = sum p_i z_i and
P = sum p_i give min_i <U, z_i> <= ||V|| / P for any U of norm 1; cos(U, separator) is at least U's margin over
the largest one. ``active-set`` adds a ball solve of G p = 1, G the Gram matrix of the support; ``exact``
adds <V, z_i> = 1 on the support and >= 1 elsewhere.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, nextafter
from operator import mul
from pathlib import Path
from typing import Any

from flint import arb, arb_mat, ctx, fmpq, fmpz_mat

SCHEMA = "marginlab-certificate/1"
MAX_BYTES, MAX_ENTRIES, MAX_BITS, MAX_EXPONENT, MAX_SUPPORT = 1 << 29, 1 << 24, 13_000, 1 << 13, 2048
DECIMAL = re.compile(r"[0-9]{1,60}(\.[0-9]{1,60})?(e-?[0-9]{1,3})?", re.ASCII)
HEAD = "{sample} constraints <W, z_i> >= 1 on {keys} x {queries} matrices (data SHA-256 {data_sha256}): "
GAP = (
    "the largest margin min_i <U, z_i> over ||U||_F = 1 lies in [{margin_lower}, {margin_upper}]; the W of "
    "this file has margin at least {achieved} and is at an angle of at most {angle} rad to the max-margin one"
)
TEXT = {
    "gap": GAP + ".",
    "active-set": GAP + ", a positive combination of exactly the {support} linearly independent constraints "
    "that have a dual weight; every other constraint has a strictly larger margin.",
    "exact": GAP + "; the largest margin squared is exactly {margin_squared}, attained by sum p_i z_i.",
    "not-separable": "no W has <W, z_i> > 0 for all i: sum p_i z_i = 0 for weights p >= 0, not all 0.",
    "norm-bound": "no U with ||U||_F = 1 has margin min_i <U, z_i> above {margin_upper}.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was proved (or ''), what failed (or None), and 1 - (margin of W) P / ||V||, rounded up."""

    accepted: bool
    statement: str
    failed_inequality: str | None
    gap: float | None = None


class _RefusedError(Exception):
    """Names what is malformed, or the inequality that fails."""


def statement(document: dict[str, Any]) -> str:
    """The sentence that a certificate's kind, sizes and claims amount to."""
    words = {name: len(document[name]["mantissa"][0]) for name in ("keys", "queries")}
    words |= {name: len(document[name]) for name in ("sample", "support")}
    text, digest = HEAD + TEXT[document["kind"]], document["data_sha256"]
    return text.format(data_sha256=digest, **words, **document["claims"])


def data_digest(document: dict[str, Any]) -> str:
    """SHA-256 of the constraints: compact JSON of [keys, queries, sample] with sorted names."""
    data = [document[name] for name in ("keys", "queries", "sample")]
    return hashlib.sha256(json.dumps(data, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _need(condition: bool, sentence: str) -> None:
    if not condition:
        raise _RefusedError(sentence)


def _integers(value: Any, name: str, low: int = -(1 << MAX_BITS), high: int = 1 << MAX_BITS) -> list[int]:
    good = isinstance(value, list) and all(type(v) is int for v in value)
    _need(good and 0 < len(value) <= MAX_ENTRIES, f"malformed: {name} must hold 1 to {MAX_ENTRIES} integers")
    _need(low <= min(value) and max(value) <= high, f"malformed: {name} has an integer out of range")
    return value


def _matrix(document: dict[str, Any], name: str) -> tuple[list[list[int]], Fraction]:
    """Rows of integers, and the power of two that they are multiples of."""
    rows = [_integers(row, name) for row in document[name]["mantissa"]]
    _need(len({len(row) for row in rows}) == 1, f"malformed: the rows of {name} must have one length")
    _need(len(rows) * len(rows[0]) <= MAX_ENTRIES, f"malformed: {name} has more than {MAX_ENTRIES} entries")
    exponent = _integers([document[name]["exponent"]], f"{name}.exponent", -MAX_EXPONENT, MAX_EXPONENT)
    return rows, Fraction(2) ** exponent[0]


def _ball(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))


def _dot(a: fmpz_mat, b: fmpz_mat) -> int:
    return sum(int(x) * int(y) for x, y in zip(a.entries(), b.entries(), strict=True))


class _Problem:
    """A certificate's numbers: z_i stands for integers times `unit`, V for integers times `scale`."""

    def __init__(self, document: dict[str, Any]) -> None:
        (self.keys, a), (queries, b) = _matrix(document, "keys"), _matrix(document, "queries")
        self.document, self.unit, self.queries = document, a * b, fmpz_mat(queries)
        self.sample = _integers(document["sample"], "sample", 0, len(queries) - 1)
        _need(len(self.sample) == len(self.keys), "malformed: sample and keys must have one length")
        _need(document["data_sha256"] == data_digest(document), "malformed: data_sha256 is not the data's")
        self.support = _integers(document["support"], "support", 0, len(self.keys) - 1)
        (weights, *rest), power = _matrix(document, "dual")
        good = self.support == sorted(set(self.support)) and not rest and min(weights) > 0
        _need(good and len(weights) == len(self.support), "malformed: support, dual: increasing, one row > 0")
        power /= _integers([document["denominator"]], "denominator", 1)[0]
        self.key_rows = [self.keys[i] for i in self.support]
        self.query_rows = fmpz_mat([queries[self.sample[i]] for i in self.support])
        self.V, self.scale = self.combination(fmpz_mat, weights), power * self.unit
        self.total, self.norm = sum(weights) * power, _dot(self.V, self.V) * self.scale**2  # P, ||V||^2

    def combination(self, kind: Any, weights: list[Any]) -> Any:
        """sum_i weights_i z_i over the support, a matrix of integers or balls."""
        weighted = [[w * v for v in row] for w, row in zip(weights, self.key_rows, strict=True)]
        return kind(weighted).transpose() * kind(self.query_rows)

    def margins(self, matrix: Any) -> list[Any]:
        """<matrix, z_i> for every i, in units of `unit`."""
        turned = (matrix * type(matrix)(self.queries.transpose())).transpose().tolist()
        return [sum(map(mul, key, turned[s])) for key, s in zip(self.keys, self.sample, strict=True)]

    def claim(self, name: str) -> Fraction:
        text = self.document["claims"][name]
        _need(isinstance(text, str) and bool(DECIMAL.fullmatch(text)), f"malformed: {name} must be a decimal")
        return Fraction(text)

    def prove_support(self) -> None:
        """G p = 1 has one solution, p > 0, and sum p_i z_i has every other margin above 1, in balls."""
        k, K, Q = len(self.support), fmpz_mat(self.key_rows), self.query_rows
        _need(k <= MAX_SUPPORT, f"malformed: support of more than {MAX_SUPPORT} constraints")
        gram = fmpz_mat(k, k, list(map(mul, (K * K.transpose()).entries(), (Q * Q.transpose()).entries())))
        fails, others = "the Gram matrix is nonsingular", set(range(len(self.keys))).difference(self.support)
        for ctx.prec in (64, 192, 576):
            try:  # p in units of unit**-2, so that the margins come out in units of 1
                p = arb_mat(gram).solve(arb_mat(k, 1, [1] * k)).entries()
            except ZeroDivisionError:  # too few bits to tell G from a singular matrix
                continue
            margins = self.margins(self.combination(arb_mat, p))
            low = [j for j in others if not margins[j] > 1]
            if all(ball > 0 for ball in p) and not low:
                return
            fails = f"margin of constraint {min(low)} > 1" if low else "the solution of G p = 1 is > 0"
        raise _RefusedError(fails)

    def prove_separator(self) -> float:
        """Check the claims about margins and angle; 1 - (margin of W) P / ||V||, rounded up."""
        (rows, scale), V, bound = _matrix(self.document, "separator"), self.V, self.norm / self.total**2
        W, shape = fmpz_mat(rows), (V.nrows(), V.ncols())
        _need((len(rows), len(rows[0])) == shape, f"malformed: separator must have shape {shape}")
        norm_W, margin_W = _dot(W, W) * scale**2, int(min(self.margins(W))) * scale * self.unit
        margins = [int(v) * self.scale * self.unit for v in self.margins(V)]
        _need(margin_W > 0 and self.norm > 0, "min_i <W, z_i> > 0 and ||sum p_i z_i|| > 0")
        of_W, of_V = margin_W**2 / norm_W, max(min(margins), Fraction(0)) ** 2 / self.norm
        _need(self.claim("achieved") ** 2 <= of_W, "achieved <= min_i <W, z_i> / ||W||")
        _need(self.claim("margin_lower") ** 2 <= max(of_W, of_V), "margin_lower <= margin of W or of V")
        cosine, ctx.prec = _dot(W, V) * scale * self.scale, 256
        angle = _ball(1 - of_W / bound).sqrt().asin()
        if cosine > 0:
            turn = _ball(1 - cosine**2 / (norm_W * self.norm)).sqrt().asin()
            angle = angle.min(turn + _ball(1 - of_V / bound).sqrt().asin())
        _need(bool(angle <= _ball(self.claim("angle"))), "angle of W to the max-margin direction <= angle")
        if self.document["kind"] == "exact":
            _need(
                {margins[i] for i in self.support} == {min(margins)} == {1},
                "<V, z_i> >= 1, = 1 on the support",
            )
            squared = "{0.numerator}/{0.denominator}".format(1 / self.total)
            _need(self.document["claims"]["margin_squared"] == squared, "margin_squared = 1 / sum p_i")
        if self.document["kind"] == "active-set":
            self.prove_support()
        root = Fraction(isqrt(int(of_W / bound * (1 << 200))), 1 << 100)  # rounded down
        return nextafter(float(1 - root), 1.0)


def verify(source: Any) -> Verdict:
    """Check a certificate, given as a path or as a parsed document; what is wrong with it is never raised."""
    precision, gap = ctx.prec, None
    try:
        if not isinstance(source, dict):
            with Path(source).open(encoding="utf-8") as file:
                text = file.read(MAX_BYTES + 1)
            _need(len(text) <= MAX_BYTES, f"malformed: a file of more than {MAX_BYTES} bytes")
            source = json.loads(text)
        _need(source["schema"] == SCHEMA, f"malformed: the schema must be {SCHEMA}")
        problem, kind = _Problem(source), source["kind"]
        upper = Fraction(0) if kind == "not-separable" else problem.claim("margin_upper")
        _need(problem.norm <= (upper * problem.total) ** 2, f"||sum p_i z_i|| <= {float(upper):.6g} sum p_i")
        if kind in ("gap", "active-set", "exact"):
            gap = problem.prove_separator()
        text = statement(source)
        _need(source["statement"] == text, "malformed: the statement is not what the claims say")
        return Verdict(accepted=True, statement=text, failed_inequality=None, gap=gap)
    except Exception as error:  # whatever a malformed file provokes is a reason to refuse it
        reason = "" if isinstance(error, _RefusedError) else f"malformed: {type(error).__name__}: "
        return Verdict(accepted=False, statement="", failed_inequality=reason + str(error))
    finally:
        ctx.prec = precision
