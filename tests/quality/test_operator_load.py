"""Claims about load break if Spark's workers in a timed run, or Spark's controller, have a bug.

The controller decides in a run that is only numbers (``test_join_load.py``).
"""

from collections.abc import Callable

import pytest

from model.checking.claims import Outcome
from model.join.load import Watch
from model.join.load_claims import (
    CALM,
    NO_FALSE_SHEDDING,
    SCALED,
    SHED_AS_ASKED,
    Shared,
    judge_bytes,
    judge_shared,
)
from model.vocabulary.join_load import Limits, LoadRules, LoadState, Measured
from model.vocabulary.settings import read_settings
from properties.operators.join import SparkMachine
from sim.join import SETTINGS, ChainRun, simulate
from sim.join.settings import config_of, plan_of
from spark_impl.join import control
from spark_impl.join.worker import Worker
from tests.properties.join.test_load import CALM as STEADY
from tests.properties.join.test_load import figure, found, sent
from tests.quality.mistakes import Mistake
from tests.quality.test_join_load import LARGEST, LIMITS, RULE, SECOND, Way, outcomes

RULES = LoadRules(
    LIMITS.tau0,
    LIMITS.tau1,
    LIMITS.tau2,
    capacity=RULE.capacity,
    blocks="adaptive",
    shed="linear",
    base=RULE.base,
    margin=RULE.margin,
    block_size=LARGEST,
)


def watch(seen: Watch, now_us: int, workers: int, tau: float, _limits: Limits) -> tuple[Watch, int]:
    """Return what Spark's controller has seen by now, and the number of workers it wants."""
    state = LoadState(now_us - SECOND, workers, 0.0, tau, *seen)
    busy_us = (round(tau * SECOND),) * workers
    after, decision = control.decide(RULES, state, Measured(0, SECOND, busy_us, 0, 0, 0))
    return Watch(after.high_since_us, after.low_since_us), decision.workers


def controlled() -> dict[str, Outcome]:
    return outcomes(
        Way(
            watch,
            share=lambda did, tau: control.share_to_shed(RULES, tau, did),
            size=lambda tau, workers: control.choose_block_size(RULES, tau, workers),
        )
    )


def test_a_right_controller_keeps_every_promise() -> None:
    assert set(controlled().values()) == {Outcome.HOLDS}


@pytest.mark.parametrize(
    ("claim", "mistake"),
    [
        pytest.param(
            NO_FALSE_SHEDDING,
            Mistake(control.choose_block_size, "floor(2 * ", "floor(4 * "),
            id="blocks are twice as large",
        ),
        pytest.param(
            SHED_AS_ASKED,
            Mistake(control.share_to_shed, "else x)", "else x * x)"),
            id="a quadratic share for a linear one",
        ),
        pytest.param(
            CALM,
            Mistake(control.share_to_shed, "is_shedding and smoothed", "False and smoothed"),
            id="no margin",
        ),
        pytest.param(
            SCALED,
            Mistake(control.decide, "rules.aim + 0.5", "rules.aim + 1.5"),
            id="one worker too many",
        ),
    ],
)
def test_a_bug_of_a_controller_breaks_its_claim(
    monkeypatch: pytest.MonkeyPatch, claim: str, mistake: Mistake
) -> None:
    mistake.plant(monkeypatch)
    assert controlled()[claim] is Outcome.BROKEN


# ---------------------------------------------------------------------------- bytes of a timed run


def run(**settings: object) -> ChainRun:
    texts = {name: str(each) for name, each in {**STEADY, **settings}.items()}
    given = read_settings(texts, SETTINGS)
    return simulate(plan_of(given), config_of(given), 1, machine=SparkMachine)


def outcome_of_bytes() -> Outcome:
    timed = run(block_size=4)
    measured = figure(timed, "mean_block"), figure(timed, "bytes_per_s")
    return judge_bytes(timed.traffic, *measured).verdicts[0].outcome


def outcome_of_queries() -> Outcome:
    runs = {queries: run(queries=queries, seconds=5) for queries in (1, 4)}
    chains = [Shared(queries, sent(timed), found(timed)) for queries, timed in runs.items()]
    return judge_shared(chains).verdicts[0].outcome


@pytest.mark.parametrize(
    ("outcome", "times"),
    [
        pytest.param(outcome_of_bytes, "2", id="every block is sent twice"),
        pytest.param(
            outcome_of_queries, "len(self._config.queries)", id="a block is sent for every query"
        ),
    ],
)
def test_a_bug_of_spark_s_workers_breaks_the_claim_on_bytes(
    monkeypatch: pytest.MonkeyPatch, outcome: Callable[[], Outcome], times: str
) -> None:
    assert outcome() is Outcome.HOLDS
    right = "self.outbox.append((lane.ahead, block))"
    wrong = f"self.outbox.extend([(lane.ahead, block)] * {times})"
    Mistake(Worker.forward, right, wrong).plant(monkeypatch)
    assert outcome() is Outcome.BROKEN
