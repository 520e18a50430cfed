"""Trajectories: against plain loops, between engines and coordinates, and where they say they can be trusted."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.simulations import run, run_batch, warm_up
from marginlab.simulations.attention import Problem
from marginlab.simulations.trajectory import ENGINES, RULES, TRUSTED, Descent, recorded_steps
from marginlab.theory.errors import InvalidInput
from marginlab.theory.match_copy import MatchCopyTask, log_loss, min_margin, sample

LOSSES = ("mse", "cross-entropy")
seeds = st.integers(0, 2**32)


def template(seed, *, T=5, d=10, n=5, std=1.0):
    return Problem.from_match_copy(sample(MatchCopyTask.template(T=T, d=d, coordinate_std=std), n, seed))


def plain_descent(problem, loss, rule, step, steps, W):
    """Gradient descent from eq. (8) and (19) in plain loops over tokens; no formula shared with the engines.

    The gradient comes from the Jacobian of the softmax, J = diag(a) - a a^T, as Lemma F.1 has it.
    """
    path = [W]
    for s in range(steps):
        G, L = np.zeros_like(W), 0.0
        for i, q in enumerate(problem.queries):
            e = np.exp(problem.keys[i] @ W @ q)
            a = e / e.sum()
            J = np.diag(a) - np.outer(a, a)
            if loss == "mse":
                r = problem.values[i].T @ a - problem.targets[i]
                score_gradient = J @ problem.values[i] @ r
                L += r @ r / 2
            else:
                L -= np.log(a[problem.match[i]])
                score_gradient = a - np.eye(len(a))[problem.match[i]]
            for t, pull in enumerate(score_gradient):
                G += pull * np.outer(problem.keys[i, t], q)
        norm = np.linalg.norm(G)
        sizes = {
            "gd": 1,
            "normalised": 1 / norm,
            "normalised-sqrt": 1 / (norm * np.sqrt(s + 1)),
            "loss-scaled": 1 / L,
        }
        W = W - step * sizes[rule] * G
        path.append(W)
    return np.array(path)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("shape", [(2, 3, 4, 2), (5, 4, 2, 3), (3, 7, 3, 1)])
def test_every_engine_follows_the_plain_loop(engine, loss, rule, shape):
    """Few samples (span of queries), many samples (W itself), and many keys for the value dimension."""
    n, K, d, d_v = shape
    rng = np.random.default_rng(0)
    problem = Problem(
        rng.standard_normal((n, K, d)),
        rng.standard_normal((n, d)),
        rng.standard_normal((n, K, d_v)),
        rng.integers(0, K, n),
        rng.standard_normal((n, d_v)),  # type: ignore[arg-type]
    )
    W0 = 0.3 * rng.standard_normal((d, d))
    found = run(problem, loss=loss, rule=rule, step=0.05, steps=40, record=range(41), W0=W0, engine=engine)
    expected = plain_descent(problem, loss, rule, 0.05, 40, W0)
    # 40 steps, each with a gradient wrong by at most 1e-12 of its norm and amplified by 1 + step * curvature;
    # the norm of a gradient is below 100 here, curvature below 100: 40 * 0.05 * 100 * 1e-12 * 1.05^40 * ...
    assert np.abs(found.W - expected).max() < 1e-9
    assert np.array_equal(found.W[0], W0)


@settings(deadline=None, max_examples=15)
@given(seeds, st.sampled_from(LOSSES))
def test_the_path_stays_in_the_span_of_the_constraints(seed, loss):
    problem = template(seed, T=4, d=5, n=3)
    W0 = np.random.default_rng(seed).standard_normal((5, 5))
    moved = (run(problem, loss=loss, step=0.02, steps=200, record=1, W0=W0).W[-1] - W0).ravel()
    rows = problem.constraints().dense()
    coefficients = np.linalg.lstsq(rows.T, moved, rcond=None)[0]
    # 200 additions of size at most ||moved||, and a least-squares solve
    assert np.linalg.norm(rows.T @ coefficients - moved) <= 1e-11 * (1 + np.linalg.norm(moved))


def test_losses_and_margins_belong_to_the_recorded_matrices():
    problem = template(0)
    found = run(problem, step=0.01, steps=100, record=[0, 7, 100])
    assert np.array_equal(found.log_loss, log_loss(problem, found.W))
    assert np.array_equal(found.min_margin, min_margin(problem, found.W))
    assert len(found) == 3


def test_what_is_recorded_changes_no_number():
    problem = template(1)
    every = run(problem, rule="normalised", step=0.05, steps=300, record=range(301))
    few = run(problem, rule="normalised", step=0.05, steps=300, record=[5, 77, 300])
    for name in ("W", "log_loss", "log_grad_norm", "error_bound"):
        assert np.array_equal(getattr(every, name)[[5, 77, 300]], getattr(few, name))
    longer = run(problem, rule="normalised", step=0.05, steps=400, record=[300, 400])
    assert np.array_equal(longer.W[0], few.W[-1])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_batch_is_its_members_bit_for_bit(engine):
    problems = [template(seed, T=4, d=6, n=3) for seed in range(4)]
    starts = np.random.default_rng(0).standard_normal((4, 6, 6))
    how = {"step": 0.1, "steps": 25, "record": 3, "rule": "normalised-sqrt", "engine": engine}
    for start in (None, starts[0], starts):
        batch = run_batch(problems, W0=start, **how)
        for b, (problem, together) in enumerate(zip(problems, batch, strict=True)):
            alone = run(problem, W0=start if start is None or start.ndim == 2 else start[b], **how)
            assert np.array_equal(alone.W, together.W)
            assert np.array_equal(alone.log_grad_norm, together.log_grad_norm)


def test_span_and_full_coordinates_give_one_trajectory():
    """The same problem with a query of zero added d times over has n > d, and no other gradient."""
    small = template(2, T=4, d=3, n=2)
    idle = 4
    padded = Problem(
        np.concatenate([small.keys, np.ones((idle, 3, 3)) * np.arange(3)[:, None]]),
        np.concatenate([small.queries, np.zeros((idle, 3))]),
        np.concatenate([small.values, np.ones((idle, 3, 3)) * np.arange(3)[:, None]]),
        np.concatenate([small.match, np.zeros(idle, dtype=int)]),
    )
    one, two = (run(p, rule="normalised", step=0.05, steps=2000, record=20) for p in (small, padded))
    size = np.linalg.norm(one.W, axis=(1, 2), keepdims=True) + 1
    # normalised descent contracts towards one direction; each step adds a few roundings of size ||W||
    assert np.all(np.abs(one.W - two.W) <= 2000 * 50 * 2.0**-53 * size)


def test_a_sample_without_a_gradient_does_not_set_the_scale_of_the_others():
    """All values equal: its coefficients are exactly zero while the other sample's are of size e^-800."""
    keys, queries = np.array([[[1.0], [0.0]]] * 2), np.ones((2, 1))
    values = np.array([[[0.0], [1.0]], [[1.0], [1.0]]])
    W0 = np.full((1, 1), 400.0)
    both = Problem(keys, queries, values, np.array([0, 0]))
    alone = Problem(keys[:1], queries[:1], values[:1], np.array([0]))
    for problem in (both, alone):
        found = run(problem, rule="normalised", step=1.0, steps=10, record=1, W0=W0)
        assert found.W[-1, 0, 0] == 410.0
        # K = 2 and values 0, 1: -gradient = a_2^2 (1 - a_2), log a_2 = -410 up to e^-410
        assert found.log_grad_norm[-1] == pytest.approx(-820.0, rel=1e-14)


