"""Bugs that break named claims of a room, and the workloads on which they show."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from itertools import islice
from typing import NamedTuple

import pytest

from model.checking.claims import COMPLETE, Outcome, Recording
from model.vocabulary import Trace, Workload
from straggler.rooms import find_room
from straggler.strategies.examples import cases_of, collect
from tests.quality.mistakes import Mistake

SEED = 11
CASES = 120
"""Drawn workloads of a room."""
STOPS = (ArithmeticError, AssertionError, LookupError, RuntimeError, ValueError)
"""Errors of a producer that its bug stops: there is no trace to judge."""

Run = Callable[[Workload], Trace]


class Bug(NamedTuple):
    """A planted bug, and claims that it breaks."""

    name: str
    claims: tuple[str, ...]
    mistake: Mistake


def workloads(room: str) -> Iterator[Workload]:
    """Yield the examples of a room's variants, then drawn workloads, the same ones every time."""
    for variant in find_room(room).explorer.variants.values():
        yield variant.example
    yield from _drawn(room)


def workload_of(room: str, number: int) -> Workload:
    """Return a workload of :func:`workloads` by its number."""
    return next(islice(workloads(room), number, None))


@cache
def _drawn(room: str) -> list[Workload]:
    drawn = collect(cases_of(room), CASES, SEED)
    if room == "grouping":  # few drawn routers have heavy keys with sets of their own
        tag = [each.with_(config={**each.config, "policy": "tag"}) for each in drawn[::3]]
        drawn = [each for pair in zip(tag, drawn, strict=False) for each in pair]
    return drawn


def broken(
    room: str, workload: Workload, trace: Trace, recording: Recording = COMPLETE
) -> set[str]:
    """Return the claims of a room that are broken on a trace."""
    verdicts = find_room(room).check(workload, trace, recording=recording).verdicts
    return {each.claim for each in verdicts if each.outcome is Outcome.BROKEN}


def assert_breaks(room: str, run: Run, bug: Bug, recording: Recording = COMPLETE) -> None:
    """Assert that a bug breaks its claims, on workloads where nothing is broken without it.

    The bug is planted while the producer runs, and is gone when the claims judge.
    """
    left = set(bug.claims)
    for number, found in shown_by(room, run, bug, recording):
        left -= found
        workload = workload_of(room, number)
        assert broken(room, workload, run(workload), recording) == set()
    assert not left, f"{bug.name} does not break {left}"


def shown_by(
    room: str, run: Run, bug: Bug, recording: Recording = COMPLETE
) -> Iterator[tuple[int, set[str]]]:
    """Yield the numbers of the first workloads that show a bug, and what is broken on each.

    Every claim of the bug is broken on one of them at least, if there is such a workload.
    """
    left = set(bug.claims)
    for number, workload in enumerate(workloads(room)):
        trace = run_with(bug.mistake, run, workload)
        found = set() if trace is None else broken(room, workload, trace, recording)
        if left & found:
            left -= found
            yield number, found
        if not left:
            return


def run_with(mistake: Mistake, run: Run, workload: Workload) -> Trace | None:
    """Return the trace of a producer that makes a mistake; None if the mistake stops it."""
    with pytest.MonkeyPatch.context() as monkeypatch, suppress(*STOPS):
        mistake.plant(monkeypatch)
        return run(workload)
    return None
