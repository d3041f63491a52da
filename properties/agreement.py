"""Agreement of model, simulation and Spark's operators on one drawn case, and its claims."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeVar

import pytest
from hypothesis import example

from model.checking.claims import ClaimSet
from model.vocabulary import Trace, Workload
from properties.promised import Reached
from properties.reached_cases import count_troubles
from sim.kernel.plan import Plan
from sim.kernel.run import TimedRun
from straggler.judging.judge import broken_sentences
from straggler.rooms import Room, find_room

WhenFull = Literal["block", "drop"]
TestT = TypeVar("TestT", bound=Callable[..., None])


class Agreement(NamedTuple):
    """A room, and what has to be equal in it."""

    room: Room
    reached: Reached

    @classmethod
    def of(cls, name: str, reached: Reached) -> "Agreement":
        """Return the agreement of a room."""
        return cls(find_room(name), reached)

    def of_operator(self, case: Workload) -> None:
        """Compare Spark's operator in process with the model, and judge the model's claims."""
        expected = self.room.reference()(case)
        self._compare(case, expected, self.room.in_process(case), self.room.in_process_step_types)
        self.keeps_claims(case, expected)

    def of_run(self, run: TimedRun) -> None:
        """Compare a timed run with the model, step by step, and judge the claims on it."""
        expected = self.room.reference()(run.workload)
        self._compare(run.workload, expected, run.trace, self.room.step_types)
        self.keeps_claims(run.workload, run.trace)
        self.reached.add({name: n for name, n in count_troubles([run]).items() if n})

    def keeps_claims(self, case: Workload, trace: Trace) -> None:
        """Assert that no claim of the room is broken; count the cases that put them to the test."""
        judged = self.room.check(case, trace)
        if broken := broken_sentences(judged.verdicts):
            pytest.fail("\n".join(broken), pytrace=False)
        self.reached.add(judged.guards)

    def _compare(
        self, case: Workload, expected: Trace, observed: Trace, kinds: Collection[type]
    ) -> None:
        found = self.room.compare(case, expected, observed, kinds)
        if found.mismatches:
            pytest.fail("\n".join(found.sentences), pytrace=False)


def guards_of(claims: ClaimSet[Any]) -> tuple[str, ...]:
    """Return the cases without which some claim would hold untested."""
    return tuple(sorted(set(claims.guards.values())))


def crowded(plan: Plan, when_full: WhenFull) -> Plan:
    """Return a plan whose workers have room for one tuple, and block or drop all others."""
    full = [replace(each, queue_limit=1, when_full=when_full) for each in plan.cluster.workers]
    return replace(plan, cluster=replace(plan.cluster, workers=tuple(full)))


def telling(cases: Iterable[Workload]) -> Callable[[TestT], TestT]:
    """Decorate a property of a ``case``: it also gets these, which draws would rarely meet."""

    def decorate(test: TestT) -> TestT:
        for case in cases:
            test = example(case=case)(test)
        return test

    return decorate
