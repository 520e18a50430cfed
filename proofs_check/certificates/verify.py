"""Checks a certificate file from scratch: nothing of marginlab, NumPy or SciPy, only integers and Arb balls.

A certificate holds constraint vectors z_i = vec(k_i q_s(i)^T) as exact dyadic numbers, dual weights p >= 0, a
matrix W and the bounds that it claims. With V = sum p_i z_i and P = sum p_i, for every U of norm 1

    min_i <U, z_i> <= <U, V> / P <= ||V|| / P        (largest margin <= ||V|| / P)
    min_i <W, z_i> / ||W|| <= the largest margin     (and the same for V in place of W)
    cos(U, separator) >= min_i <U, z_i> / largest margin,

and each inequality is compared in integers, squared where a norm stands in it. The kind ``active-set`` adds a
ball solve of the Gram system G p = 1 of the supporting constraints; ``exact`` adds <V, z_i> = 1 on them and >= 1
elsewhere; ``not-separable`` is V = 0 < P; ``norm-bound`` is ||V|| <= r P.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, nextafter
from typing import Any

from flint import arb, arb_mat, ctx, fmpq, fmpz_mat

SCHEMA = "marginlab-certificate/1"
KINDS = ("active-set", "gap", "exact", "not-separable", "norm-bound")
MAX_BYTES, MAX_ENTRIES, MAX_BITS, MAX_EXPONENT, MAX_SUPPORT = 1 << 29, 1 << 24, 13_000, 1 << 13, 2048
DECIMAL = re.compile(r"[0-9]{1,60}(\.[0-9]{1,60})?(e-?[0-9]{1,3})?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """accepted; the statement that was proved ('' if none); what failed (None if nothing); the recomputed gap.

    `gap` is 1 - (margin of W) / (||V|| / P), rounded up, for the kinds that have a separator.
    """

    accepted: bool
    statement: str
    failed_inequality: str | None
    gap: float | None = None


class _RefusedError(Exception):
    """The sentence that names what is malformed, or the inequality that fails."""


def _need(condition: bool, sentence: str) -> None:
    if not condition:
        raise _RefusedError(sentence)


def statement(document: dict[str, Any]) -> str:
    """The sentence that a certificate's kind, sizes and claims amount to."""
    claims, kind, support = document["claims"], document["kind"], len(document["dual"]["index"])
    keys, queries = document["keys"]["mantissa"], document["queries"]["mantissa"]
    head = (
        f"{len(keys)} constraints <W, z_i> >= 1 on {len(keys[0])} x {len(queries[0])} matrices "
        f"(data SHA-256 {document['data_sha256']}): "
    )
    if kind == "not-separable":
        return (
            head
            + "no W has <W, z_i> > 0 for all i, since sum p_i z_i = 0 exactly for weights p >= 0, not all 0."
        )
    if kind == "norm-bound":
        upper = claims["margin_upper"]
        return head + f"no U of Frobenius norm 1 has margin min_i <U, z_i> above {upper}."
    body = (
        f"the largest margin min_i <U, z_i> over ||U||_F = 1 lies in [{claims['margin_lower']}, "
        f"{claims['margin_upper']}]; the W of this file has margin at least {claims['achieved']} and makes an "
        f"angle of at most {claims['angle']} rad with the unique max-margin direction"
    )
    if kind == "active-set":
        body += (
            f", which is a positive combination of exactly the {support} linearly independent constraints that "
            "have a dual weight; every other constraint has a strictly larger margin"
        )
    if kind == "exact":
        body += f"; the largest margin squared is exactly {claims['margin_squared']}, attained by sum p_i z_i"
    return head + body + "."


