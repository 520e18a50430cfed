"""The explicit induction network against plain loops, exact fractions and mpmath."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.theory.disentangled import AttentionHead, block_slices
from marginlab.theory.errors import InvalidInput
from marginlab.theory.ngrams.construction import InductionNetwork, induction_network
from marginlab.theory.ngrams.finite_scale import boundary_mass, finite_scale_bound, no_bos_boundary_law

INF = float("inf")
seeds = st.integers(0, 2**32 - 1)
boundaries = st.sampled_from(["interior", "padded"])

#: Rounding of a row: the score of BOS sums k + 1 <= 5 terms up to k Lambda < 512, half an ulp each, and moves the row
#: by a quarter of its error; sums over 60 weights are below that.
ROUNDING = 1e-13


def closed_form(
    x: list[int], V: int, beta: list[float], kappa: float, base: list[float], boundary: str, t: int
) -> list[float]:
    """Row t of equation (8), position by position; NaN without evidence. Tokens count from 1 as in the paper."""
    k = len(beta)
    token = {s: x[s - 1] for s in range(1, t + 1)}
    weights = [(0.0 if kappa == -INF else math.exp(kappa)) * p for p in base]
    for s in range(k + 1 if boundary == "interior" else 1, t + 1):
        score = 0.0
        for lag in range(1, k + 1):
            both = s - lag >= 1 and t + 1 - lag >= 1
            score += beta[lag - 1] * (both and token[s - lag] == token[t + 1 - lag])
        weights[token[s]] += math.exp(score)
    total = math.fsum(weights)
    return [w / total if total > 0 else math.nan for w in weights]


def closed_rows(network: InductionNetwork, x: list[int]) -> np.ndarray:
    V = network.vocab_size
    base = [0.0] * V if network.base is None else network.base.tolist()
    arguments = (V, network.beta.tolist(), network.kappa, base, network.boundary)
    return np.array([closed_form(x, *arguments, t) for t in range(len(x) + 1)])


def boundary_by_fractions(x: list[int], V: int, beta: list[float], t: int) -> list[float]:
    """Row t >= 1 without BOS, with exact average agreements of tokens and of averages over prefixes."""

    def source(position: int, lag: int) -> list[int]:
        """Positions whose average a head of this lag copies at `position`; the token itself for lag 0."""
        return [position - lag] if position - lag >= 1 else list(range(1, position + 1))

    weights = [0.0] * V
    for s in range(1, t + 1):
        score = 0.0
        for lag in range(1, len(beta) + 1):
            query, key = source(t, lag - 1), source(s, lag)
            agreements = sum(x[i - 1] == x[j - 1] for i in query for j in key)
            score += beta[lag - 1] * float(Fraction(agreements, len(query) * len(key)))
        weights[x[s - 1]] += math.exp(score)
    return [w / math.fsum(weights) for w in weights]


def random_model(
    rng: np.random.Generator, *, longest: int = 60, **given: Any
) -> tuple[InductionNetwork, list[int]]:
    """A network with signed scales and a sequence, which may be shorter than its order."""
    V, k = int(rng.integers(2, 7)), int(rng.integers(1, 5))
    parts: dict[str, Any] = {"beta": rng.normal(0, 2, size=k)}
    if given.get("bos", True):
        parts["kappa"] = -INF if rng.random() < 0.25 else float(rng.normal(0, 3))
        parts["base"] = rng.dirichlet(np.ones(V)) if rng.random() < 0.8 else None
    network = induction_network(V, k, **{**parts, **given})
    return network, rng.integers(0, V, size=int(rng.integers(0, longest + 1))).tolist()


def total_variation(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    return 0.5 * np.abs(p - q).sum(axis=1)


@settings(max_examples=80)
@given(seeds, boundaries, st.booleans())
def test_network_is_soft_matching(seed: int, boundary: str, own_sink: bool) -> None:
    """Every row, from one forward pass, against equation (8); NaN in the same rows."""
    rng = np.random.default_rng(seed)
    given: dict[str, Any] = {"sink": 120.0} if boundary == "interior" and not own_sink else {}
    network, x = random_model(rng, boundary=boundary, scale=45.0, **given)
    rows = network.predict(x)
    assert rows.shape == (len(x) + 1, network.vocab_size)
    np.testing.assert_allclose(rows, closed_rows(network, x), atol=ROUNDING, rtol=0)


@settings(max_examples=30)
@given(seeds, boundaries)
def test_rows_are_those_of_prefixes(seed: int, boundary: str) -> None:
    """Row t of one pass is the last row of the pass over the first t tokens."""
    rng = np.random.default_rng(seed)
    network, x = random_model(rng, longest=25, boundary=boundary, scale=float(rng.uniform(0.1, 20)))
    rows = network.predict(x)
    t = int(rng.integers(0, len(x) + 1))
    np.testing.assert_allclose(network.predict(x[:t]), rows[: t + 1], atol=1e-13, rtol=0)


@settings(max_examples=40)
@given(seeds)
def test_without_bos(seed: int) -> None:
    """Network, boundary law, and the same law from exact fractions; the interior law is as near as its mass says."""
    rng = np.random.default_rng(seed)
    network, x = random_model(rng, longest=30, bos=False)
    V, beta = network.vocab_size, network.beta
    law, mass = no_bos_boundary_law(x, V, beta), boundary_mass(x, V, beta)
    wanted = [boundary_by_fractions(x, V, beta.tolist(), t) for t in range(1, len(x) + 1)]
    assert np.isnan(law[0]).all()
    np.testing.assert_allclose(law[1:], np.reshape(wanted, (-1, V)), atol=1e-13, rtol=0)
    np.testing.assert_allclose(network.predict(x), law, atol=1e-12, rtol=0)

    k = len(beta)
    assert np.isnan(mass[0])
    np.testing.assert_allclose(mass[1 : k + 1], 1.0, atol=1e-14)
    if len(x):  # the last map holds row t at position t - 1
        attention = network.attention(x)[1][0]
        np.testing.assert_allclose(attention[:, :k].sum(axis=1), mass[1:], atol=1e-12, rtol=0)
    late = slice(k + 1, None)
    distance = total_variation(law[late], closed_rows(network, x)[late])
    assert np.all(distance <= mass[late] + 1e-13)


@settings(max_examples=60)
@given(
    seeds,
    st.sampled_from(["interior", "padded", "no BOS"]),
    st.sampled_from([0.3, 1.0, 2.0, 4.0, 8.0, 15.0, 20.0, 25.0, 30.0]),
)
def test_finite_scale_bound(seed: int, kind: str, scale: float) -> None:
    rng = np.random.default_rng(seed)
    given: dict[str, Any] = {"bos": False} if kind == "no BOS" else {"boundary": kind}
    if kind == "interior":
        given["sink"] = float(rng.choice([0.0, 1.0, 5.0, 20.0, 60.0]))
    network, x = random_model(rng, longest=40, scale=scale, **given)
    if kind == "no BOS":
        limit = no_bos_boundary_law(x, network.vocab_size, network.beta)
    else:
        limit = closed_rows(network, x)
    bound = finite_scale_bound(network, len(x))
    distance = total_variation(network.predict(x), limit)
    np.testing.assert_array_equal(np.isnan(bound), np.isnan(distance))
    known = ~np.isnan(bound)
    assert np.all(distance[known] <= bound[known] + ROUNDING)
    assert np.all((bound[known] >= 0) & (bound[known] <= 1))


@pytest.mark.parametrize(("boundary", "sink"), [("padded", 0.0), ("interior", 25.0)])
@pytest.mark.parametrize("beta", [(2.5, 1.5), (-2.0, 1.5), (1.0, -3.0)])
@pytest.mark.parametrize("scale", [1.0, 6.0, 30.0])
def test_finite_scale_bound_in_exact_arithmetic(
    boundary: str, sink: float, beta: tuple[float, float], scale: float
) -> None:
    """The same weights in 60 digits, where nothing is lost to rounding: the bound holds with no allowance."""
    V, kappa, x = 2, -0.5, [0, 1, 1, 0, 1, 0, 0]
    network = induction_network(V, 2, beta, kappa=kappa, boundary=boundary, scale=scale, sink=sink)
    bound = finite_scale_bound(network, len(x))
    with mpmath.workdps(60):
        rows = _exact_rows(network, x)
        for t, row in enumerate(rows):
            wanted = _exact_closed_form(x[:t], beta, kappa, boundary, V)
            distance = mpmath.fsum(abs(a - b) for a, b in zip(row, wanted, strict=True)) / 2
            # The bound is a rounded number itself, hence the factor.
            assert distance <= mpmath.mpf(bound[t]) * (1 + mpmath.mpf(10) ** -12)


def _exact_rows(network: InductionNetwork, x: list[int]) -> list[list[Any]]:
    """The forward pass of the network's own weights in mpmath. kappa + k sink and mu are floats, taken as they are."""
    h = [[mpmath.mpf(v) for v in row] for row in network.embed(x).tolist()]
    for layer in network.layers:
        written = []
        for head in layer:
            nonzero = zip(*np.nonzero(head.score), strict=True)
            entries = [(a, b, mpmath.mpf(head.score[a, b])) for a, b in nonzero]
            copies = []
            for t, query in enumerate(h):
                weights = []
                for j in range(t + 1):
                    d = t - j
                    bias = head.relative[d] if d < len(head.relative) else 0.0
                    score = mpmath.fsum(query[a] * v * h[j][b] for a, b, v in entries)
                    weights.append(mpmath.exp(score + mpmath.mpf(bias)))
                total = mpmath.fsum(weights)
                column = [mpmath.fsum(w * h[j][c] for j, w in enumerate(weights)) for c in range(len(query))]
                copies.append([v / total for v in column])
            written.append(copies)
        h = [row + [v for copies in written for v in copies[t]] for t, row in enumerate(h)]
    readout = network.readout.tolist()
    return [
        [mpmath.fsum(mpmath.mpf(w) * v for w, v in zip(out, row, strict=True)) for out in readout]
        for row in h
    ]


