"""Promise 4 of docs/grouping.md: partial aggregates and answers are those of the tuples.

Rules of this file:

* Values are collected by window, key and instance, and every aggregate is computed from all of
  them at once; nothing is merged here.
* Sums that depend on the order of their values are compared within rounding, everything else
  exactly.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import fsum, isclose, isfinite

from model.grouping.evidence import Evidence
from model.vocabulary.grouping import REASON_NOT_FINITE, Answer, Partial, Rejected
from model.windows.evidence import has_exact_sums

ROUNDING = 1e-9
"""Of a sum, as a share of the sum of absolute values."""

Place = tuple[int, str, int]
"""Window, key, instance."""


def values_of(seen: Evidence) -> Mapping[Place, list[float]]:
    """What the instances got, by the routes of the trace; -1 for arrivals that went nowhere."""
    found: dict[Place, list[float]] = {}
    for window in seen.windows:
        for event in window.arrivals:
            if isfinite(event.value):
                at = seen.instance(event)
                place = (window.number, event.key, -1 if at is None else at)
                found.setdefault(place, []).append(event.value)
    return found


def partials(seen: Evidence) -> Iterator[str]:
    """What speaks against partial aggregates."""
    left = Counter((each.window, each.key, each.instance) for each in seen.trace.of(Partial))
    by_place = {(each.window, each.key, each.instance): each for each in seen.trace.of(Partial)}
    for place, values in values_of(seen).items():
        name = f"key {place[1]!r} in window {place[0]} at instance {place[2]}"
        if left.pop(place, 0) != 1:
            yield f"There is not one partial aggregate of {name}."
        elif not _is_of(by_place[place], values):
            yield f"The partial aggregate of {name} is wrong; it got {_shown(values)}."
    for window, key, instance in sorted(left):
        yield f"Instance {instance} has a partial aggregate of key {key!r} in window {window}."


def answers(seen: Evidence) -> Iterator[str]:
    """What speaks against answers."""
    left = Counter((each.window, each.key) for each in seen.trace.of(Answer))
    by_key = {(each.window, each.key): each for each in seen.trace.of(Answer)}
    together: dict[tuple[int, str], list[float]] = {}
    for (window, key, _), values in values_of(seen).items():
        together.setdefault((window, key), []).extend(values)
    for found, values in together.items():
        name = f"key {found[1]!r} in window {found[0]}"
        if left.pop(found, 0) != 1:
            yield f"There is not one answer for {name}."
            continue
        answer = by_key[found]
        top = tuple(sorted(values)[::-1][: seen.config.top])
        if not _is_of(answer, values) or (answer.distinct, answer.top) != (len({*values}), top):
            yield f"The answer for {name} is wrong; its values are {_shown(values)}."
    for window, key in sorted(left):
        yield f"There is an answer for key {key!r} in window {window}, which has no tuple."


def rejections(seen: Evidence) -> Iterator[str]:
    """What speaks against rejections."""
    arrivals = [event for window in seen.windows for event in window.arrivals]
    expected = Counter(
        Rejected(event.seq, REASON_NOT_FINITE) for event in arrivals if not isfinite(event.value)
    )
    found = Counter(seen.trace.of(Rejected))
    for what, counted in (("not rejected", expected - found), ("rejected", found - expected)):
        for each in sorted(counted.elements()):
            yield f"Arrival {each.seq} is {what}: {each.reason}."


def _is_of(found: Partial | Answer, values: Sequence[float]) -> bool:
    counts = (found.n, found.least, found.greatest) == (len(values), min(values), max(values))
    if has_exact_sums(values):
        return counts and found.total == sum(values)
    slack = ROUNDING * fsum(abs(value) for value in values)
    return counts and isclose(found.total, fsum(values), rel_tol=0, abs_tol=slack)


def _shown(values: Sequence[float]) -> str:
    more = ", ..." if len(values) > 8 else ""
    return ", ".join(f"{value:g}" for value in values[:8]) + more
