"""Checks a proof of convergence from scratch: nothing of marginlab's solvers, only integers and Arb balls.

A file holds keys, queries, values and matches as exact dyadics, an iterate W, a step (or none: gradient flow), and as
witnesses a feasible separator with dual weights, or a normal for each sample. Checked are the conditions of
docs/convergence.md on L = sum ||sum_t a_t d_t||^2 / 2, a the attention, d_t = v_t - v_y:
half-space: g = min <d_s, d_t> > 0, theta^2 = 2 L / min g_i^3/R_i^4, step B L <= 1 with B = 4 max R_i^2 X_i^2/g_i;
identifiable: gamma_i > 0 by normals, Gram matrix of all constraints nonsingular, 2 L < gamma^2, step B_gamma L <= 1.
"""

import hashlib
import json
import re
from fractions import Fraction
from functools import partial, reduce
from typing import Any

from flint import arb, arb_mat, ctx, fmpq

from marginlab.proofs_check.certificates.verify import MAX_WORK, Verdict, integers, matrix, need, read

SCHEMA = "marginlab-convergence/1"
SIGNED = re.compile(r"-?[0-9]{1,60}(\.[0-9]{1,60})?(e-?[0-9]{1,3})?", re.ASCII)
HEAD = "Squared error of {samples} samples (data SHA-256 {data_sha256}), {dynamics} from the W of this file, k on: "
LOSS = "the loss L_k tends to 0, 1/L_k >= 1/{loss} + {rate} k; the squared gradients sum to at most {squared_gradients}"
LIMIT = "; W_k/||W_k|| tends to the max-margin direction, ||W_k|| = (||W_hat||/2) log k + O(1), "
LIMIT += "||W_hat|| in [{norm_lower}, {norm_upper}]"
SHARE = "; all margins tend to infinity, the least one divided by ||W_k|| to at least {share} in the limit"
ALONE = LOSS + "; 1/L_k <= 1/{loss_lower} + {rate_upper} k" + LIMIT
EXPLICIT = "; all margins stay above {margin}; 1 - cos(W_k, W_hat) <= {direction}/||W_k||; the path is at "
TEXT = {
    "half-space": ALONE + EXPLICIT + "most {excess} longer than ||W_k||.",
    "half-space-loss": ALONE + ".",
    "identifiable": LOSS + SHARE + ".",
    "identifiable-half-space": LOSS + SHARE + LIMIT + ".",
}
CLAIMS = {kind: tuple(re.findall(r"{(\w+)}", text)) for kind, text in TEXT.items()}
SEPARATED = tuple(kind for kind in TEXT if "half-space" in kind)
PARTS = ("keys", "values", "queries", "W")
ROWS = 1 << 10  # constraints whose Gram matrix is solved


def statement(document: dict[str, Any]) -> str:
    """The sentence that a file's kind, sizes and claims amount to."""
    words = document["claims"] | {"samples": len(document["match"]), "data_sha256": document["data_sha256"]}
    words["dynamics"] = "gradient flow" if document["step"] is None else "gradient descent with its step"
    return (HEAD + TEXT[document["kind"]]).format(**words)


def data_digest(document: dict[str, Any]) -> str:
    """SHA-256 of data, iterate and step: compact JSON with sorted names."""
    text = json.dumps(
        [document[name] for name in (*PARTS, "match", "step")], sort_keys=True, separators=(",", ":")
    )
    return hashlib.sha256(text.encode()).hexdigest()


top, low = partial(reduce, arb.max), partial(reduce, arb.min)


def dot(a: Any, b: Any) -> Any:
    return sum((x * y for x, y in zip(a, b, strict=True)), arb(0))


def norm(rows: list[list[Any]]) -> Any:
    return sum((dot(row, row) for row in rows), arb(0)).sqrt()


