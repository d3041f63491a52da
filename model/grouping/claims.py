"""The promises of docs/grouping.md, section 8, judged on any trace.

Rules of this file:

* A trace is judged against its workload by counting and nested loops, without any router.
* Every aggregate is computed from all values at once, without merging. Sums that depend on
  the order of their values are compared within rounding, everything else exactly.
* Balance is about probabilities: ``balance_claims`` needs the distribution of the keys.
* Counts of heavy keys, candidates and the choice among them, partial aggregates and rejections are
  judged by comparison with the reference alone.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import fsum, isclose, isfinite

from model.checking.accounts import row_cases, row_claim
from model.checking.claims import COMPLETE, Claim, ClaimSet, Judgement, Recording
from model.grouping.evidence import PLACES, Evidence, evidence_of
from model.vocabulary import Trace, Workload
from model.vocabulary.grouping import (
    Answer,
    Heavy,
    Rejected,
    Route,
)
from model.windows.evidence import has_exact_sums

ONCE = "every arrival goes to one instance"
FEW = "few instances a key"
ANSWERS = "answers are those of all tuples"

TWO_OR_LESS = ("pkg", "w-choices", "tag-literal", "tag")
"""Policies under which a light key has at most 2 candidates."""

ROUNDING = 1e-9
"""Error allowed in a sum, relative to the sum of absolute values."""

# ------------------------------------------------------------------------ promise 1: the routes


def _refute_once(seen: Evidence) -> Iterator[str]:
    """Yield arrivals that did not go to exactly one instance, from their sender."""
    known = set()
    for window in seen.windows:
        for event in window.arrivals:
            known.add(event.seq)
            routes = seen.routes.get(event.seq, [])
            if len(routes) != 1:
                yield f"Arrival {event.seq} (key {event.key!r}) went to {len(routes)} instances."
            elif not 0 <= routes[0].instance < seen.config.instances:
                yield f"Arrival {event.seq} went to unknown instance {routes[0].instance}."
            elif routes[0].sender != seen.sender(event):
                yield (
                    f"Arrival {event.seq} was routed by sender {routes[0].sender}; "
                    f"it came to sender {seen.sender(event)}."
                )
    for seq in sorted(set(seen.routes) - known):
        yield f"Arrival {seq} was routed, but the workload has no such arrival."


# ------------------------------------------------------------ promise 3: few instances a key


def _refute_few(seen: Evidence) -> Iterator[str]:
    """Yield keys with too many instances, heavy keys with too few, and windows above the bound."""
    n = seen.config.instances
    for window in seen.windows:
        places = seen.places(window)
        named = {each.key: each.candidates for each in seen.heavy.get(window.number, [])}
        for key in sorted(set(places) - set(named)):
            if len(places[key]) > 2:
                yield f"The light key {key!r} went to more than 2 instances: {sorted(places[key])}."
        for key, candidates in sorted(named.items()):
            if seen.config.policy == "tag" and len(candidates) < min(2, n):
                yield f"The heavy key {key!r} has only the candidates {candidates}."
        total = sum(len(named.get(key, places[key])) for key in places)
        bound = 2 * len(places) + round(1 / seen.config.theta_share) * (n - 2)
        if seen.config.theta is None and n > 1 and total > bound:
            yield f"{len(places)} keys have {total} candidates in window {window.number}."


# ------------------------------------------------------------------------- promise 4: the answers


def _values_of(seen: Evidence) -> Mapping[tuple[int, str], list[float]]:
    """Return the values of a window and key that an aggregate counts."""
    found: dict[tuple[int, str], list[float]] = {}
    for window in seen.windows:
        for event in window.arrivals:
            if isfinite(event.value):
                found.setdefault((window.number, event.key), []).append(event.value)
    return found


def _refute_answers(seen: Evidence) -> Iterator[str]:
    left = Counter((each.window, each.key) for each in seen.trace.of(Answer))
    by_key = {(each.window, each.key): each for each in seen.trace.of(Answer)}
    for found, values in _values_of(seen).items():
        name = f"key {found[1]!r} in window {found[0]}"
        if left.pop(found, 0) != 1:
            yield f"There is no single answer for {name}."
            continue
        answer = by_key[found]
        top = tuple(sorted(values)[::-1][: seen.config.top])
        is_right = _is_aggregate_of(answer, values)
        if not is_right or (answer.distinct, answer.top) != (len({*values}), top):
            yield f"The answer for {name} is wrong; its values are {_listed(values)}."
    for window, key in sorted(left):
        yield f"There is an answer for key {key!r} in window {window}, which has no tuple."


def _is_aggregate_of(found: Answer, values: Sequence[float]) -> bool:
    counts = (found.n, found.least, found.greatest) == (len(values), min(values), max(values))
    if has_exact_sums(values):
        return counts and found.total == sum(values)
    slack = ROUNDING * fsum(abs(value) for value in values)
    return counts and isclose(found.total, fsum(values), rel_tol=0, abs_tol=slack)


def _listed(values: Sequence[float]) -> str:
    more = ", ..." if len(values) > 8 else ""
    return ", ".join(f"{value:g}" for value in values[:8]) + more


# ---------------------------------------------------------------------------------------- guards


def _tuples_of_heavy_keys(seen: Evidence) -> int:
    heavy = {(each.window, each.key) for each in seen.trace.of(Heavy)}
    return sum(
        (window.number, event.key) in heavy for window in seen.windows for event in window.arrivals
    )


def _changed_tables(seen: Evidence) -> int:
    heavy = [{each.key for each in seen.heavy.get(window.number, ())} for window in seen.windows]
    return sum(before != after for before, after in pairwise(heavy))


def _windows_with_new_times(seen: Evidence) -> int:
    times_us = [seen.config.times_of(window.first_batch) for window in seen.windows]
    return sum(before != after for before, after in pairwise(times_us))


def _keys_at_several_instances(seen: Evidence) -> int:
    return sum(len(at) > 1 for window in seen.windows for at in seen.places(window).values())


# ------------------------------------------------------------------------------------- the claims

CLAIMS: ClaimSet[Evidence] = ClaimSet(
    (
        Claim(ONCE, "several senders", _refute_once, needs=((Route,),)),
        Claim(
            FEW,
            "heavy keys with more than 2 candidates",
            _refute_few,
            lambda seen: seen.config.policy in TWO_OR_LESS,
            needs=((Route,), (Heavy,)),
        ),
        Claim(
            ANSWERS,
            "keys at several instances",
            _refute_answers,
            needs=((Answer,),),
            of_answers=True,
        ),
        row_claim(
            lambda seen: seen.accounts, "keys at several instances", ((Answer,), (Rejected,))
        ),
    ),
    {
        "tuples of heavy keys": _tuples_of_heavy_keys,
        "heavy keys with more than 2 candidates": lambda seen: sum(
            len(each.candidates) > 2 for each in seen.trace.of(Heavy)
        ),
        "rebalances that changed the table": _changed_tables,
        "windows with new times": _windows_with_new_times,
        "several senders": lambda seen: int(seen.config.senders > 1),
        "full summaries": Evidence.full_summaries,
        "keys at several instances": _keys_at_several_instances,
        **row_cases(lambda seen: seen.accounts, *PLACES),
    },
)


def judge(workload: Workload, trace: Trace, recording: Recording = COMPLETE) -> Judgement:
    """Judge every promise that the workload and the trace put to the test.

    A promise about steps that ``recording`` lacks is undetermined.
    """
    return CLAIMS.judge(evidence_of(workload, trace), recording)
