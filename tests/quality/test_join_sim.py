"""Planted bugs in the timed chain: the claims on its runs must catch every one of them."""

from dataclasses import replace
from functools import partial

import pytest

from model.checking.claims import Outcome
from model.join import chain, mistakes
from model.join.claims import judge
from model.join.rules import FIFO, NUMBERED, Rules, Setup, Step
from model.join.state import Action, ChainState
from model.join.state_claims import LOST, TWICE
from model.vocabulary.settings import read_settings
from properties.operators.join import SparkMachine
from sim.join import SETTINGS, simulate
from sim.join import cluster as timed
from sim.join.content import Index
from sim.join.intake import Intake
from sim.join.line import Line
from sim.join.machine import MachineOf
from sim.join.model_chain import ModelChain
from sim.join.settings import config_of, plan_of
from spark_impl.join.matching import Tuples
from spark_impl.join.messages import Block, Message
from spark_impl.join.side import Side
from spark_impl.join.worker import Worker as SparkWorker

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
FAIL = "fail worker-0 4000000 1000000"
REPLAY = "; ".join(f"replay worker-0>worker-1 {nth} 100000" for nth in range(100))


def broken(rules: Rules = NUMBERED, **settings: str) -> set[str]:
    return broken_by(partial(ModelChain, rules=rules), **settings)


def broken_by(machine: MachineOf, **settings: str) -> set[str]:
    given = read_settings({**BUSY, **settings}, SETTINGS)
    run = simulate(plan_of(given), config_of(given), 1, machine=machine)
    verdicts = judge(run.workload, run.trace).verdicts
    assert run.summary["results"]
    return {verdict.claim for verdict in verdicts if verdict.outcome is Outcome.BROKEN}


def test_without_a_bug_nothing_is_broken() -> None:
    assert broken() == set()
    assert broken(faults=FAIL) == set()
    assert broken(faults=REPLAY) == set()
    assert broken(faults=FAIL, shed="linear", capacity="20") == set()
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
def test_wrong_rules_are_caught(rules: Rules, claim: str) -> None:
    assert claim in broken(rules)


@pytest.mark.parametrize(
    "rules",
    [replace(NUMBERED, forces=False), replace(NUMBERED, drop_wm_us=mistakes.own_wm_us)],
    ids=["balance alone", "local timer"],
)
def test_a_chain_that_never_becomes_empty_is_caught(rules: Rules) -> None:
    with pytest.raises(AssertionError, match="the chain stands still"):
        broken(rules, block_size="7")  # so that less than a block is left


def test_a_block_that_is_joined_again_is_caught() -> None:
    """A protocol without sequence numbers needs links that repeat nothing."""
    assert broken(FIFO) == set()
    assert TWICE in broken(FIFO, faults=REPLAY)


def test_messages_of_an_epoch_that_failed_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Line, "forget", lambda self: self._looking.clear())
    assert broken(FIFO) == set()
    assert TWICE in broken(FIFO, faults="fail worker-0 4000000 1")


def test_results_of_an_epoch_that_failed_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = timed.ChainCluster.fail

    def keeps_its_results(self: timed.ChainCluster, worker: int) -> None:
        pending = self._pending
        right(self, worker)
        self._pending = pending

    monkeypatch.setattr(timed.ChainCluster, "fail", keeps_its_results)
    assert broken(faults=FAIL) == {TWICE}


def test_a_failure_that_takes_nothing_again_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Intake.begin

    def goes_on(self: Intake, epoch: int, first: int, at: int) -> None:
        right(self, epoch, first, max(at, self._decided))

    monkeypatch.setattr(Intake, "begin", goes_on)
    assert LOST in broken(faults=FAIL)


def test_a_failure_that_keeps_what_was_admitted_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tuples that come again after the failure are then known, and are joined with nothing."""
    monkeypatch.setattr("model.join.oracle.Gate.go_back", lambda _self, _mark: None)
    assert LOST in broken(faults=FAIL)


def test_a_silent_merge_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = chain.merge

    def merge(setup: Setup, state: ChainState, action: Action) -> Step:
        after = right(setup, state, action)
        assert isinstance(setup.content, Index)
        setup.content.take()
        return after

    table = dict(chain.TABLE)
    table["merge"] = table["merge"]._replace(effect=merge)
    monkeypatch.setattr(chain, "TABLE", table)
    scaled = {"scale": "yes", "capacity": "300", "in_after_us": "1000000", "tau0": "0.35"}
    assert LOST in broken(NUMBERED, **scaled)


# ----------------------------------------------------------------------------- Spark's own workers


def test_without_a_bug_spark_s_workers_break_nothing() -> None:
    for faults in ("none", FAIL, REPLAY):
        assert broken_by(SparkMachine, faults=faults) == set()


def test_copies_that_spark_s_workers_do_not_meet_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = Side.send_oldest

    def forgets(self: Side, wanted: int, _numbers: object) -> Tuples:
        return right(self, wanted, None)

    monkeypatch.setattr(Side, "send_oldest", forgets)
    assert LOST in broken_by(SparkMachine)


def test_a_block_that_spark_s_workers_take_twice_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = SparkWorker.receive

    def takes_again(self: SparkWorker, sender: int, *given: Message) -> None:
        for each in given:
            next_one = self.lanes[each.stream].received + 1
            is_block = isinstance(each, Block)
            right(self, sender, each._replace(number=next_one) if is_block else each)  # type: ignore[call-arg]  # the planted step has another field

    monkeypatch.setattr(SparkWorker, "receive", takes_again)
    assert broken_by(SparkMachine) == set()
    # They have then received more blocks than were sent, and wait for ever.
    with pytest.raises(AssertionError, match="the chain stands still"):
        broken_by(SparkMachine, faults=REPLAY)
