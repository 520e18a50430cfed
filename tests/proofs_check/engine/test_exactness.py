"""Values that float64 does not hold are refused, and infinities decide nothing."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import marginlab
from marginlab.proofs_check import Interval, Kind, Verdict
from marginlab.proofs_check.claims.match_copy.separators import certified_norm, paper_problems
from marginlab.proofs_check.engine.context import Run, RunConfig
from marginlab.proofs_check.engine.runner import evaluate_claim
from marginlab.theory.errors import InvalidInput


@pytest.mark.parametrize(
    "value",
    [
        0 + 5j,
        2**53 + 1,
        [1, 2**60 + 1],
        np.array([Fraction(1, 10**400)], dtype=object),
        Fraction(1, 3),
        10**400,
        "0",
        None,
        np.array([np.datetime64("2026-01-01")]),
    ],
)
def test_what_float64_does_not_hold_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput, match=r"real numbers|does not hold"):
        Interval.exact(value)


@pytest.mark.parametrize("value", [2**53, Fraction(3, 4), [1, 2], True, np.float32(0.1), np.inf])
def test_what_float64_holds_is_kept(value: Any) -> None:
    assert (Interval.exact(value).lo == np.asarray(value, dtype=float)).all()


@pytest.mark.parametrize(("kind", "infinite"), [(Kind.UPPER, -np.inf), (Kind.LOWER, np.inf)])
def test_an_infinite_measurement_decides_nothing(claim: Any, kind: Kind, infinite: float) -> None:
    fake = claim(kind=kind, measured=(Interval.exact(infinite),), predicted=Interval.exact(1.0))
    assert evaluate_claim(fake, Run(RunConfig())).verdict is Verdict.INCONCLUSIVE


def test_the_certified_norm_contains_what_its_certificate_proves() -> None:
    constants = marginlab.claims()["match-copy/separator"].constants
    for instance in paper_problems(Run(RunConfig())):
        interval, certificate = certified_norm(instance, constants), instance.data.certificate
        assert Fraction(float(interval.lo)) <= 1 / Fraction(certificate.margin_upper)
        assert Fraction(float(interval.hi)) >= 1 / Fraction(certificate.margin_lower)
