"""Promises 2 and 3 of docs/grouping.md: heavy keys, and how few instances a key has.

Rules of this file:

* Frequencies are counted exactly, from the arrivals of the window before.
"""

from collections.abc import Iterator
from itertools import pairwise

from model.grouping.evidence import Evidence
from model.grouping.summary import counters
from model.vocabulary.grouping import Heavy

ROUNDING = 1e-9
"""Of theta, as a share of itself."""


def heavy(seen: Evidence) -> Iterator[str]:
    """What speaks against the heavy keys and their counts."""
    for number in sorted(set(seen.heavy) - {window.number for window in seen.windows[1:]}):
        yield f"Window {number} has heavy keys, and no window before it or no tuple."
    for before, window in pairwise(seen.windows):
        named = seen.heavy.get(window.number, [])
        n, f = len(before.arrivals), before.frequencies
        for each in named:
            yield from (
                f"Heavy key {each.key!r} of window {window.number} {what}."
                for what in _against(seen, each, f[each.key], n)
            )
        keys = [each.key for each in named]
        for key in sorted(set(f) - set(keys)):
            if f[key] > seen.config.theta_share * n:
                yield (
                    f"Key {key!r} is not heavy in window {window.number}, with "
                    f"{f[key]} of {n} tuples before it."
                )
        if len(keys) > len(set(keys)) or len(keys) * seen.config.theta_share > 1 + ROUNDING:
            different = len(set(keys))
            yield f"Window {window.number} has {len(keys)} heavy keys, {different} different ones."


def _against(seen: Evidence, named: Heavy, f: int, n: int) -> Iterator[str]:
    """What speaks against a heavy key with true frequency f of n."""
    if named.tuples != n:
        yield f"is said to be one of {named.tuples} tuples; there were {n}"
    if not named.counted - named.error <= f <= named.counted:
        yield f"was counted {named.counted}, at most {named.error} too many; it was there {f} times"
    if named.error * counters(seen.config) > n:
        yield f"may be counted {named.error} too many, more than {n} / {counters(seen.config)}"
    if named.counted <= seen.config.theta_share * n:
        yield f"was counted {named.counted} of {n}, which is not heavy"


def few(seen: Evidence) -> Iterator[str]:
    """What speaks against few instances a key, under policies that promise it."""
    n = seen.config.instances
    for window in seen.windows:
        places = seen.places(window)
        named = {each.key: each.candidates for each in seen.heavy.get(window.number, [])}
        for key in sorted(set(places) - set(named)):
            if len(places[key]) > 2:
                yield f"The light key {key!r} went to {sorted(places[key])}."
        for key, candidates in sorted(named.items()):
            if seen.config.policy == "tag" and len(candidates) < min(2, n):
                yield f"The heavy key {key!r} has the candidates {candidates} alone."
        total = sum(len(named.get(key, places[key])) for key in places)
        bound = 2 * len(places) + 5 * n * n - 10 * n
        if seen.config.theta is None and n > 1 and total > bound:
            yield f"{len(places)} keys have {total} candidates in window {window.number}."