def test_the_frame_engine_runs_to_gaps_in_the_thousands():
    """Rate of normalised descent: the gradient has norm far below 1e-308 and the margins still grow."""
    found = run(template(0), rule="normalised", step=0.1, steps=20_000, record=[10_000, 20_000])
    assert found.valid_until is None
    assert found.min_margin[-1] > 1500
    assert found.log_grad_norm[-1] < -2 * 1500
    assert found.min_margin[1] == pytest.approx(2 * found.min_margin[0], rel=0.01)


@pytest.mark.parametrize("engine", ["torch", "naive"])
def test_the_textbook_loop_stalls_near_gap_37_and_says_when_it_went_wrong(engine):
    problem = template(0)
    how = {"rule": "normalised", "step": 0.1, "steps": 250, "record": range(251)}
    good, bad = run(problem, **how), run(problem, engine=engine, **how)
    last = bad.valid_until
    assert last is not None
    assert good.valid_until is None
    assert good.min_margin[-1] > 80
    assert bad.min_margin[-1] < 45
    # It is the first step past the bound, and it comes before the damage: the weights of the rivals are then
    # about 1e6 times 2^-53 times the bound's constants, a gap between 10 and 30.
    assert np.all(bad.error_bound[:last] <= TRUSTED)
    assert not bad.error_bound[last] <= TRUSTED
    assert 10 < bad.min_margin[last] < 30
    # Updates up to `last` used trusted gradients, so the paths agree there to 1e-6 of their length; later not.
    length = 0.1 * last
    assert np.linalg.norm(bad.W[last] - good.W[last]) <= TRUSTED * length
    assert np.linalg.norm(bad.W[-1] - good.W[-1]) > 0.1 * np.linalg.norm(good.W[-1])


