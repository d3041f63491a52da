"""Agreement of model, simulation and Spark's operators on one drawn case, and its claims."""

from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar

import pytest
from hypothesis import example

from model.checking.accounts import Place
from model.checking.claims import ClaimSet, Outcome
from model.vocabulary import Trace, Workload
from properties.promised import Reached
from properties.reached_cases import count_troubles
from sim.kernel.run import TimedRun
from straggler.judging.judge import broken_sentences
from straggler.rooms import find_room

TestT = TypeVar("TestT", bound=Callable[..., None])


class Agreement:
    """Comparisons of a room, which count the cases that they reach."""

    def __init__(self, name: str, reached: Reached) -> None:
        self.room, self.reached = find_room(name), reached

    def of_operator(self, case: Workload) -> None:
        """Compare Spark's operator in process with the model, and judge the model's claims."""
        expected = self.room.reference()(case)
        self.of_steps(case, expected)
        self.keeps_claims(case, expected)

    def of_steps(self, case: Workload, expected: Trace) -> None:
        """Compare what Spark's operator records in process with a trace of the model."""
        observed, kinds = self.room.in_process()(case), self.room.in_process_step_types
        self._compare(case, expected, observed, kinds)
        if {*kinds} == {*self.room.step_types}:  # then no rounding is allowed, either
            assert observed.digest() == expected.digest()

    def of_run(self, run: TimedRun) -> None:
        """Compare a timed run with the model, step by step, and judge the claims on it."""
        expected = self.room.reference()(run.workload)
        self._compare(run.workload, expected, run.trace, self.room.step_types)
        # Values are whole numbers: every sum is exact, and so is the trace.
        assert run.trace.digest() == expected.digest()
        self.keeps_claims(run.workload, run.trace)
        self.reached.add(count_troubles(run))

    def keeps_claims(self, case: Workload, trace: Trace) -> None:
        """Assert that no claim of the room is broken; count those that hold, and their cases."""
        judged = self.room.check(case, trace)
        if broken := broken_sentences(judged.verdicts):
            pytest.fail("\n".join(broken), pytrace=False)
        tested = [each for each in judged.verdicts if each.outcome is Outcome.HOLDS]
        self.reached.add({each.claim: 1 for each in tested if each.occurred})
        self.reached.add(judged.guards)

    def _compare(
        self, case: Workload, expected: Trace, observed: Trace, kinds: Collection[type]
    ) -> None:
        found = self.room.compare(case, expected, observed, kinds, ())
        if found.mismatches:
            pytest.fail("\n".join(found.sentences), pytrace=False)


def put_to_the_test(claims: ClaimSet[Any]) -> tuple[str, ...]:
    """Return the claims of a room, which have to hold somewhere, and the cases they need.

    Rows have to be in every place that rows of the room have.
    """
    places = {place.case for place in Place} & claims.cases.keys()
    return (*claims.guards, *sorted({*claims.guards.values(), *places}))


def telling(cases: Iterable[Workload]) -> Callable[[TestT], TestT]:
    """Decorate a property of a ``case``: it also gets these, which draws would rarely meet."""

    def decorate(test: TestT) -> TestT:
        for case in cases:
            test = example(case=case)(test)
        return test

    return decorate
