"""Claims on the load of a chain break in timed runs whose control or figures have a planted bug."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from model.checking.claims import Outcome
from model.join import load
from model.join.control import decide, start
from model.join.decision_claims import ControlLog, Logged, judge_log
from model.join.load_claims import (
    CALM,
    NO_FALSE_SHEDDING,
    RUN_CLAIMS,
    SCALED,
    SHED_AS_ASKED,
    Moments,
    Shared,
    judge_bytes,
    judge_shared,
)
from model.vocabulary.join import END_US
from sim.join import ChainRun, figures, from_settings
from sim.join.load import LoadControl
from tests.properties.join.test_load import CALM as STEADY
from tests.properties.join.test_load import CASE_STUDY, HEAVY, OVERLOAD, SETTLED_US, found, sent
from tests.quality.mistakes import Mistake
from tests.sim.test_join_rules import CONFIG, RULES, rising_and_falling

EVER = 0, END_US
SHEDS: Mapping[str, object] = {**OVERLOAD, "shed": "linear", "base": 0.2, "margin": 0.1}
LOADS: Mapping[str, tuple[str, Mapping[str, object], Mistake]] = {
    "blocks are ten times as large": (
        NO_FALSE_SHEDDING,
        {**HEAVY, "blocks": "adaptive"},
        Mistake(load.block_size, "floor(2 * capacity", "floor(20 * capacity"),
    ),
    "a quadratic share for a linear one": (
        SHED_AS_ASKED,
        SHEDS,
        Mistake(load.shed_share, "x if power == 1", "x * x if power == 1"),
    ),
    "no margin": (CALM, SHEDS, Mistake(load.sheds, "tau1 - margin if did else tau1", "tau1")),
    "one worker too many": (
        SCALED,
        CASE_STUDY,
        Mistake(load.workers_for, "limits.aim + 0.5", "limits.aim + 1.5"),
    ),
}
"""Claim that breaks, settings of the run, and mistake."""


def loaded(settings: Mapping[str, object]) -> ChainRun:
    return from_settings({name: str(each) for name, each in {**STEADY, **settings}.items()}, seed=1)


def outcome_of(claim: str, run: ChainRun) -> Outcome:
    """Return the outcome of one claim: a run above its limits may break others."""
    first_us, last_us = SETTLED_US if claim == NO_FALSE_SHEDDING else EVER
    moments = [each for each in run.moments if first_us <= each.at_us <= last_us]
    alone = tuple(each for each in RUN_CLAIMS.claims if each.name == claim)
    judgement = replace(RUN_CLAIMS, claims=alone).judge(Moments(moments, run.rule))
    return judgement.verdicts[0].outcome


@pytest.mark.parametrize("name", LOADS)
def test_a_bug_of_the_load_breaks_its_claim_in_a_timed_run(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    claim, settings, mistake = LOADS[name]
    assert outcome_of(claim, loaded(settings)) is Outcome.HOLDS
    mistake.plant(monkeypatch)
    wrong = loaded(settings)
    monkeypatch.undo()
    assert outcome_of(claim, wrong) is Outcome.BROKEN


def test_a_header_that_is_not_counted_breaks_the_claim_on_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def outcome() -> Outcome:
        run = loaded({"block_size": 4})
        measured = (float(run.summary[name]) for name in ("mean_block", "bytes_per_s"))
        return judge_bytes(run.traffic, *measured).verdicts[0].outcome

    assert outcome() is Outcome.HOLDS
    right = 'sent["block"] + sent["ack"]'
    Mistake(figures._bandwidth, right, 'sent["block"]').plant(monkeypatch)
    assert outcome() is Outcome.BROKEN


def test_bytes_of_every_query_break_the_claim_on_a_shared_chain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def outcome() -> Outcome:
        runs = {queries: loaded({"queries": queries}) for queries in (1, 4)}
        chains = [Shared(queries, sent(run), found(run)) for queries, run in runs.items()]
        return judge_shared(chains).verdicts[0].outcome

    assert outcome() is Outcome.HOLDS
    right = "expected.tuple_bytes * tuples"
    wrong = f"{right} * len(cluster.config.queries)"
    Mistake(figures._bandwidth, right, wrong).plant(monkeypatch)
    assert outcome() is Outcome.BROKEN


def test_a_controller_that_keeps_no_state_breaks_its_claim_in_a_timed_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def outcome(run: ChainRun) -> Outcome:
        state = first = start(RULES, CONFIG.workers)
        steps = []
        for measured, decision in run.concluded:
            state, _ = decide(RULES, state, measured)
            steps.append(Logged(measured, state, decision))
        return judge_log(ControlLog(RULES, first, steps)).verdicts[0].outcome

    assert outcome(rising_and_falling()) is Outcome.HOLDS
    Mistake(LoadControl.conclude, "self._state, decided =", "_, decided =").plant(monkeypatch)
    assert outcome(rising_and_falling()) is Outcome.BROKEN