def _exact_closed_form(
    x: list[int], beta: tuple[float, ...], kappa: float, boundary: str, V: int
) -> list[Any]:
    t, k = len(x), len(beta)
    weights = [mpmath.exp(kappa) / V] * V
    for s in range(k if boundary == "interior" else 0, t):
        lags = [lag for lag in range(1, k + 1) if lag <= s and lag <= t and x[s - lag] == x[t - lag]]
        weights[x[s]] += mpmath.exp(mpmath.fsum(beta[lag - 1] for lag in lags))
    return [w / mpmath.fsum(weights) for w in weights]


@pytest.mark.parametrize("boundary", ["padded", "interior"])
@pytest.mark.parametrize("scale", [4.0, 8.0, 15.0])
def test_bound_is_not_idle(boundary: str, scale: float) -> None:
    """The bound falls with the scale as the error does: over the rows, its largest is within a factor of twenty."""
    x = np.random.default_rng(3).integers(0, 4, size=200)
    network = induction_network(4, 2, [2.5, 1.5], kappa=0.5, boundary=boundary, scale=scale)
    distance = total_variation(network.predict(x), closed_rows(network, x.tolist())).max()
    bound = finite_scale_bound(network, 200).max()
    assert distance <= bound <= min(20 * distance, 0.99)