def test_a_finite_minimiser_ends_the_trusted_range_of_the_frame_engine_too():
    """Two contradictory targets for one query: the gradient vanishes by cancellation, at finite W."""
    keys, values = np.array([[[1.0], [-1.0]]] * 2), np.array([[[0.0], [1.0]]] * 2)
    problem = Problem(keys, np.ones((2, 1)), values, np.array([0, 0]), np.array([[0.2], [0.4]]))
    found = run(problem, step=0.5, steps=4000, record=[0, 4000])
    # the minimiser has a_2 = 0.3: 2 W = log(0.7 / 0.3)
    assert found.W[-1, 0, 0] == pytest.approx(0.5 * np.log(7 / 3), rel=1e-12)
    assert found.valid_until is not None
    assert found.valid_until > 10


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("rule", RULES)
def test_an_exactly_zero_gradient_stays_where_it_is(engine, rule):
    problem = Problem(np.eye(2)[None], np.ones((1, 2)), np.ones((1, 2, 1)), np.array([0]))
    found = run(problem, rule=rule, step=0.1, steps=5, record=[0, 5], W0=np.eye(2), engine=engine)
    assert np.array_equal(found.W, [np.eye(2), np.eye(2)])
    assert np.array_equal(found.log_grad_norm, [-np.inf, -np.inf])
    assert found.valid_until == 0


def test_wrong_attention_that_must_turn_round_is_followed_exactly():
    """From W0 with the wrong keys selected at gap 60, where only a pivot at the wrong key keeps the digits."""
    problem = template(3, T=3, d=5, n=2)
    rows = problem.constraints().dense()
    W0 = -60 * np.linalg.lstsq(rows, np.ones(len(rows)), rcond=None)[0].reshape(5, 5)
    found = run(problem, rule="normalised", step=0.05, steps=4000, record=[0, 4000], W0=W0)
    assert found.min_margin[0] < -59
    assert found.min_margin[1] > 50
    assert found.valid_until is None
    stuck = run(problem, rule="normalised", step=0.05, steps=4000, record=[4000], W0=W0, engine="naive")
    assert stuck.valid_until == 0


@pytest.mark.parametrize("loss", LOSSES)
def test_loss_scaled_steps_go_on_where_the_loss_underflows(loss):
    """Far out gradient and loss shrink alike: steps of about constant length, up to a loss of e^-1500 and beyond."""
    problem = template(0, T=4, d=16, n=8)
    found = run(problem, loss=loss, rule="loss-scaled", step=0.02, steps=2000, record=[1000, 2000])
    assert found.log_loss[1] < -1500 / (1 if loss == "mse" else 2)
    assert found.valid_until is None
    growth = np.diff(np.linalg.norm(found.W, axis=(1, 2)))[0]
    # The gradient is at least (2 or 1) L / ||W_hat|| (half-space), and the margins follow: no step is lost.
    least = (
        {"mse": 2, "cross-entropy": 1}[loss]
        * 0.02
        * 1000
        * min_margin(problem, found.W[1] / np.linalg.norm(found.W[1]))
    )
    assert growth >= 0.99 * least


