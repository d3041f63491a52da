"""The promises of docs/join.md, sections 10 and 14, judged on any trace.

Rules of this file:

* A trace is judged against its workload and ``oracle``, which knows no chain. The model's chain
  only judges the recorded steps of the protocol, if there are any.
* Without a flush some pairs may still be owed, and nothing says which: then pairs may be missing,
  but none may be wrong or come out twice.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from model.checking.accounts import Accounts, row_cases, row_claim, settle
from model.checking.claims import COMPLETE, SHOWN, Claim, ClaimSet, Judgement, Recording
from model.join import accounts
from model.join import decision_claims as decided
from model.join import silence_claims as silent
from model.join.decision_claims import RESIZED, SHED
from model.join.oracle import Admission, QueryPair, admission, quick_matches
from model.join.replay import CLAIM as CONFORMS
from model.join.replay import validate_recording
from model.join.silence_claims import SILENCE
from model.join.state_claims import LOST, TWICE
from model.vocabulary import Event, JoinConfig, Trace, Workload
from model.vocabulary.join import PROTOCOL, Match, Rejected

WRONG = "no pair that is no result"
LIMITED = "no pair from outside of the epochs of its query"
IN_TIME = "no pair before its tuples"
REJECTIONS = "rejected is what watermark and decisions say"

# ------------------------------------------------------------------------------------- evidence


@dataclass(frozen=True)
class Evidence:
    """A workload, the truth about it, and a trace of it."""

    workload: Workload
    config: JoinConfig
    admitted: Admission
    results: Collection[QueryPair]
    forbidden: Collection[QueryPair]
    """Pairs that would be results if no query were limited to epochs."""
    trace: Trace
    counts_pairs: bool
    """Whether the pairs of every recorded step are counted again."""

    @cached_property
    def times(self) -> Counter[QueryPair]:
        """Number of times each pair came out."""
        return Counter((each.query, each.r_id, each.s_id) for each in self.trace.of(Match))

    @cached_property
    def epochs(self) -> tuple[dict[int, int], dict[int, int]]:
        """Epoch of each admitted tuple of R and of S, by identity."""
        r, s = (
            {event.source_id: epoch for event, epoch in zip(each.tuples, each.epochs, strict=True)}
            for each in (self.admitted.r, self.admitted.s)
        )
        return r, s

    @cached_property
    def distances_us(self) -> list[int]:
        """Distance in event time of the two tuples of each result."""
        r_us, s_us = (
            {event.source_id: event.event_time_us for event in each.tuples}
            for each in (self.admitted.r, self.admitted.s)
        )
        return [abs(r_us[r] - s_us[s]) for _, r, s in self.results]

    @cached_property
    def accounts(self) -> Accounts:
        """The accounts of the rows of both streams."""
        placed = accounts.place_rows(self.workload, self.admitted, self.results, self.trace)
        return settle(self.workload.arrivals, list(placed))

    @property
    def tuples(self) -> tuple[Event, ...]:
        """All admitted tuples of both streams."""
        return *self.admitted.r.tuples, *self.admitted.s.tuples

    @cached_property
    def tuples_by_key(self) -> Counter[tuple[str, str]]:
        """Number of admitted tuples, by stream and key."""
        return Counter((event.stream, event.key) for event in self.tuples)


def evidence_of(workload: Workload, trace: Trace, counts_pairs: bool) -> Evidence:
    """Compute the truth about a workload by the oracle.

    Raises ``ValueError`` with one sentence if the workload is invalid.
    """
    config = JoinConfig.from_json(workload.config)
    admitted = admission(workload)
    results = quick_matches(config, admitted)
    forbidden = set[QueryPair]()
    if config.epochs:
        forbidden = quick_matches(replace(config, epochs=()), admitted) - results
    return Evidence(workload, config, admitted, results, forbidden, trace, counts_pairs)


# ---------------------------------------------------------------------------------------- checks


def _against_twice(seen: Evidence) -> list[str]:
    pairs = [pair for pair, n in sorted(seen.times.items()) if n > 1]
    return [
        f"{sentence.removesuffix('.')}, and was found {seen.times[pair]} times."
        for pair, sentence in zip(pairs, _described(pairs, seen), strict=True)
    ]


def _against_lost(seen: Evidence) -> list[str]:
    return _described(sorted(set(seen.results) - set(seen.times)), seen)


def _against_wrong(seen: Evidence) -> list[str]:
    wrong = set(seen.times) - set(seen.results) - set(seen.forbidden)
    return _described(sorted(wrong), seen)


def _against_limited(seen: Evidence) -> list[str]:
    return _described(sorted(set(seen.times) & set(seen.forbidden)), seen)


def _described(pairs: Sequence[QueryPair], seen: Evidence) -> list[str]:
    """Return a sentence for every pair; only those that are shown have the tuples' contents.

    Finding the contents takes too long for all of them.
    """
    shown = [_describe_pair(pair, seen) for pair in pairs[:SHOWN]]
    return [*shown, *(f"{pair}." for pair in pairs[SHOWN:])]


def _describe_pair(found: QueryPair, seen: Evidence) -> str:
    query, r_id, s_id = found
    r = _describe_tuple("r", r_id, seen.admitted.r.tuples)
    s = _describe_tuple("s", s_id, seen.admitted.s.tuples)
    is_result = "a result" if found in seen.results else "no result"
    return f"{r} with {s} is {is_result} of {query!r}."


def _describe_tuple(name: str, source_id: int, tuples: Iterable[Event]) -> str:
    event = next((each for each in tuples if each.source_id == source_id), None)
    if event is None:
        return f"{name} #{source_id} (not admitted)"
    parts = f"at {event.event_time_us}, key {event.key!r}, value {event.value:g}"
    return f"{name} #{source_id} ({parts})"


def _against_in_time(seen: Evidence) -> Iterator[str]:
    """Yield matches in an epoch before the admission of both tuples, or after the last one."""
    r_epoch, s_epoch = seen.epochs
    last = sum(1 for _ in seen.workload.batches()) - (not seen.workload.flush)
    for match in seen.trace.of(Match):
        if match.r_id in r_epoch and match.s_id in s_epoch:
            first = max(r_epoch[match.r_id], s_epoch[match.s_id])
            if not first <= match.batch <= last:
                yield (
                    f"r #{match.r_id} with s #{match.s_id} was found in epoch {match.batch}; "
                    f"epochs {first} to {last} are possible."
                )


def _against_rejections(seen: Evidence) -> list[str]:
    expected, found = Counter(seen.admitted.rejected), Counter(seen.trace.of(Rejected))
    missing, extra = expected - found, found - expected
    return [
        f"{each.stream} #{each.source_id} (arrival {each.seq}) is {what}: {each.reason}."
        for what, counted in (("not rejected", missing), ("rejected", extra))
        for each in sorted(counted.elements())
    ]


# --------------------------------------------------------------------------------------- guards


def _results_across_epochs(seen: Evidence) -> int:
    r_epoch, s_epoch = seen.epochs
    return sum(r_epoch[r] != s_epoch[s] for _, r, s in seen.results)


def _keys_of_half_the_tuples(seen: Evidence) -> int:
    n = len(seen.tuples)
    return sum(2 * count > n > 3 for count in seen.tuples_by_key.values())


def _empty_streams(seen: Evidence) -> int:
    streams = seen.admitted.streams.values()
    return sum(not each.tuples for each in streams) if seen.tuples else 0


def _results_of_limited_queries(seen: Evidence) -> int:
    limited = {name for name, _, _ in seen.config.epochs}
    return sum(query in limited for query, _, _ in seen.results)


def _pairs_for_another_query(seen: Evidence) -> int:
    found = {(r, s) for _, r, s in seen.results}
    return sum((r, s) in found for _, r, s in seen.forbidden)


def _forbidden_epochs(seen: Evidence) -> Iterator[tuple[int, int, int, int | None]]:
    """Yield, for every forbidden pair, its two epochs in order and the limits of its query."""
    limits = {name: (first, last) for name, first, last in seen.config.epochs}
    r_epoch, s_epoch = seen.epochs
    for query, r, s in seen.forbidden:
        before, after = sorted((r_epoch[r], s_epoch[s]))
        yield before, after, *limits[query]


def _pairs_across_the_first_epoch(seen: Evidence) -> int:
    return sum(
        before < first <= after and (last is None or after <= last)
        for before, after, first, last in _forbidden_epochs(seen)
    )


def _pairs_across_the_last_epoch(seen: Evidence) -> int:
    return sum(
        first <= before and last is not None and before <= last < after
        for before, after, first, last in _forbidden_epochs(seen)
    )


def _protocol_steps(seen: Evidence) -> int:
    return sum(len(seen.trace.of(word)) for word in PROTOCOL)


def _changes_of_workers(seen: Evidence) -> list[tuple[int, int, int]]:
    return decided.changes(seen.workload, seen.config)


def _results_across_changes(seen: Evidence) -> int:
    """Return how many results have a change of workers between their tuples."""
    r_epoch, s_epoch = seen.epochs
    changed = [epoch for epoch, _, _ in _changes_of_workers(seen)]
    return sum(
        any(min(one, other) < epoch <= max(one, other) for epoch in changed)
        for one, other in ((r_epoch[r], s_epoch[s]) for _, r, s in seen.results)
    )


# --------------------------------------------------------------------------------------- claims

_OF_MATCHES: Mapping[str, Any] = {"needs": ((Match,),), "of_answers": True}

CLAIMS: ClaimSet[Evidence] = ClaimSet(
    (
        Claim(TWICE, "results", _against_twice, **_OF_MATCHES),
        Claim(LOST, "results", _against_lost, lambda seen: seen.workload.flush, **_OF_MATCHES),
        Claim(WRONG, "results", _against_wrong, **_OF_MATCHES),
        Claim(IN_TIME, "results across epochs", _against_in_time, needs=((Match,),)),
        Claim(
            REJECTIONS,
            "rejected arrivals",
            _against_rejections,
            needs=((Rejected,),),
            of_answers=True,
        ),
        Claim(
            SILENCE,
            "arrivals late by a floor",
            lambda seen: silent.against_silence(seen.workload, seen.config, seen.trace),
            lambda seen: seen.config.idle_after_us is not None,
            needs=((Rejected,),),
            of_answers=True,
        ),
        Claim(
            LIMITED,
            "pairs across the first epoch of a query",
            _against_limited,
            lambda seen: bool(seen.config.epochs),
            **_OF_MATCHES,
        ),
        Claim(
            SHED,
            "shed arrivals",
            lambda seen: decided.against_shed(seen.workload, seen.config, seen.trace),
            lambda seen: any(each.share for each in seen.config.decisions),
            needs=((Rejected,),),
            of_answers=True,
        ),
        Claim(
            RESIZED,
            "tuples held when workers came or went",
            lambda seen: decided.against_resized(seen.config, seen.trace),
            lambda seen: bool(_changes_of_workers(seen)) and _protocol_steps(seen) > 0,
            needs=(PROTOCOL,),
        ),
        row_claim(lambda seen: seen.accounts, "results", ((Match,), (Rejected,))),
        Claim(
            CONFORMS,
            "protocol steps",
            lambda seen: validate_recording(seen.workload, seen.trace, seen.counts_pairs),
            lambda seen: _protocol_steps(seen) > 0,
            needs=(PROTOCOL,),
        ),
    ),
    {
        "results": lambda seen: len(seen.results),
        "results at the edge of the window": lambda seen: sum(
            distance_us == seen.config.window_us for distance_us in seen.distances_us
        ),
        "results at the same time": lambda seen: seen.distances_us.count(0),
        "results across epochs": _results_across_epochs,
        "rejected arrivals": lambda seen: len(seen.admitted.rejected),
        "arrivals late by a floor": lambda seen: silent.late_by_a_floor(
            seen.workload, seen.config, seen.trace
        ),
        "tuples above a floor": lambda seen: silent.let_in_above_a_floor(
            seen.workload, seen.config, seen.trace
        ),
        "redelivered tuples": lambda seen: seen.admitted.redelivered,
        "keys that several tuples have": lambda seen: sum(
            count > 1 for count in seen.tuples_by_key.values()
        ),
        "keys that half of the tuples have": _keys_of_half_the_tuples,
        "empty streams": _empty_streams,
        "single workers": lambda seen: int(seen.config.workers == 1),
        "blocks larger than the streams": lambda seen: int(
            seen.config.block_size > len(seen.tuples)
        ),
        "several queries": lambda seen: int(len(seen.config.queries) > 1),
        "results of limited queries": _results_of_limited_queries,
        "pairs for another query alone": _pairs_for_another_query,
        "pairs across the first epoch of a query": _pairs_across_the_first_epoch,
        "pairs across the last epoch of a query": _pairs_across_the_last_epoch,
        "protocol steps": _protocol_steps,
        "tuples held when workers came or went": lambda seen: decided.held_at_changes(
            seen.workload, seen.config, seen.trace
        ),
        "shed arrivals": lambda seen: decided.shed_arrivals(seen.admitted),
        "shed arrivals of tuples that were admitted": lambda seen: decided.shed_and_admitted(
            seen.admitted
        ),
        "shed arrivals that were late or not finite": lambda seen: decided.shed_and_late(
            seen.workload, seen.admitted
        ),
        "shed arrivals ahead of the watermark": lambda seen: decided.shed_ahead(
            seen.workload, seen.config, seen.admitted
        ),
        "changes to more workers": lambda seen: sum(
            one < other for _, one, other in _changes_of_workers(seen)
        ),
        "changes to fewer workers": lambda seen: sum(
            one > other for _, one, other in _changes_of_workers(seen)
        ),
        "results across a change of workers": _results_across_changes,
        **row_cases(lambda seen: seen.accounts, *accounts.PLACES),
    },
)

over_all = CLAIMS.over_all


def judge(
    workload: Workload, trace: Trace, counts_pairs: bool = True, recording: Recording = COMPLETE
) -> Judgement:
    """Judge every promise that the workload and the trace put to the test.

    ``counts_pairs``: see :func:`model.join.replay.validate_recording`. A promise about steps that
    ``recording`` lacks is undetermined.
    """
    return CLAIMS.judge(evidence_of(workload, trace, counts_pairs), recording)
