"""Checks a certificate file from scratch: nothing of marginlab or NumPy, only integers and Arb balls.

A file holds z_i = vec(k_i q_s(i)^T) as exact dyadics, weights p >= 0, a matrix W, claims. V = sum p_i z_i and
P = sum p_i give min_i <U, z_i> <= ||V|| / P for any U of norm 1; cos(U, separator) is at least U's margin over
the largest one. ``active-set`` adds a ball solve of G p = 1, ``exact`` <V, z_i> = 1 on the support, >= 1 elsewhere.
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
MAX_BYTES, MAX_ENTRIES, MAX_BITS, MAX_EXPONENT = 1 << 29, 1 << 24, 13_000, 1 << 13
MAX_WORK, MAX_STORE, PRECISIONS = 1 << 36, 1 << 32, (64, 192, 576, 1728)  # see `burden`
DECIMAL = re.compile(r"[0-9]{1,60}(\.[0-9]{1,60})?(e-?[0-9]{1,3})?", re.ASCII)
HEAD = "{sample} constraints <W, z_i> >= 1 on {keys} x {queries} matrices (data SHA-256 {data_sha256}): "
GAP = "the largest margin min_i <U, z_i> over ||U||_F = 1 lies in [{margin_lower}, {margin_upper}]; the W of this "
GAP += "file has margin at least {achieved} and is at an angle of at most {angle} rad to the max-margin one"
TEXT = {
    "gap": GAP + ".",
    "active-set": GAP + ", a positive combination of exactly the {support} linearly independent constraints "
    "that have a dual weight; every other constraint has a strictly larger margin.",
    "exact": GAP + "; the largest margin squared is exactly {margin_squared}, attained by sum p_i z_i.",
    "not-separable": "no W has <W, z_i> > 0 for all i: sum p_i z_i = 0 for weights p >= 0, not all 0.",
    "norm-bound": "no U with ||U||_F = 1 has margin min_i <U, z_i> above {margin_upper}.",
}
FIELDS = {"schema", "kind", "statement", "data_sha256", "sample", "support", "denominator", "claims"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was proved (or ''), what failed (or None), and 1 - (margin of W) P / ||V||, rounded up."""

    accepted: bool
    statement: str
    failed_inequality: str | None
    gap: float | None = None


def statement(document: dict[str, Any]) -> str:
    """The sentence that a certificate's kind, sizes and claims amount to."""
    words = {name: len(document[name]["mantissa"][0]) for name in ("keys", "queries")}
    words |= {name: len(document[name]) for name in ("sample", "support")} | document["claims"]
    return (HEAD + TEXT[document["kind"]]).format(data_sha256=document["data_sha256"], **words)


