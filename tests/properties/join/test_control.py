"""The two controllers of a chain decide the same, to the last bit, on every course of a load."""

from collections import Counter
from collections.abc import Callable

from hypothesis import given

from model.checking.claims import Outcome
from model.join import control as model
from model.join.decision_claims import LOG_CLAIMS, ControlLog, Logged, judge_log
from model.vocabulary.join import Decision
from model.vocabulary.join_load import LoadRules, LoadState, Measured
from properties.stream_packs import collect
from spark_impl.join import control as spark
from straggler.rooms.join.load_curves import Course, courses

COURSES = 400
STEPS = 3_000
SHARES = ("shares that are shed", "shares that are shed at or below tau1")
"""Guards, each of which counts some of what the one before it counts."""

Decide = Callable[[LoadRules, LoadState, Measured], tuple[LoadState, Decision]]


def log_of(decide: Decide, course: Course) -> ControlLog:
    """Return the log of a controller, which follows its own states."""
    state = first = model.start(course.rules, course.workers)
    steps = []
    for measured in course.measured:
        state, decision = decide(course.rules, state, measured)
        steps.append(Logged(measured, state, decision))
    return ControlLog(course.rules, first, steps)


@given(course=courses())
def test_both_controllers_decide_the_same(course: Course) -> None:
    assert spark.begin(course.rules, course.workers) == model.start(course.rules, course.workers)
    assert log_of(spark.decide, course) == log_of(model.decide, course)


def test_every_branch_of_the_rules_is_taken(seed: int) -> None:
    drawn = collect(courses(), COURSES, seed)
    guards = Counter[str]()
    for course in drawn:
        log = log_of(spark.decide, course)
        assert log == log_of(model.decide, course)
        judged = judge_log(log)
        guards.update(judged.guards)
        of_shares = [judged.guards[name] for name in SHARES]
        assert of_shares == sorted(of_shares, reverse=True)
        assert course.rules.shed != "no" or not any(of_shares)
        assert all(verdict.outcome is Outcome.HOLDS for verdict in judged.verdicts)
    for guard in LOG_CLAIMS.cases:
        assert guards[guard], f"there were no {guard}"
    assert guards["decisions"] >= STEPS
    assert {course.rules.shed for course in drawn} == {"no", "linear", "quadratic"}