def data_digest(document: dict[str, Any]) -> str:
    """SHA-256 of the constraints: compact JSON of [keys, queries, sample] with sorted names."""
    data = [document[name] for name in ("keys", "queries", "sample")]
    return hashlib.sha256(json.dumps(data, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    _need(len({name for name, _ in pairs}) == len(pairs), "malformed: a name stands twice in one object")
    return dict(pairs)


def _load(source: Any) -> dict[str, Any]:
    if not isinstance(source, dict):
        _need(os.path.getsize(source) <= MAX_BYTES, f"malformed: the file is larger than {MAX_BYTES} bytes")
        with open(source, encoding="utf-8") as file:
            source = json.load(file, object_pairs_hook=_unique)
    _need(isinstance(source, dict), "malformed: a certificate is a JSON object")
    _need(source.get("schema") == SCHEMA, f"malformed: the schema must be {SCHEMA}")
    _need(source.get("kind") in KINDS, f"malformed: the kind must be one of {', '.join(KINDS)}")
    return source


def _integer(value: Any, name: str, low: int | None = None, high: int | None = None) -> int:
    _need(type(value) is int, f"malformed: {name} must hold integers")
    _need(value.bit_length() <= MAX_BITS, f"malformed: {name} has an integer of more than {MAX_BITS} bits")
    _need(low is None or value >= low, f"malformed: {name} must be at least {low}")
    _need(high is None or value <= high, f"malformed: {name} must be at most {high}")
    return value


def _exponent(block: Any, name: str) -> int:
    _need(isinstance(block, dict), f"malformed: {name} must be an object")
    return _integer(block.get("exponent"), f"{name}.exponent", -MAX_EXPONENT, MAX_EXPONENT)


def _list(value: Any, name: str) -> list[Any]:
    _need(
        isinstance(value, list) and 0 < len(value) <= MAX_ENTRIES,
        f"malformed: {name} must be a list, not empty",
    )
    return value


def _matrix(document: dict[str, Any], name: str) -> tuple[list[list[int]], int]:
    exponent = _exponent(document.get(name), name)
    rows = [_list(row, name) for row in _list(document[name].get("mantissa"), name)]
    _need(len({len(row) for row in rows}) == 1, f"malformed: the rows of {name} must have one length")
    _need(len(rows) * len(rows[0]) <= MAX_ENTRIES, f"malformed: {name} has more than {MAX_ENTRIES} entries")
    return [[_integer(v, name) for v in row] for row in rows], exponent


def _claim(document: dict[str, Any], name: str) -> Fraction:
    text = document["claims"].get(name)
    _need(
        isinstance(text, str) and bool(DECIMAL.fullmatch(text)), f"malformed: claim {name} must be a decimal"
    )
    return Fraction(text)


def _arcsine(square: Fraction) -> arb:
    return arb(fmpq(square.numerator, square.denominator)).sqrt().asin()


class _Problem:
    """Constraints and dual weights in integers: a value stands for integer * 2**exponent / denominator."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.keys, e_keys = _matrix(document, "keys")
        self.queries, e_queries = _matrix(document, "queries")
        self.unit = e_keys + e_queries  # exponent of the entries of z_i
        sample, n = _list(document.get("sample"), "sample"), len(self.queries)
        self.sample = [_integer(s, "sample", 0, n - 1) for s in sample]
        _need(len(self.sample) == len(self.keys), "malformed: sample and keys must have one length")
        self.digest = data_digest(document)
        _need(document.get("data_sha256") == self.digest, "malformed: data_sha256 is not that of the data")
        dual = document.get("dual")
        self.exponent = _exponent(dual, "dual")
        self.denominator = _integer(dual.get("denominator"), "dual.denominator", 1)
        self.index = [
            _integer(i, "dual.index", 0, len(self.keys) - 1) for i in _list(dual.get("index"), "dual")
        ]
        _need(all(a < b for a, b in zip(self.index, self.index[1:])), "malformed: dual.index must increase")
        self.weights = [_integer(w, "dual.mantissa", 1) for w in _list(dual.get("mantissa"), "dual")]
        _need(
            len(self.index) == len(self.weights),
            "malformed: dual.index and dual.mantissa must have one length",
        )
        self.total = sum(self.weights) * Fraction(2) ** self.exponent / self.denominator  # P
        sums: dict[int, list[int]] = {}
        for i, w in zip(self.index, self.weights):
            row = sums.setdefault(self.sample[i], [0] * len(self.keys[0]))
            row[:] = [a + w * b for a, b in zip(row, self.keys[i])]
        self.V = fmpz_mat(list(sums.values())).transpose() * fmpz_mat([self.queries[s] for s in sums])
        self.V_scale = Fraction(2) ** (self.exponent + self.unit) / self.denominator

    def margins(self, matrix: fmpz_mat) -> list[int]:
        """<matrix, z_i> for every i, in units of 2**unit."""
        rows: dict[int, list[int]] = {}
        for i, s in enumerate(self.sample):
            rows.setdefault(s, []).append(i)
        values = [0] * len(self.sample)
        for s, group in rows.items():
            turned = matrix * fmpz_mat([[v] for v in self.queries[s]])
            for i, value in zip(group, (fmpz_mat([self.keys[i] for i in group]) * turned).entries()):
                values[i] = int(value)
        return values

    def prove_support(self, margins: list[Fraction]) -> None:
        """G p = 1 has one solution, p > 0, and its combination has every other margin above 1.

        With r = 1 - <V, z_i> on the support: ||W* - V||^2 = (p* - p)^T r, and margins differ by that times ||z_j||.
        """
        _need(len(self.index) <= MAX_SUPPORT, f"malformed: more than {MAX_SUPPORT} supporting constraints")
        where = [self.sample[i] for i in self.index]
        K, Q = fmpz_mat([self.keys[i] for i in self.index]), fmpz_mat(self.queries)
        inner, gram = (Q * Q.transpose()).tolist(), (K * K.transpose()).tolist()
        gram = fmpz_mat([[g * inner[s][t] for g, t in zip(row, where)] for row, s in zip(gram, where)])
        weight_scale = Fraction(2) ** self.exponent / self.denominator
        for ctx.prec in (64, 128, 256, 512, 1024):
            try:
                p = arb_mat(gram).solve(arb_mat(len(where), 1, [1] * len(where))).entries()
            except ZeroDivisionError:
                continue
            if all(ball > 0 for ball in p):
                break
        else:
            raise _RefusedError("the dual weights of the supporting constraints are positive and unique")
        ctx.prec = max(ctx.prec, 128)
        off = arb(0)
        for ball, w, i in zip(p, self.weights, self.index):
            stored = w * weight_scale * Fraction(4) ** self.unit  # in the units of the integer Gram matrix
            r = abs(1 - margins[i])
            off += abs(ball - fmpq(stored.numerator, stored.denominator)) * fmpq(r.numerator, r.denominator)
        man, exp = off.abs_upper().man_exp()
        squared = int(man) * Fraction(2) ** int(exp) / Fraction(4) ** self.unit  # >= ||W* - V||^2
        lengths = [sum(v * v for v in q) for q in self.queries]
        support = set(self.index)
        for j, margin in enumerate(margins):
            if j not in support:
                size = sum(v * v for v in self.keys[j]) * lengths[self.sample[j]] * Fraction(4) ** self.unit
                _need(margin > 1 and (margin - 1) ** 2 > squared * size, f"margin of constraint {j} > 1")


def _check(document: dict[str, Any]) -> Verdict:
    _need(isinstance(document.get("claims"), dict), "malformed: claims must be an object")
    problem, kind = _Problem(document), document["kind"]
    total, norm_V = problem.total, sum(int(v) ** 2 for v in problem.V.entries()) * problem.V_scale**2
    gap = None
    if kind == "not-separable":
        _need(norm_V == 0, "sum p_i z_i = 0")
    else:
        upper = _claim(document, "margin_upper")
        _need(norm_V <= (upper * total) ** 2, "||sum p_i z_i|| / sum p_i <= margin_upper")
    if kind in ("active-set", "gap", "exact"):
        gap = _check_separator(document, problem, norm_V)
    _need(
        document.get("statement") == statement(document),
        "malformed: the statement is not what the claims say",
    )
    return Verdict(accepted=True, statement=document["statement"], failed_inequality=None, gap=gap)


def _check_separator(document: dict[str, Any], problem: _Problem, norm_V: Fraction) -> float:
    rows, exponent = _matrix(document, "separator")
    shape = (len(problem.keys[0]), len(problem.queries[0]))
    _need((len(rows), len(rows[0])) == shape, f"malformed: separator must have shape {shape}")
    W, scale = fmpz_mat(rows), Fraction(2) ** exponent
    _need(norm_V > 0, "sum p_i z_i is not zero")
    norm_W = sum(int(v) ** 2 for v in W.entries()) * scale**2
    margin_W = min(problem.margins(W)) * scale * Fraction(2) ** problem.unit
    margins = [v * problem.V_scale * Fraction(2) ** problem.unit for v in problem.margins(problem.V)]
    margin_V, best = min(margins), norm_V / problem.total**2  # best: the upper bound of the margin, squared
    _need(margin_W > 0, "min_i <W, z_i> > 0")
    lower_W, lower_V = margin_W**2 / norm_W, max(margin_V, Fraction(0)) ** 2 / norm_V
    _need(_claim(document, "achieved") ** 2 <= lower_W, "achieved <= min_i <W, z_i> / ||W||")
    _need(
        _claim(document, "margin_lower") ** 2 <= max(lower_W, lower_V), "margin_lower <= the margin of W or V"
    )
    inner = sum(int(a) * int(b) for a, b in zip(W.entries(), problem.V.entries())) * scale * problem.V_scale
    ctx.prec = 256
    claimed, angle = _claim(document, "angle"), _arcsine(1 - lower_W / best)
    if inner > 0:
        angle = angle.min(_arcsine(1 - inner**2 / (norm_W * norm_V)) + _arcsine(1 - lower_V / best))
    _need(bool(angle <= fmpq(claimed.numerator, claimed.denominator)), "angle of W to the separator <= angle")
    if document["kind"] == "exact":
        _need(all(margins[i] == 1 for i in problem.index), "<V, z_i> = 1 on the support")
        _need(margin_V == 1, "<V, z_i> >= 1 for all i")
        squared = 1 / problem.total
        text = f"{squared.numerator}/{squared.denominator}"
        _need(document["claims"].get("margin_squared") == text, "margin_squared = 1 / sum p_i")
    if document["kind"] == "active-set":
        problem.prove_support(margins)
    ratio = lower_W / best  # in (0, 1]; its root rounded down to 2**-100, and the gap up by one float
    return nextafter(float(1 - Fraction(isqrt((ratio.numerator << 200) // ratio.denominator), 1 << 100)), 1.0)


def verify(source: Any) -> Verdict:
    """Check a certificate, given as a path or as a parsed document; never raises on a bad one.

    Returns
    -------
    Verdict
        Accepted with the statement, or refused with the first inequality (or rule of the format) that fails.
    """
    precision = ctx.prec
    try:
        return _check(_load(source))
    except _RefusedError as refused:
        return Verdict(accepted=False, statement="", failed_inequality=str(refused))
    except (OSError, ValueError, TypeError, KeyError, RecursionError, MemoryError, OverflowError) as error:
        return Verdict(accepted=False, statement="", failed_inequality=f"malformed: {error}")
    finally:
        ctx.prec = precision
