"""Claims about the load of a chain break if model or Spark decide, or send, with a planted bug.

A run here is only numbers: a load rises and falls, and workers come and go by the decisions of the
model or of Spark's controller. Bytes are those of Spark's workers in simulated time.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

from model.checking.claims import Outcome
from model.join import control, load
from model.join.decision_claims import CONTROLLED, LOG_CLAIMS, ControlLog, Logged, judge_log
from model.join.load import Watch
from model.join.load_claims import (
    BYTES,
    CALM,
    CHANGES,
    FLAT,
    GUARDS,
    NO_FALSE_SHEDDING,
    SCALED,
    SHED_AS_ASKED,
    Moment,
    Rule,
    Shared,
    judge,
    judge_bytes,
    judge_shared,
    over_all,
)
from model.vocabulary.join_load import Limits, LoadRules, LoadState, Measured
from model.vocabulary.settings import read_settings
from properties.operators.join import SparkMachine
from sim.join import SETTINGS, ChainRun, simulate
from sim.join.settings import config_of, plan_of
from spark_impl.join import control as spark
from spark_impl.join.worker import Worker
from tests.quality.planting import Planted

CLAIMS = frozenset(
    (CONTROLLED, NO_FALSE_SHEDDING, SHED_AS_ASKED, CALM, SCALED, BYTES, FLAT),
)
"""Claims whose bugs are planted here."""
LIMITS = Limits(0.25, 0.75, 0.75)
RULE = Rule(LIMITS, capacity=400, base=0.1, margin=0.05)
LARGEST = 50
"""Largest block size, zeta*."""
RULES = LoadRules(
    *(LIMITS.tau0, LIMITS.tau1, LIMITS.tau2),
    capacity=RULE.capacity,
    blocks="adaptive",
    shed="linear",
    base=RULE.base,
    margin=RULE.margin,
    block_size=LARGEST,
)
SECOND = 1_000_000
ARRIVALS = 1_000
CHANGE_S = 3
"""Time until workers have come or gone, in seconds."""


@dataclass(frozen=True, slots=True)
class Controller:
    """The decisions of a run."""

    watch: Callable[[Watch, int, int, float], tuple[Watch, int]]
    share: Callable[[bool, float], float]
    size: Callable[[float, int], int]


def _watch_as_spark(seen: Watch, now_us: int, workers: int, tau: float) -> tuple[Watch, int]:
    state = LoadState(now_us - SECOND, workers, 0.0, tau, *seen)
    busy_us = (round(tau * SECOND),) * workers
    after, decision = spark.decide(RULES, state, Measured(0, SECOND, busy_us, 0, 0, 0))
    return Watch(after.high_since_us, after.low_since_us), decision.workers


CONTROLLERS = {
    "model": Controller(
        lambda seen, now_us, workers, tau: load.watch(seen, now_us, workers, tau, LIMITS),
        lambda did, tau: load.share_to_shed(
            did, tau, LIMITS.tau1, RULE.base, RULE.power, RULE.margin
        ),
        lambda tau, workers: load.block_size(tau, RULE.capacity, workers, LIMITS.tau1, LARGEST),
    ),
    "spark": Controller(
        _watch_as_spark,
        lambda did, tau: spark.share_to_shed(RULES, tau, did),
        lambda tau, workers: spark.choose_block_size(RULES, tau, workers),
    ),
}


def load_at(second: int) -> float:
    """Return the workers that the load would keep busy: about tau1, above it, then fewer."""
    if second < 20:
        return 4 * (0.73 if second % 2 else 0.77)
    if second < 30:
        return 4 * 0.68
    return 4 * 0.77 if second < 200 else 1.5


def run(controller: Controller, seconds: int = 900) -> list[Moment]:
    """Run the case study, a moment a second; neighbours differ by a block as they may."""
    workers, wanted, asked, seen, share, moments = 4, 4, 0, Watch(), 0.0, []
    for second in range(seconds):
        mean = min(1.0, load_at(second) / workers)
        step = controller.size(mean, workers) / RULE.capacity
        fullest = mean + step * (workers - 1) / 2
        shed = round(share * ARRIVALS)
        share = controller.share(share > 0, mean)
        at_us = second * SECOND
        if wanted == workers:
            asked = second
            seen, wanted = controller.watch(seen, at_us, workers, mean)
        moments.append(Moment(at_us, workers, mean, fullest, mean, share, ARRIVALS, shed, wanted))
        if second >= asked + CHANGE_S:
            workers = wanted
    return moments


def outcomes(moments: list[Moment]) -> dict[str, Outcome]:
    return {each.claim: each.outcome for each in over_all([judge(moments, RULE)])}


@pytest.mark.parametrize("producer", CONTROLLERS)
def test_right_controllers_keep_every_promise_and_go_from_4_to_8_workers_and_back(
    producer: str,
) -> None:
    moments = run(CONTROLLERS[producer])
    assert set(outcomes(moments).values()) == {Outcome.HOLDS}
    counts = [moment.workers for moment in moments]
    assert [counts[0], *(b for a, b in pairwise(counts) if a != b)] == [4, 8, 4]


def _one_more_worker(right: Any, rules: LoadRules, state: LoadState, measured: Measured) -> Any:
    after, decision = right(rules, state, measured)
    return after, decision._replace(workers=decision.workers + (decision.workers > state.workers))


BUGS: Mapping[str, Mapping[str, Planted]] = {
    "model": {
        NO_FALSE_SHEDDING: Planted(load.block_size, lambda right, *given: 2 * right(*given)),
        SHED_AS_ASKED: Planted(load.share_to_shed, lambda right, *given: right(*given) / 2),
        CALM: Planted(load.share_to_shed, lambda right, _did, *given: right(False, *given)),
        SCALED: Planted(load.workers_for, lambda right, *given: right(*given) + 1),
    },
    "spark": {
        NO_FALSE_SHEDDING: Planted(
            spark.choose_block_size, lambda right, *given: 2 * right(*given)
        ),
        SHED_AS_ASKED: Planted(spark.share_to_shed, lambda right, *given: right(*given) / 2),
        CALM: Planted(
            spark.share_to_shed, lambda right, rules, tau, _did: right(rules, tau, False)
        ),
        SCALED: Planted(spark.decide, _one_more_worker),
    },
}


@pytest.mark.parametrize(
    ("producer", "claim"), [(producer, claim) for producer in BUGS for claim in BUGS[producer]]
)
def test_a_bug_of_a_controller_breaks_its_claim(producer: str, claim: str) -> None:
    with BUGS[producer][claim].in_force():
        moments = run(CONTROLLERS[producer])
    assert outcomes(moments)[claim] is Outcome.BROKEN


def test_where_nothing_happens_nothing_is_proved() -> None:
    moments = run(CONTROLLERS["model"])
    judgement = judge(moments[-10:], RULE)
    assert {v.outcome for v in over_all([judgement])} == {Outcome.UNDETERMINED}
    assert set(judgement.guards) < set(GUARDS.values())
    assert judge(moments[:100], RULE).guards[CHANGES] == 0


# ------------------------------------------------------------------------- decisions in a log

LOGGED = LoadRules(
    *(0.25, 0.75, 0.8, 2_000, 3_000, 2, 6),
    capacity=20,
    blocks="adaptive",
    shed="linear",
    base=0.1,
    margin=0.1,
    smoothing=0.5,
    block_size=16,
)
LOADS = (1.0, 1.9, 2.0, 2.0, 2.0, 2.8, 3.9, 4.0, 4.0, 4.0, 2.6, 2.6, 1.0, 0.3, 0.2, 0.2, 0.2, 0.2)
DECIDE = {"model": control.decide, "spark": spark.decide}


def logged(producer: str) -> ControlLog:
    state = first = control.start(LOGGED, 2)
    steps = []
    for epoch, busy in enumerate(LOADS):
        busy_us = tuple(int(1_000 * busy / state.workers) for _ in range(state.workers))
        measured = Measured(epoch, 1_000, busy_us, 10, 0, 0)
        state, decision = DECIDE[producer](LOGGED, state, measured)
        steps.append(Logged(measured, state, decision))
    return ControlLog(LOGGED, first, steps)


def _never_forgets(right: Any, rules: LoadRules, state: LoadState, measured: Measured) -> Any:
    after, decision = right(rules, state, measured)
    if after.workers != state.workers:
        after = after._replace(high_since_us=state.high_since_us, low_since_us=state.low_since_us)
    return after, decision


def _decides_for_this_epoch(
    right: Any, rules: LoadRules, state: LoadState, measured: Measured
) -> Any:
    after, decision = right(rules, state, measured)
    return after, decision._replace(epoch=measured.epoch)


@pytest.mark.parametrize("producer", DECIDE)
def test_a_right_log_breaks_no_claim_and_has_every_case(producer: str) -> None:
    judged = judge_log(logged(producer))
    assert [each.outcome for each in judged.verdicts] == [Outcome.HOLDS]
    assert all(judged.guards[name] for name in LOG_CLAIMS.cases), judged.guards


@pytest.mark.parametrize("producer", DECIDE)
@pytest.mark.parametrize("instead", [_never_forgets, _decides_for_this_epoch, _one_more_worker])
def test_a_mistake_of_a_decision_is_found_in_the_log(
    producer: str, instead: Callable[..., Any]
) -> None:
    with Planted(DECIDE[producer], instead).in_force():
        log = logged(producer)
    verdicts = judge_log(log).verdicts
    assert {each.claim: each.outcome for each in verdicts} == {CONTROLLED: Outcome.BROKEN}


# ---------------------------------------------------------------------------------------- bytes

STEADY: Mapping[str, object] = {
    "scenario": "steady",
    "seconds": 5,
    "rate_r_hz": 100,
    "rate_s_hz": 100,
    "window_us": 2_000_000,
    "blocks": "fixed",
    "capacity": 1_000,
    "tiers": "node",
    "speeds": "1",
    "trigger_interval_us": "never",
}
"""Far from any limit; all arrivals are one epoch, which ends with the last of them."""


def simulated(**settings: object) -> ChainRun:
    texts = {name: str(each) for name, each in {**STEADY, **settings}.items()}
    given = read_settings(texts, SETTINGS)
    return simulate(plan_of(given), config_of(given), 1, machine=SparkMachine)


def outcome_of_bytes() -> Outcome:
    timed = simulated(block_size=4, seconds=20)
    measured = float(timed.summary["mean_block"]), float(timed.summary["bytes_per_s"])
    return judge_bytes(timed.traffic, *measured).verdicts[0].outcome


def outcome_of_queries() -> Outcome:
    shared = []
    for queries in (1, 4):
        timed = simulated(queries=queries)
        span_us = timed.workload.arrivals[-1].arrival_us - timed.plan.epoch_us
        sent = round(float(timed.summary["bytes_per_s"]) * span_us / 1e6)
        shared.append(Shared(queries, sent, int(timed.summary["results"])))
    return judge_shared(shared).verdicts[0].outcome


def _sends_again(right: Any, self: Worker, *given: Any) -> None:
    """Send each block once more for every query."""
    before = len(self.outbox)
    right(self, *given)
    self.outbox.extend(self.outbox[before:] * len(self._config.queries))


@pytest.mark.parametrize("outcome", [outcome_of_bytes, outcome_of_queries])
def test_blocks_that_spark_s_workers_send_again_break_the_claims_on_bytes(
    outcome: Callable[[], Outcome],
) -> None:
    assert outcome() is Outcome.HOLDS
    with Planted(Worker.forward, _sends_again).in_force():
        wrong = outcome()
    assert wrong is Outcome.BROKEN
