"""The prefix of a long workload that is computed, and the closeness of equal results."""

from dataclasses import replace

import pytest

from model.checking.claims import Outcome
from model.script import run
from model.script.claims import LOAD, REJECTIONS, RESULTS, judge
from model.script.evidence import TOLERANCE, align, deviation, is_exact
from model.vocabulary import Event, ScriptConfig, Step, Trace, Workload
from model.vocabulary.script.config import MILLISECOND_US, Rejected, Result
from model.vocabulary.script.tree import (
    Arithmetic,
    Expression,
    Name,
    Sensor,
    Statement,
    Window,
    Workflow,
)

MEAN, LEAST = (Window(op, Sensor("a"), 4, 2) for op in ("avg", "min"))
STATEMENTS = (Statement("x", MEAN), Statement("y", Arithmetic("-", Name("x"), LEAST)))
CONFIG = ScriptConfig((Workflow("w", STATEMENTS),), (("a", 1), ("b", 1)), lateness_us=2_000)
TUPLES = 40


def workload(config: ScriptConfig = CONFIG, unit: float = 1.0) -> Workload:
    """Return a workload whose every fifth tuple comes six places late."""
    times = sorted(range(TUPLES), key=lambda n: n + (6 if n % 5 == 0 else 0))
    arrivals = tuple(
        Event(seq, seq, "a", n * MILLISECOND_US, n % 7 * unit, seq) for seq, n in enumerate(times)
    )
    return Workload("script", arrivals, config.to_json())


def outcomes(case: Workload, trace: Trace, most: int | None) -> dict[str, Outcome]:
    return {each.claim: each.outcome for each in judge(case, trace, most).verdicts}


def without(trace: Trace, step: Step) -> Trace:
    return Trace(trace.producer, [each for each in trace.steps() if each != step])


@pytest.mark.parametrize("lateness_us", [2_000, None])
@pytest.mark.parametrize("most", [1, 7, 20, TUPLES, None])
def test_the_reference_is_right_by_any_part_of_the_arrivals(
    lateness_us: int | None, most: int | None
) -> None:
    case = workload(replace(CONFIG, lateness_us=lateness_us))
    assert Outcome.BROKEN not in outcomes(case, run(case), most).values()


@pytest.mark.parametrize("lateness_us", [2_000, None])
def test_a_result_that_is_missing_or_too_many_early_on_is_seen(lateness_us: int | None) -> None:
    case = workload(replace(CONFIG, lateness_us=lateness_us))
    right = run(case)
    first = right.of(Result)[0]
    one_more = Trace("x", [*right.steps(), first._replace(ts_us=first.ts_us + 1)])
    for wrong in (without(right, first), one_more):
        assert outcomes(case, wrong, 20)[RESULTS] is Outcome.BROKEN
    last = right.of(Result)[-1]
    assert outcomes(case, without(right, last), 20)[RESULTS] is Outcome.HOLDS
    assert outcomes(case, without(right, last), None)[RESULTS] is Outcome.BROKEN


def test_a_rejection_that_is_missing_early_on_is_seen() -> None:
    case = workload()
    right = run(case)
    rejected = right.of(Rejected)
    assert len(rejected) > 4
    assert outcomes(case, without(right, rejected[0]), 20)[REJECTIONS] is Outcome.BROKEN


def test_the_sentence_states_how_many_arrivals_were_compared() -> None:
    case = workload()
    sentences = {each.claim: each.sentence for each in judge(case, run(case), 20).verdicts}
    assert sentences[RESULTS].endswith("; compared with the meaning of 20 arrivals).")
    assert "compared with" not in sentences[LOAD]


def test_nothing_is_said_of_a_placement_that_is_not_recorded() -> None:
    case = workload()
    only_results = Trace("x", run(case).of(Result))
    assert outcomes(case, only_results, None)[LOAD] is Outcome.UNDETERMINED


# -------------------------------------------------------------------------------------- closeness


def nudged(trace: Trace, by: float) -> Trace:
    """Return all results, off by a share of the largest value."""
    return Trace("x", [each._replace(value=each.value + by * 0.6) for each in trace.of(Result)])


def test_results_are_exact_where_sums_are() -> None:
    case = workload()
    right = run(case)
    assert is_exact(case)
    wrong = nudged(right, 1e-15)
    assert align(case, right, wrong) is wrong
    assert outcomes(case, wrong, None)[RESULTS] is Outcome.BROKEN


def test_results_are_close_where_sums_are_rounded() -> None:
    case = workload(unit=0.1)
    right = run(case)
    assert not is_exact(case)
    assert 0.0 in {each.value for each in right.of(Result)}, "no result is 0"
    near, far = (nudged(right, TOLERANCE * times) for times in (0.5, 2.0))
    assert align(case, right, near).of(Result) == right.of(Result)
    assert outcomes(case, near, None)[RESULTS] is Outcome.HOLDS
    assert outcomes(case, far, None)[RESULTS] is Outcome.BROKEN
    assert deviation(case, right, near) == pytest.approx(TOLERANCE / 2)
    assert deviation(case, right, right) == 0.0


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_result_that_is_not_finite_is_not_close(value: float) -> None:
    case = workload(unit=0.1)
    right = run(case)
    wrong = Trace("x", [right.of(Result)[0]._replace(value=value)])
    assert outcomes(case, wrong, None)[RESULTS] is Outcome.BROKEN


def test_values_of_which_squares_are_too_large_are_not_exact() -> None:
    assert is_exact(workload(unit=0.125))
    assert not is_exact(workload(unit=1e6))


def test_counts_and_least_values_have_to_be_equal() -> None:
    """One off by one beside values of two million is a mistake, and no rounding."""
    names: dict[str, Expression] = {
        "n": Window("count", Sensor("a"), 4, 2),
        "least": LEAST,
        "difference": Arithmetic("-", Name("n"), Name("least")),
        "mean": MEAN,
        "of_means": Window("max", Name("mean"), 4, 2),
        "means": Window("count", Name("mean"), 4, 2),
    }
    statements = tuple(Statement(name, expression) for name, expression in names.items())
    config = ScriptConfig((Workflow("w", statements),), (("a", 1),), lateness_us=2_000)
    case = workload(config, unit=333_333.1)
    right = run(case)
    assert not is_exact(case)
    for name in names:
        off = [
            each._replace(value=each.value + (1 if each.name == name else 0))
            for each in right.of(Result)
        ]
        wrong = Trace("x", [*off, *right.of(Rejected)])
        assert deviation(case, right, wrong) < TOLERANCE or name in ("n", "means")
        may_round = name in ("mean", "of_means")
        expected = Outcome.HOLDS if may_round else Outcome.BROKEN
        assert outcomes(case, wrong, None)[RESULTS] is expected, name
