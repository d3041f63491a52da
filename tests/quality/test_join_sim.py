"""Planted bugs in the timed chain: the claims on its runs must catch every one of them."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from model.claims import Outcome
from model.join import chain, elastic, mistakes
from model.join.claims import judge
from model.join.rules import FIFO, NUMBERED, Rules
from model.join.scope_claims import LOST, TWICE
from model.join.state import Action, Setup, State, Step
from sim.join import Run, from_settings
from sim.join import timed as room
from sim.join.content import Index
from sim.join.intake import Source

BUSY = {
    "scenario": "steady",
    "seconds": "10",
    "rate_r_hz": "40",
    "rate_s_hz": "40",
    "window_us": "1000000",
    "block_size": "4",
    "predicate": "apart",
    "blocks": "fixed",
    "tiers": "elsewhere",
    "tuple_bytes": "10000",
    "workers": "3",
    "trigger_interval_us": "2500000",
}
"""Slow links, so that blocks of both streams are often under way at once."""


def broken(**settings: str) -> set[str]:
    timed: Run = from_settings({**BUSY, **settings}, 1)
    verdicts = judge(timed.workload, timed.trace).verdicts
    assert timed.summary["results"]
    return {verdict.claim for verdict in verdicts if verdict.outcome is Outcome.BROKEN}


def with_rules(rules: Rules) -> Callable[[room.Room], Setup]:
    right = room.Room._setup
    return lambda self: replace(right(self), rules=rules)


def test_without_a_bug_nothing_is_broken() -> None:
    assert broken() == set()
    assert broken(fail_at_us="4000000") == set()
    assert broken(scale="yes", capacity="40", out_after_us="1000000") == set()


@pytest.mark.parametrize(
    ("rules", "claim"),
    [
        (replace(FIFO, visible=lambda _worker, _block: ()), LOST),
        (replace(FIFO, visible=mistakes.both_visible), TWICE),
        (replace(NUMBERED, drop_wm_us=mistakes.source_wm_us), LOST),
    ],
    ids=["no copy", "both visible", "watermark of the source"],
)
def test_wrong_rules_are_caught(rules: Rules, claim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room.Room, "_setup", with_rules(rules))
    assert claim in broken()


@pytest.mark.parametrize(
    "rules",
    [replace(NUMBERED, forces=False), replace(NUMBERED, drop_wm_us=mistakes.own_wm_us)],
    ids=["balance alone", "local timer"],
)
def test_a_chain_that_never_becomes_empty_is_caught(
    rules: Rules, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room.Room, "_setup", with_rules(rules))
    with pytest.raises(AssertionError, match="the chain stands still"):
        broken(block_size="7")  # so that less than a block is left


def test_results_of_an_epoch_that_failed_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = room.Room._fail

    def keeps_its_results(self: room.Room, for_us: int) -> None:
        pending = self._pending
        right(self, for_us)
        self._pending = pending

    monkeypatch.setattr(room.Room, "_fail", keeps_its_results)
    assert broken(fail_at_us="4000000") == {TWICE}


def test_a_failure_that_takes_nothing_again_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Source.begin

    def goes_on(self: Source, epoch: int, at: int) -> None:
        right(self, epoch, max(at, self.at))

    monkeypatch.setattr(Source, "begin", goes_on)
    assert LOST in broken(fail_at_us="4000000")


def test_a_silent_merge_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = elastic.merge

    def merge(setup: Setup, state: State, action: Action) -> Step:
        after = right(setup, state, action)
        assert isinstance(setup.content, Index)
        setup.content.take()
        return after

    table = dict(chain.TABLE)
    table["merge"] = table["merge"]._replace(effect=merge)
    monkeypatch.setattr(chain, "TABLE", table)
    scaled = {"scale": "yes", "capacity": "300", "in_after_us": "1000000", "tau0": "0.35"}
    assert LOST in broken(**scaled)
