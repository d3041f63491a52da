"""A judgement that requires one tuple too many or too few is noticed, under every rule."""

from random import Random
from typing import Any

import pytest

from model.checking.claims import Outcome, Verdict
from model.slack import run
from model.slack.claims import check
from model.slack.variants import VARIANTS
from model.vocabulary import Event, Trace, Workload
from model.vocabulary.settings import PlainData
from model.vocabulary.slack import Judged

CLAIM = "required coverage is right"
RULES: dict[str, dict[str, PlainData]] = {
    "a share": {"lambda_thr": 0.7},
    "count": {"aggregate": "count", "eps": 0.2},
    "median": {"aggregate": "median"},
    "quantile": {"aggregate": "quantile", "q": 0.9},
    "median against an adversary": {"aggregate": "median", "sampling": "adversarial"},
    "sum against an adversary": {"sampling": "adversarial"},
    "average against an adversary": {"aggregate": "avg", "sampling": "adversarial"},
    "normal sum, cv given": {"cv": 0.5},
    "normal sum, cv estimated": {},
    "normal average, cv given": {"aggregate": "avg", "cv": 0.5},
    "normal average, cv estimated": {"aggregate": "avg"},
    "rigorous sum": {"method": "rigorous"},
    "rigorous average": {"aggregate": "avg", "method": "rigorous"},
    "permuted sum": {"method": "permutation"},
}


def workload(seed: int = 0, **settings: Any) -> Workload:
    """Return windows of twenty tuples; a third of the tuples are delayed by up to half a window."""
    random = Random(seed)
    sent = sorted(
        (n + (random.randrange(10) if random.random() < 0.3 else 0), n) for n in range(100)
    )
    arrivals = tuple(
        Event(seq, seq, "a", event_time_us, float(random.randrange(40, 80)), arrival_us)
        for seq, (arrival_us, event_time_us) in enumerate(sent)
    )
    config = {"size_us": 20, "slide_us": 20, "eps": 0.3, "delta": 0.4, **settings}
    return Workload("slack", arrivals, config, cuts=tuple(range(10, 100, 10)))


def verdict_on(given: Workload, trace: Trace) -> Verdict:
    return next(verdict for verdict in check(given, trace) if verdict.claim == CLAIM)


@pytest.mark.parametrize("control", ["conformal", "pd"])
@pytest.mark.parametrize("rule", sorted(RULES))
def test_one_more_and_one_less_are_noticed(rule: str, control: str) -> None:
    given = workload(control=control, **RULES[rule])
    trace = run(given)
    assert verdict_on(given, trace).outcome is Outcome.HOLDS
    others = [step for step in trace.steps() if type(step) is not Judged]
    judged = trace.of(Judged)
    changed = 0
    for n, step in enumerate(judged):
        for by in (-1, 1):
            if 0 <= step.n_req + by <= step.n_rcv + step.n_late:
                wrong = step._replace(n_req=step.n_req + by)
                observed = Trace("changed", [*others, *judged[:n], wrong, *judged[n + 1 :]])
                assert verdict_on(given, observed).outcome is Outcome.BROKEN, (step, by)
                changed += 1
    assert changed > len(judged)


@pytest.mark.parametrize(
    ("name", "settings"),
    [("smaller_root", {"eps": 0.1}), ("normal_quantile", {"aggregate": "quantile", "q": 0.95})],
)
def test_a_wrong_formula_is_noticed_in_any_stream(
    name: str, settings: dict[str, PlainData]
) -> None:
    for seed in range(10):
        given = workload(seed, **settings)
        verdict = verdict_on(given, VARIANTS[name].make_system()(given))
        assert verdict.outcome is Outcome.BROKEN
        assert "that is not enough" in verdict.sentence
