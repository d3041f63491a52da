"""The course of one window: when it changed, its answer at a batch end, and what joined it."""

from collections.abc import Iterable, Sequence
from itertools import combinations, islice
from typing import NamedTuple

from model.vocabulary.windows import WindowQuery
from model.windows.evidence import AcceptedTuple, Observation, Tick, Truth, WindowId

SOME = 1_000
"""Largest number of readings of an ambiguous redelivery that are tried."""


class CurrentAnswer(NamedTuple):
    """The answer of a window at some batch end; revision 0 is the stream's own."""

    value: float
    n: int
    revision: int


def changes(
    observed: Observation[Tick], window: WindowId, found: Sequence[AcceptedTuple], closed: int
) -> list[int]:
    """Return the batches, from the closing on, in which the window or its answer changed.

    A pair that becomes late makes no answer wrong that was right before.
    """
    changes = {closed}
    changes.update(arrived.batch for arrived in found)
    changes.update(result.batch for result in observed.results.get(window, ()))
    changes.update(revision.batch for revision in observed.revisions.get(window, ()))
    for batches in observed.cleared.get(window, {}).values():
        changes.update(batches)
    return sorted(batch for batch in changes if batch >= closed)


def current(observed: Observation[Tick], window: WindowId, batch: int) -> CurrentAnswer | None:
    """Return the latest revision at a batch end, or else the stream's answer, if any."""
    revisions = [
        CurrentAnswer(revision.value, revision.n, revision.revision)
        for revision in observed.revisions.get(window, ())
        if revision.batch <= batch
    ]
    results = [
        CurrentAnswer(result.value, result.n_rcv, 0)
        for result in observed.results.get(window, ())
        if result.batch <= batch
    ]
    if revisions:
        return max(revisions, key=lambda current: current.revision)
    return results[-1] if results else None


def is_right(
    truth: Truth[WindowQuery], answer: CurrentAnswer | None, values: Sequence[float]
) -> bool:
    """Return whether an answer is that of all these values; without values there is none."""
    if answer is None or not values:
        return answer is None and not values
    return answer.n == len(values) and truth.is_right(answer.value, values)


def in_time(
    truth: Truth[WindowQuery], observed: Observation[Tick], window: WindowId, n_rcv: int
) -> Iterable[Sequence[float]]:
    """Return every possible list of the values that were not late for the window.

    A tuple in time may be late when it is delivered again. The batch tells both deliveries apart;
    in one batch the late pair may mean either, and up to SOME choices are tried.
    """
    late = observed.late.get(window, {})
    sure: list[float] = []
    unsure: list[float] = []
    for arrived in truth.windows.get(window, ()):
        deliveries = truth.deliveries.get((window[0], arrived.source_id), ())
        late_in = late.get(arrived.source_id, ())
        if not late_in or (deliveries and arrived.batch not in late_in):
            sure.append(arrived.value)
        elif deliveries.count(arrived.batch) > 1:
            unsure.append(arrived.value)
    chosen_n = min(max(0, n_rcv - len(sure)), len(unsure) + 1)  # one too many: there is no choice
    choices = combinations(unsure, chosen_n)
    return ([*sure, *chosen] for chosen in islice(choices, SOME))