def test_sink_with_negative_scales() -> None:
    """A position with a missing lag has not lost the scale that it missed: with sum(beta) for sum(max(beta, 0)) the
    bound would be e^-5 of this one, and be violated."""
    network = induction_network(2, 1, [-5.0], kappa=0.0, scale=45.0, sink=5.0)
    distance = total_variation(network.predict([0]), closed_rows(network, [0]))[1]
    bound = finite_scale_bound(network, 1)[1]
    assert bound * np.exp(-5.0) < distance <= bound


@pytest.mark.parametrize(
    ("beta", "kappa"), [([40.0, -30.0], -INF), ([-30.0, -30.0], -INF), ([90.0, 90.0], -200.0), (-500.0, 7.0)]
)
def test_default_sink_is_large_enough(beta: Any, kappa: float) -> None:
    rng = np.random.default_rng(11)
    network = induction_network(3, 2, beta, kappa=kappa)
    for _ in range(20):
        x = rng.integers(0, 3, size=8).tolist()
        np.testing.assert_allclose(network.predict(x), closed_rows(network, x), atol=1e-12, rtol=0)
        bound = finite_scale_bound(network, len(x))
        assert np.all(np.isnan(bound) | (bound < 1e-14))


@pytest.mark.parametrize("boundary", ["interior", "padded"])
def test_wrong_block_shift_is_another_network(boundary: str) -> None:
    """Comparing query block l (not l - 1) with key block l, or the lags in reverse, is far from equation (8)."""
    rng = np.random.default_rng(5)
    x = rng.integers(0, 3, size=60).tolist()
    network = induction_network(3, 3, [3.0, 2.0, 1.0], kappa=0.0, boundary=boundary)
    wanted = closed_rows(network, x)
    head = network.layers[1][0]
    D = 4
    unshifted, reversed_lags = np.array(head.score), np.array(head.score)
    for lag, b in enumerate(network.beta, start=1):
        for m in range(3):
            unshifted[(lag - 1) * D + m, lag * D + m] -= b
            unshifted[lag * D + m, lag * D + m] += b
            reversed_lags[(lag - 1) * D + m, lag * D + m] -= b
            reversed_lags[(3 - lag) * D + m, lag * D + m] += b
    assert np.abs(network.predict(x) - wanted).max() < 1e-10
    for score in (unshifted, reversed_lags):
        wrong = replace(network, layers=(network.layers[0], (AttentionHead(score=score),)))
        assert total_variation(wrong.predict(x), wanted).max() > 0.05


