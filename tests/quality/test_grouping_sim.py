"""Planted bugs in timed runs of room ``grouping``: the trace gives them away.

The stream has full summaries, hot keys that come and go, unequal instances on several tiers,
measured times and failures; it is long enough for every mistake to be made in it.
"""

from collections.abc import Sequence
from functools import partial

import pytest

from model.checking.claims import Outcome
from model.grouping import make_system
from model.grouping.claims import ANSWERS, LEAST, PARTIALS, judge
from model.grouping.machine import Machine, Saved
from model.grouping.variants import AGREEMENT, VARIANTS
from model.vocabulary import Event, Step
from sim.grouping import TimedRun, simulate
from sim.grouping.machine import MachineOf
from sim.grouping.settings import prepare

SETTINGS = {
    "scenario": "drift",
    "tuples": "3000",
    "keys": "400",
    "zipf": "0.8",
    "instances": "8",
    "window_tuples": "750",
    "batch_tuples": "50",
    "eps": "0.0123",  # 82 counters: not 1 / eps of them, to the last digit
    "tiers": "elsewhere,process,rack",
    "faults": "fail worker-1 60000 9000; fail worker-2 130000 500; fail worker-0 170000 5000",
}
ASKED = prepare(SETTINGS)


def timed(machine: MachineOf = Machine, policy: str = "tag") -> TimedRun:
    return simulate(ASKED.plan, ASKED.with_policy(policy), 3, machine=machine)


def broken(run: TimedRun) -> set[str]:
    verdicts = judge(run.workload, run.trace).verdicts
    return {verdict.claim for verdict in verdicts if verdict.outcome is Outcome.BROKEN}


def agrees(run: TimedRun) -> bool:
    return list(run.trace.steps()) == list(make_system()(run.workload).steps())


@pytest.mark.parametrize("name", VARIANTS)
def test_a_planted_bug_of_the_senders_is_found_in_a_timed_run(name: str) -> None:
    variant = VARIANTS[name]
    policy = variant.example.config.get("policy", "tag")
    right = timed(policy=policy)
    assert agrees(right)
    assert not broken(right)
    wrong = timed(partial(Machine, rules=variant.rules), policy)
    assert not agrees(wrong)
    assert broken(wrong) or variant.promise == AGREEMENT


# ------------------------------------------------------------------------------------ restarts


class ForgetsLoads(Machine):
    """A planted bug: senders start the window anew after a restart."""

    def restore(self, saved: object) -> None:
        """Go on with loads of 0."""
        assert isinstance(saved, Saved)
        states = [state._replace(loads=(0,) * len(state.loads)) for state in saved.states]
        super().restore(saved._replace(states=tuple(states)))


class ForgetsSummaries(Machine):
    """A planted bug: a restart loses what senders have counted before the micro-batch."""

    def restore(self, saved: object) -> None:
        """Go on with empty summaries."""
        assert isinstance(saved, Saved)
        super().restore(saved._replace(summaries=tuple({} for _ in saved.summaries)))


class ForgetsRestarts(Machine):
    """A planted bug: senders do not go back, so that tuples are routed twice after a restart."""

    def restore(self, saved: object) -> None:
        """Do nothing."""


class ServesTwice(Machine):
    """An instance takes in a tuple twice if it was the last one before a restart."""

    last: tuple[int, int, Event] | None = None

    def serve(self, instance: int, window: int, event: Event) -> Sequence[Step]:
        """Note what is served."""
        self.last = instance, window, event
        return super().serve(instance, window, event)

    def restore(self, saved: object) -> None:
        """Let the instance take it in once more."""
        super().restore(saved)
        if self.last is not None:
            super().serve(*self.last)


class LearnsByTuple(Machine):
    """A planted bug: a tuple enters the summary at once, not with its micro-batch."""

    def route(self, sender: int, key: str) -> int:
        """Route, and learn."""
        instance = super().route(sender, key)
        self.end_batch(sender)
        return instance


class Late(Machine):
    """A window is over a tuple too late."""

    def is_full(self, tuples: int) -> bool:
        """Take the window for larger than it is."""
        return super().is_full(tuples - 1)


@pytest.mark.parametrize(
    ("machine", "claims"),
    [
        (ForgetsLoads, {LEAST}),
        (ForgetsSummaries, set()),
        (ForgetsRestarts, {LEAST}),
        (ServesTwice, {PARTIALS, ANSWERS}),
        (LearnsByTuple, set()),
        (Late, set()),
    ],
)
def test_a_planted_bug_of_a_timed_machine_is_found(machine: MachineOf, claims: set[str]) -> None:
    wrong = timed(machine)
    assert not agrees(wrong)
    assert claims <= broken(wrong)