def data_digest(document: dict[str, Any]) -> str:
    """SHA-256 of the constraints: compact JSON of [keys, queries, sample] with sorted names."""
    data = [document[name] for name in ("keys", "queries", "sample")]
    return hashlib.sha256(json.dumps(data, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def burden(rungs: int, N: int, n: int, d_k: int, d_q: int, k: int, bits: int) -> tuple[int, int]:
    """Word operations (of some ns) with `rungs` of PRECISIONS for k supporting ones, bits of the largest matrix."""
    shapes = [(k, 1, d_q), (d_k, k, d_q), (n, d_q, d_k), (N, d_k, 1)] + [(k, d_k + d_q, k)] * (rungs > 0)
    words, balls = 1 + bits // 64, sum(1 + p // 64 for p in PRECISIONS[:rungs])
    work = 2 * sum(a * b * c for a, b, c in shapes) * words * (words + 7) // 8
    work += 8 * balls * (k**3 + (n + k) * d_k * d_q + 8 * N * d_k)
    return work, max(a * c for a, _, c in shapes) * (512 + bits)


def need(condition: bool, sentence: str) -> None:
    if not condition:
        raise AssertionError(sentence)


def integers(value: Any, name: str, low: int = -(1 << MAX_BITS), high: int = 1 << MAX_BITS) -> list[int]:
    good = isinstance(value, list) and all(type(v) is int and low <= v <= high for v in value)
    need(good and 0 < len(value) <= MAX_ENTRIES, f"malformed: {name}: 1 to {MAX_ENTRIES} integers in range")
    return value


def matrix(document: dict[str, Any], name: str) -> tuple[list[list[int]], Fraction, int]:
    """Rows of integers, the power of two that they are multiples of, and the bits of the longest."""
    need(set(document[name]) == {"exponent", "mantissa"}, f"malformed: {name} has other fields")
    rows = [integers(row, name) for row in document[name]["mantissa"]]
    good = len({len(row) for row in rows}) == 1 and len(rows) * len(rows[0]) <= MAX_ENTRIES
    need(good, f"malformed: the rows of {name} must have one length, and {MAX_ENTRIES} entries at most")
    exponent = integers([document[name]["exponent"]], f"{name}.exponent", -MAX_EXPONENT, MAX_EXPONENT)
    return rows, Fraction(2) ** exponent[0], max(max(max(row), -min(row)) for row in rows).bit_length()


def _angle(cosine_squared: Fraction) -> arb:
    return arb.atan2(*(arb(fmpq(*v.as_integer_ratio())).sqrt() for v in (1 - cosine_squared, cosine_squared)))


class _Problem:  # z_i stands for integers times `unit`, V for integers times `scale`
    def __init__(self, document: dict[str, Any]) -> None:
        self.document, kind = document, document["kind"]
        parts = ["keys", "queries", "dual", "separator"][: 4 if "margin_lower" in TEXT[kind] else 3]
        good = set(document) == FIELDS.union(parts)
        good &= set(document["claims"]) == set(re.findall(r"{(\w+)}", TEXT[kind])) - {"support"}
        need(good and document["schema"] == SCHEMA, f"malformed: {SCHEMA} of kind {kind} has other fields")
        claims = {name: text for name, text in document["claims"].items() if name != "margin_squared"}
        need(all(map(DECIMAL.fullmatch, claims.values())), "malformed: claims must be decimals")
        self.claims = {name: Fraction(text) for name, text in claims.items()}
        matrices = [matrix(document, name) for name in parts]
        (self.keys, a, _), (queries, b, _), ((weights, *rest), power, _) = matrices[:3]
        need(document["data_sha256"] == data_digest(document), "malformed: data_sha256 is not the data's")
        self.sample = integers(document["sample"], "sample", 0, len(queries) - 1)
        self.support = integers(document["support"], "support", 0, len(self.keys) - 1)
        good = self.support == sorted(set(self.support)) and not rest and min(weights) > 0
        good &= len(weights) == len(self.support) and len(self.sample) == len(self.keys)
        need(good, "malformed: sample, support, dual: one a key, increasing, one row > 0")
        power /= integers([document["denominator"]], "denominator", 1)[0]
        self.sizes = [len(self.keys), len(queries), len(self.keys[0]), len(queries[0]), len(weights)]
        self.sizes += [64 + 2 * sum(bits for _, _, bits in matrices)]
        work, store = burden(int(kind == "active-set"), *self.sizes)
        need(work <= MAX_WORK and store <= MAX_STORE, "malformed: numbers too many or long to multiply")
        self.queries, self.K = fmpz_mat(queries), fmpz_mat([self.keys[i] for i in self.support])
        self.query_rows, self.unit = [queries[self.sample[i]] for i in self.support], a * b
        self.V, self.scale = self.combination(fmpz_mat, weights), power * self.unit
        v, self.total = self.V.entries(), sum(weights) * power
        self.norm = int(sum(map(mul, v, v))) * self.scale**2
        upper = self.claims.get("margin_upper", 0) * self.total
        need(self.norm <= upper**2, "||sum p_i z_i|| <= (margin_upper or 0) sum p_i")

    def combination(self, kind: Any, weights: list[Any]) -> Any:
        weighted = [[w * v for v in row] for w, row in zip(weights, self.query_rows, strict=True)]
        return kind(self.K.transpose()) * kind(weighted)

    def margins(self, matrix: Any) -> list[Any]:  # <matrix, z_i> / unit
        turned = (matrix * type(matrix)(self.queries.transpose())).transpose().tolist()
        return [sum(map(mul, key, turned[s])) for key, s in zip(self.keys, self.sample, strict=True)]

    def prove_support(self) -> None:
        """G p = 1 has one solution, p > 0, and sum p_i z_i has every other margin above 1, in balls."""
        k, inside, K, Q = len(self.support), set(self.support), self.K, fmpz_mat(self.query_rows)
        fails = "the Gram matrix is nonsingular"
        gram = fmpz_mat(k, k, list(map(mul, (K * K.transpose()).entries(), (Q * Q.transpose()).entries())))
        for rungs, ctx.prec in enumerate(PRECISIONS, 1):
            need(burden(rungs, *self.sizes)[0] <= MAX_WORK, f"{fails} (too many constraints for more bits)")
            try:  # p in units of unit**-2, so that the margins come out in units of 1
                p = (arb_mat(gram) * arb(1)).solve(arb_mat(k, 1, [1] * k)).entries()  # rounded: no long balls
            except ZeroDivisionError:  # too few bits to tell G from a singular matrix
                continue
            margins = self.margins(self.combination(arb_mat, p))
            low = [j for j, margin in enumerate(margins) if j not in inside and not margin > 1]
            if all(ball > 0 for ball in p) and not low:
                return
            fails = f"margin of constraint {min(low)} > 1" if low else "the solution of G p = 1 is > 0"
            if any(ball <= 0 for ball in p) or any(margins[j] <= 1 for j in low):
                break  # refuted, whatever the precision
        raise AssertionError(fails)

    def prove_separator(self) -> float:
        """Check the claims about margins and angle; 1 - (margin of W) P / ||V||, rounded up."""
        (rows, scale, _), V, bound = matrix(self.document, "separator"), self.V, self.norm / self.total**2
        W, unit, v, w = fmpz_mat(rows), self.scale * self.unit, V.entries(), [x for row in rows for x in row]
        need((len(rows), len(rows[0])) == (V.nrows(), V.ncols()), "malformed: separator has another shape")
        norm_W, margin_W = sum(map(mul, w, w)) * scale**2, int(min(self.margins(W))) * scale * self.unit
        need(margin_W > 0 and self.norm > 0, "min_i <W, z_i> > 0 and ||sum p_i z_i|| > 0")
        margins, cosine = self.margins(V), int(sum(map(mul, w, v))) * scale * self.scale
        of_W, margin_V = margin_W**2 / norm_W, int(min(margins)) * unit
        of_V = max(margin_V, Fraction(0)) ** 2 / self.norm
        need(self.claims["achieved"] ** 2 <= of_W, "achieved <= min_i <W, z_i> / ||W||")
        need(self.claims["margin_lower"] ** 2 <= max(of_W, of_V), "margin_lower <= margin of W or of V")
        said, angle = arb(fmpq(*self.claims["angle"].as_integer_ratio())), _angle(of_W / bound)
        if cosine > 0:
            angle = angle.min(_angle(cosine**2 / (norm_W * self.norm)) + _angle(of_V / bound))
        need(bool(angle <= said), "angle of W to the max-margin direction <= angle")
        tight = margin_V == 1 and {margins[i] for i in self.support} == {min(margins)}
        need(tight or self.document["kind"] != "exact", "<V, z_i> >= 1, = 1 on the support")
        square = "{0.numerator}/{0.denominator}".format(1 / self.total)
        need(self.document["claims"].get("margin_squared", square) == square, "margin_squared = 1 / sum p_i")
        if self.document["kind"] == "active-set":
            self.prove_support()
        return nextafter(float(1 - Fraction(isqrt(int(of_W / bound * (1 << 200))), 1 << 100)), 1.0)


def read(source: Any) -> dict[str, Any]:
    """The document behind a path, or the document itself."""
    if isinstance(source, dict):
        return source
    with Path(source).open(encoding="utf-8") as file:
        text, twice = file.read(MAX_BYTES + 1), "malformed: a name occurs twice in one object"
    need(len(text) <= MAX_BYTES, f"malformed: a file of more than {MAX_BYTES} bytes")
    return json.loads(text, object_pairs_hook=lambda p: need(len(dict(p)) == len(p), twice) or dict(p))


@ctx.workprec(256)
def verify(source: Any) -> Verdict:
    """Check a certificate, given as a path or as a parsed document; what is wrong with it is never raised."""
    try:
        source = read(source)
        problem = _Problem(source)
        gap = problem.prove_separator() if "separator" in source else None
        need(source["statement"] == statement(source), "malformed: the statement is not what the claims say")
        return Verdict(accepted=True, statement=source["statement"], failed_inequality=None, gap=gap)
    except Exception as error:  # whatever a malformed file provokes is a reason to refuse it
        reason = "" if isinstance(error, AssertionError) else f"malformed: {type(error).__name__}: "
        return Verdict(accepted=False, statement="", failed_inequality=reason + str(error))