class _Proof:
    def __init__(self, document: dict[str, Any]) -> None:
        self.document, kind = document, document["kind"]
        witnesses = ["separator", "dual"] * (kind in SEPARATED) + ["normals"] * ("identifiable" in kind)
        names = {"schema", "kind", "statement", "data_sha256", "match", "step", "claims", *PARTS, *witnesses}
        need(set(document) == names, f"malformed: {SCHEMA} of kind {kind} has other fields")
        claims = document["claims"]
        need(set(claims) == set(CLAIMS[kind]), f"malformed: claims of kind {kind} have other names")
        need(all(map(SIGNED.fullmatch, claims.values())), "malformed: claims must be decimals")
        self.claims = {name: arb(fmpq(*Fraction(c).as_integer_ratio())) for name, c in claims.items()}
        need(document["data_sha256"] == data_digest(document), "malformed: data_sha256 is not the data's")
        keys, values, self.queries, self.W = (self.balls(name) for name in PARTS)
        self.match, n, d = integers(document["match"], "match", 0), len(self.queries), len(self.W)
        self.K = len(keys) // n
        good = len(self.match) == n and len(keys) == len(values) == n * self.K
        good &= max(*self.match, 1) < self.K and {len(row) for row in keys + self.queries + self.W} == {d}
        need(good, "malformed: keys, values, queries, W, match have sizes that do not fit")
        work = (n * self.K + d) * d * d + n * self.K**2 * len(values[0])
        need(work << 8 <= MAX_WORK, "malformed: too many numbers to multiply")
        self.k_diffs, self.errors = self.differences(keys, -1), self.differences(values, 1)
        self.grams = [[[dot(a, b) for b in rows] for a in rows] for rows in self.errors]
        self.R2 = [top(gram[t][t] for t in range(self.K - 1)) for gram in self.grams]
        self.X2 = [top(map(dot, r, r)) * dot(q, q) for r, q in zip(self.k_diffs, self.queries, strict=True)]
        ((self.step,),) = ((None,),) if document["step"] is None else self.balls("step")
        self.L = self.loss()
        need(bool(self.L > 0) and (self.step is None or bool(self.step > 0)), "L > 0 and step > 0")

    def balls(self, name: str) -> list[list[Any]]:
        rows, unit, _ = matrix(self.document, name)
        return [[arb(x) * arb(fmpq(*unit.as_integer_ratio())) for x in row] for row in rows]

    def differences(self, rows: list[list[Any]], sign: int) -> list[list[list[Any]]]:  # of t != y, from y
        matched = zip([rows[i : i + self.K] for i in range(0, len(rows), self.K)], self.match, strict=True)
        pairs = [[(r, block[y]) for t, r in enumerate(block) if t != y] for block, y in matched]
        return [[[sign * (a - b) for a, b in zip(r, m, strict=True)] for r, m in rows] for rows in pairs]

    def margins(self, W: list[list[Any]]) -> list[list[Any]]:
        turned = ([dot(row, q) for row in W] for q in self.queries)
        return [[dot(row, u) for row in rows] for rows, u in zip(self.k_diffs, turned, strict=True)]

    def loss(self) -> Any:
        total = arb(0)
        for m, rows in zip(self.margins(self.W), self.errors, strict=True):
            odds = [(-x).exp() for x in m]
            r = [dot(odds, column) / (1 + sum(odds, arb(0))) for column in zip(*rows, strict=True)]
            total += dot(r, r) / 2
        return total

    def says(self, most: bool, **values: Any) -> None:
        """Each claim is an upper (`most`) or a lower bound of the value."""
        for name, value in values.items():
            good = self.claims[name] >= value if most else self.claims[name] <= value
            need(bool(good), f"{name} {'>=' if most else '<='} {value.str(20, radius=False)}")

    def prove_separator(self) -> tuple[Any, Any]:  # ||W_hat|| between its dual and its primal bound
        W, (dual, *rest) = self.balls("separator"), self.balls("dual")
        n, K, d = len(self.match), self.K - 1, len(self.W)
        need([len(row) for row in W] == [d] * d, "malformed: separator has another shape")
        need(not rest and len(dual) == n * K and all(p >= 0 for p in dual), "malformed: dual: one row >= 0")
        least, combined = low(m for row in self.margins(W) for m in row), arb_mat(d, d)
        need(bool(least > 0), "A1: every margin of the separator is > 0")
        for i, (rows, q) in enumerate(zip(self.k_diffs, self.queries, strict=True)):
            key = [dot(dual[i * K : (i + 1) * K], column) for column in zip(*rows, strict=True)]
            combined += arb_mat([[k] for k in key]) * arb_mat([q])
        need(bool(norm(combined.tolist()) > 0), "||sum p_i z_i|| > 0")
        lower, upper = sum(dual, arb(0)) / norm(combined.tolist()), norm(W) / least
        self.says(False, norm_lower=lower)
        self.says(True, norm_upper=upper)
        return lower, upper

    def prove_rates(self, x: Any, length: Any, B: Any) -> None:
        slope, step = ((1 - x) / length) ** 2, self.step
        need(bool(x < 1), "1 - a_y <= x < 1")
        need(step is None or bool(step * B * self.L <= 1), "step B L <= 1")
        self.says(True, loss=self.L, squared_gradients=self.L if step is None else 2 * self.L / step)
        self.says(False, rate=4 * slope if step is None else 2 * step * slope)

    def prove_half_space(self) -> None:
        g = [low(x for row in gram for x in row) for gram in self.grams]
        need(bool(low(g) > 0), "A4: min <d_s, d_t> > 0")
        norm_lower, norm_upper = self.prove_separator()
        if "identifiable" in self.document["kind"]:
            return
        x = (2 * self.L / low(g)).sqrt()
        B = 4 * top(r * f / a for r, f, a in zip(self.R2, self.X2, g, strict=True))
        self.prove_rates(x, norm_upper, B)
        theta = (2 * self.L / low(a**3 / r**2 for a, r in zip(g, self.R2, strict=True))).sqrt()
        explicit = self.document["kind"] == "half-space"
        limit = arb(2) / 3 if explicit and self.step is not None else 1
        need(bool(theta < limit), f"theta = sqrt(2 L / min g_i^3/R_i^4) < {limit}")
        self.says(False, loss_lower=self.L)
        self.says(True, rate_upper=(4 if self.step is None else 7 * self.step) * top(self.X2))
        if not explicit:
            return
        margin = (1 / x - 1).log()
        offset = (0 if self.step is None else self.step * B * self.L / (2 * (1 - x))) - margin
        excess = (norm_lower * offset).max(norm_upper * offset)
        self.says(False, margin=margin)
        self.says(True, excess=excess, direction=norm(self.W) + excess)

    def prove_identifiable(self) -> None:
        normals = self.balls("normals")
        need(len(normals) == len(self.match), "malformed: normals: one row a sample")
        gamma = [low(dot(d, u) for d in r) / norm([u]) for r, u in zip(self.errors, normals, strict=True)]
        need(all(bool(c > 0) for c in gamma), "A3: <d_t, normal> > 0")
        rows = [(k, q) for ks, q in zip(self.k_diffs, self.queries, strict=True) for k in ks]
        need(len(rows) <= ROWS, f"malformed: more than {ROWS} constraints to solve for")
        gram = arb_mat([[dot(a, b) * dot(p, q) for b, q in rows] for a, p in rows])
        try:
            length = sum(gram.solve(arb_mat([[1]] * len(rows))).entries(), arb(0)).sqrt()
        except ZeroDivisionError:
            raise AssertionError("the Gram matrix of all constraints is nonsingular") from None
        B = 4 * top(r * f / c**2 for r, f, c in zip(self.R2, self.X2, gamma, strict=True))
        self.prove_rates((2 * self.L).sqrt() / low(gamma), length, B)
        self.says(False, share=1 / length)


@ctx.workprec(320)
def verify(source: Any) -> Verdict:
    """Check a proof of convergence, given as a path or as a parsed document; what is wrong with it is never raised."""
    try:
        source = read(source)
        need(source["schema"] == SCHEMA, f"malformed: the schema is not {SCHEMA}")
        proof = _Proof(source)
        if source["kind"] in SEPARATED:
            proof.prove_half_space()
        if "identifiable" in source["kind"]:
            proof.prove_identifiable()
        need(source["statement"] == statement(source), "malformed: the statement is not what the claims say")
        return Verdict(accepted=True, statement=source["statement"], failed_inequality=None)
    except Exception as error:  # whatever a malformed file provokes is a reason to refuse it
        reason = "" if isinstance(error, AssertionError) else f"malformed: {type(error).__name__}: "
        return Verdict(accepted=False, statement="", failed_inequality=reason + str(error))