@pytest.mark.parametrize(
    ("steps", "record", "expected"),
    [
        (100, 3, [0, 1, 10, 100]),
        (100, 1, [0, 100]),
        (4, 9, [0, 1, 2, 3, 4]),
        (0, 3, [0]),
        (10, [2, 5], [2, 5]),
        (10, np.array([0, 10]), [0, 10]),
    ],
)
def test_recorded_steps(steps, record, expected):
    assert recorded_steps(steps, record).tolist() == expected


@pytest.mark.parametrize("record", [0, -1, True, 2.5, [], [3, 3], [5, 2], [-1, 2], [0, 11], [0.0, 1.0], None])
def test_bad_records_are_refused(record):
    with pytest.raises(InvalidInput, match="record must"):
        recorded_steps(10, record)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": "hinge"}, "loss must be one of mse, cross-entropy; got 'hinge'"),
        ({"rule": "adam"}, "rule must be one of gd, normalised, normalised-sqrt, loss-scaled; got 'adam'"),
        ({"engine": "jax"}, "engine must be one of"),
        ({"step": 0.0}, "step must be positive and finite, got 0.0"),
        ({"step": np.nan}, "step must be positive"),
        ({"steps": -1}, "steps must be at least 0"),
        ({"steps": 2.0}, "steps must be an integer"),
        ({"W0": np.zeros((2, 3))}, r"W0 must have shape \(10, 10\)"),
        ({"W0": np.full((10, 10), np.inf)}, "W0 must be finite"),
    ],
)
def test_bad_runs_are_refused(change, message):
    with pytest.raises(InvalidInput, match=message):
        run(template(0), **{"step": 0.1, "steps": 3, "record": 1} | change)


@pytest.mark.parametrize("engine", ENGINES)
def test_overflow_is_an_error_and_not_a_trajectory(engine):
    problem = Problem(
        np.array([[[1.0], [-1.0]]]), np.full((1, 1), 2.0**99), np.array([[[0.0], [1.0]]]), np.array([0])
    )
    with pytest.raises(InvalidInput, match=r"gradient .* finite in float64"):
        run(problem, step=1.0, steps=3, record=1, W0=[[1e300]], engine=engine)


def test_bad_batches_are_refused():
    with pytest.raises(InvalidInput, match="at least one problem"):
        run_batch([], step=0.1, steps=1, record=1)
    with pytest.raises(InvalidInput, match="one shape"):
        run_batch([template(0), template(0, T=4)], step=0.1, steps=1, record=1)
    with pytest.raises(InvalidInput, match=r"W0 must have shape \(1, 10, 10\)"):
        run_batch([template(0)], W0=np.zeros((2, 10, 10)), step=0.1, steps=1, record=1)


def test_trajectories_are_read_only_and_travel_between_processes():
    found = run(template(0), step=0.1, steps=3, record=2)
    with pytest.raises(ValueError, match="read-only"):
        found.W[0] = 0
    back = pickle.loads(pickle.dumps(found))
    assert np.array_equal(back.W, found.W)
    assert back.config == found.config
    assert back.config.config_hash == found.config.config_hash


def test_the_configuration_of_a_run_is_canonical():
    one = Descent(step=1, steps=10, record=2, engine="naive")  # type: ignore[arg-type]
    two = Descent(step=1.0, steps=10, record=(0, 1, 10), engine="naive")
    assert one == two
    assert one.config_hash == two.config_hash


def test_warm_up_leaves_nothing_to_compile():
    from marginlab.simulations import _frame, _textbook

    warm_up()
    before = len(_frame.descend.signatures), len(_textbook.descend.signatures)
    for n, K, d, d_v in ((1, 2, 1, 1), (4, 9, 3, 2), (3, 4, 7, 5)):
        rng = np.random.default_rng(0)
        problem = Problem(
            rng.standard_normal((n, K, d)),
            rng.standard_normal((n, d)),
            rng.standard_normal((n, K, d_v)),
            np.zeros(n, dtype=int),
        )
        for engine in ("numba", "naive"):
            first = run(problem, step=0.1, steps=2, record=1, engine=engine)
            run(problem, step=0.1, steps=2, record=1, engine=engine, W0=first.W[-1])
    assert (len(_frame.descend.signatures), len(_textbook.descend.signatures)) == before