def test_attention_maps() -> None:
    """Layer 1 copies one lag each, and BOS where there is none; layer 2 weighs the followers of matches."""
    network = induction_network(3, 2, [60.0, 60.0], kappa=-60.0)
    first, second = network.attention([0, 1, 2, 0, 1])
    for lag in (1, 2):
        assert first[lag - 1].argmax(axis=1).tolist() == [max(t - lag, 0) for t in range(6)]
        np.testing.assert_allclose(first[lag - 1].max(axis=1), 1.0, atol=1e-15)
    np.testing.assert_allclose(second[0, 5], np.eye(6)[3], atol=1e-15)  # after 0, 1 came 2
    blocks = block_slices(4, network.layers)
    assert [b.stop - b.start for b in (blocks[0][0], *blocks[1], *blocks[2])] == [4, 4, 4, 12]


def test_missing_lags_of_the_query_do_not_match() -> None:
    """Padded, one token, three lags: the query lacks two, as every position does, and BOS agrees with nothing."""
    network = induction_network(2, 3, 50.0, kappa=0.0, boundary="padded")
    np.testing.assert_allclose(network.predict([0])[1], [0.75, 0.25], atol=1e-14)


def test_rows_without_evidence() -> None:
    law = [0.25, 0.75]
    with_bos = induction_network(2, 2, [1.0, 1.0], kappa=-2.0, base=law)
    np.testing.assert_allclose(with_bos.predict([0, 1])[:3], [law] * 3, atol=1e-15)
    np.testing.assert_allclose(with_bos.predict([]), [law], atol=0)
    for boundary, rows in {"interior": 3, "padded": 1}.items():
        none = induction_network(2, 2, 1.0, boundary=boundary).predict([0, 1, 1])
        assert np.isnan(none).all(axis=1).sum() == np.isnan(none).any(axis=1).sum() == rows
    alone = induction_network(2, 2, 1.0, bos=False)
    assert np.isnan(alone.predict([])).tolist() == [[True, True]]
    assert np.isnan(no_bos_boundary_law([], 2, [1.0])).tolist() == [[True, True]]
    assert np.isnan(finite_scale_bound(alone, 0)).tolist() == [True]


def test_no_mass_on_bos_without_pseudo_count() -> None:
    network = induction_network(3, 2, [1.0, -1.0], boundary="padded")
    second = network.attention([0, 1, 2, 0])[1][0]
    assert (second[1:, 0] == 0).all()
    assert second[0, 0] == 1.0  # BOS as a query has nothing else


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: induction_network(0, 1, 1.0), "vocab_size must be at least 1"),
        (lambda: induction_network(2, 0, 1.0), "order must be at least 1"),
        (lambda: induction_network(2, 2, [1.0]), "beta must be a number or have shape"),
        (lambda: induction_network(2, 1, [np.nan]), "beta must be finite"),
        (lambda: induction_network(2, 1, INF), "beta must be finite"),
        (lambda: induction_network(2, 1, "a"), "beta must hold real numbers"),
        (lambda: induction_network(2, 1, 1.0, kappa=INF), "kappa must be a finite number"),
        (lambda: induction_network(2, 1, 1.0, kappa=np.nan), "kappa must be a finite number"),
        (lambda: induction_network(2, 1, 1.0, base=[0.5, 0.6]), "base must be a law"),
        (lambda: induction_network(2, 1, 1.0, base=[1.0]), "base must have shape"),
        (lambda: induction_network(2, 1, 1.0, boundary="open"), "boundary must be one of"),
        (lambda: induction_network(2, 1, 1.0, scale=0.0), "scale must be positive"),
        (lambda: induction_network(2, 1, 1.0, sink=-1.0), "sink must be"),
        (lambda: induction_network(2, 1, 1.0, sink=INF), "sink must be finite"),
        (lambda: induction_network(2, 1, 1.0, sink=1.0, boundary="padded"), "sink must be zero"),
        (lambda: induction_network(2, 1, 1.0, bos=1), "bos must be True or False"),  # type: ignore[arg-type]
        (lambda: induction_network(2, 1, 1.0, bos=False, kappa=0.0), "without BOS .* got kappa"),
        (lambda: induction_network(2, 1, 1.0, bos=False, base=[0.5, 0.5]), "without BOS .* got base"),
        (lambda: induction_network(2, 1, 1.0, bos=False, boundary="padded"), "without BOS .* got padded"),
        (lambda: induction_network(2, 1, 1.0, bos=False, sink=3.0), "without BOS .* got sink"),
        (lambda: induction_network(2, 1, 1.0).predict([0, 2]), r"tokens must lie in 0..1 .* index 1"),
        (lambda: induction_network(2, 1, 1.0).predict([-1]), "tokens must lie in"),
        (lambda: induction_network(2, 1, 1.0).predict([0.5]), "tokens must hold integers"),
        (lambda: induction_network(2, 1, 1.0).predict([[0]]), "tokens must have 1 dimension"),
        (lambda: induction_network(2, 1, 1.0, bos=False).attention([]), "no empty axis"),
        (lambda: finite_scale_bound(induction_network(2, 1, 1.0), -1), "length must be at least 0"),
        (lambda: no_bos_boundary_law([2], 2, [1.0]), "tokens must lie in"),
        (lambda: no_bos_boundary_law([0], 2, []), "beta must hold one scale per lag"),
        (lambda: boundary_mass([0], 2, [np.nan]), "beta must be finite"),
        (lambda: boundary_mass([0], 0, [1.0]), "vocab_size must be at least 1"),
    ],
)
def test_bad_input(call: Any, match: str) -> None:
    with pytest.raises(InvalidInput, match=match):
        call()
