"""The promises of docs/join.md, sections 10 and 14, judged on any trace.

Rules of this file:

* A trace is judged against its workload and ``oracle``, which knows no chain. The model's chain
  only judges the recorded steps of the protocol, if there are any.
* Shed and late arrivals, and pairs outside of the epochs of a query, are judged by what ``oracle``
  rejects and finds. Resized chains are judged by their recorded steps.
* Without a flush some pairs may still be owed, and nothing says which: then pairs may be missing,
  but none may be wrong or come out twice.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

from model.checking.accounts import Accounts, row_cases, row_claim, settle
from model.checking.claims import COMPLETE, SHOWN, Claim, ClaimSet, Judgement, Recording
from model.join import accounts
from model.join.control import decision_at
from model.join.oracle import Admission, QueryPair, admission, matches
from model.join.replay import CLAIM as CONFORMS
from model.join.replay import validate_recording
from model.join.state_claims import LOST, TWICE
from model.vocabulary import Event, JoinConfig, Trace, Workload
from model.vocabulary.join import PROTOCOL, REASON_SHED, Match, Quiet, Rejected
from model.vocabulary.join_predicates import Columns

WRONG = "no pair that is no result"
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
    """True if every recorded step is joined again, to count its pairs."""

    @cached_property
    def times(self) -> Counter[QueryPair]:
        """Number of times each pair came out."""
        return Counter((each.query, each.r_id, each.s_id) for each in self.trace.of(Match))

    @cached_property
    def epochs(self) -> tuple[dict[int, int], dict[int, int]]:
        """Epoch of each admitted tuple of R and of S, by identity."""
        return self.admitted.r.epoch_of, self.admitted.s.epoch_of

    @property
    def early(self) -> list[Match]:
        """Matches of admitted tuples that came out before the epoch of one of them."""
        r, s = self.epochs
        found = self.trace.of(Match)
        return [each for each in found if each.batch < max(r[each.r_id], s[each.s_id])]

    @cached_property
    def accounts(self) -> Accounts:
        """The accounts of the rows of both streams."""
        placed = accounts.place_rows(self.workload, self.admitted, self.results, self.trace)
        return settle(self.workload.arrivals, list(placed))

    @property
    def tuples(self) -> tuple[Event, ...]:
        """All admitted tuples of both streams."""
        return *self.admitted.r.tuples, *self.admitted.s.tuples


def evidence_of(workload: Workload, trace: Trace, counts_pairs: bool) -> Evidence:
    """Compute the truth about a workload by the oracle.

    Raises ``ValueError`` with one sentence if the workload is invalid.
    """
    config = JoinConfig.from_json(workload.config)
    admitted = admission(workload)
    results = matches(config, admitted)
    forbidden = set[QueryPair]()
    if config.epochs:
        forbidden = matches(replace(config, epochs=()), admitted) - results
    return Evidence(workload, config, admitted, results, forbidden, trace, counts_pairs)


# ---------------------------------------------------------------------------------------- checks


def _against_twice(seen: Evidence) -> list[str]:
    pairs = [pair for pair, n in sorted(seen.times.items()) if n > 1]
    return [
        f"{sentence.removesuffix('.')} {seen.times[pair]} times."
        for pair, sentence in zip(pairs, _described(pairs, seen, "was found for {}"), strict=True)
    ]


def _against_lost(seen: Evidence) -> list[str]:
    pairs = sorted(set(seen.results) - set(seen.times))
    return _described(pairs, seen, "must be a result of {}, and is missing")


def _against_wrong(seen: Evidence) -> list[str]:
    pairs = sorted(set(seen.times) - set(seen.results))
    return _described(pairs, seen, "is no result of {}, but was found")


def _described(pairs: Sequence[QueryPair], seen: Evidence, says: str) -> list[str]:
    """Return a sentence for every pair; ``says`` is its predicate, with a field for the query.

    Only the first ``SHOWN`` have the tuples' contents: finding those takes too long for all.
    """
    shown = [_describe_pair(pair, seen, says) for pair in pairs[:SHOWN]]
    return [*shown, *(f"{pair}." for pair in pairs[SHOWN:])]


def _describe_pair(found: QueryPair, seen: Evidence, says: str) -> str:
    query, r_id, s_id = found
    r = _describe_tuple("r", r_id, seen.admitted.r.tuples, seen.config.r_columns)
    s = _describe_tuple("s", s_id, seen.admitted.s.tuples, seen.config.s_columns)
    return f"{r} with {s} {says.format(repr(query))}."


def _describe_tuple(name: str, source_id: int, tuples: Iterable[Event], columns: Columns) -> str:
    event = next((each for each in tuples if each.source_id == source_id), None)
    if event is None:
        return f"{name} #{source_id} (not admitted)"
    parts = [f"at {event.event_time_us}", f"key {event.key!r}", f"value {event.value:g}"]
    parts += [f"{column} {each!r}" for (column, _), each in zip(columns, event.more, strict=True)]
    return f"{name} #{source_id} ({', '.join(parts)})"


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


def _protocol_steps(seen: Evidence) -> int:
    return sum(len(seen.trace.of(word)) for word in PROTOCOL)


def _changes_of_workers(seen: Evidence) -> list[int]:
    """Return the epochs with another number of workers than the epoch before."""
    epochs = sum(1 for _ in seen.workload.batches()) + seen.workload.flush
    workers = [decision_at(seen.config, epoch).workers for epoch in range(epochs)]
    return [epoch for epoch, (one, other) in enumerate(pairwise(workers), 1) if one != other]


def _held_at_changes(seen: Evidence) -> int:
    """Return how many tuples were held when workers came or went."""
    before = {epoch - 1 for epoch in _changes_of_workers(seen)}
    return sum(step.r_held + step.s_held for step in seen.trace.of(Quiet) if step.epoch in before)


def _late_by_a_floor(seen: Evidence) -> int:
    """Return how many arrivals are late only because their stream was silent."""
    if seen.config.idle_after_us is None:
        return 0
    patient = seen.workload.with_(config={**seen.workload.config, "idle_after_us": None})
    return len(set(seen.admitted.rejected) - set(admission(patient).rejected))


def _results_across_changes(seen: Evidence) -> int:
    """Return how many results have tuples from before and after a change of workers."""
    r_epoch, s_epoch = seen.epochs
    changed = _changes_of_workers(seen)
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
        Claim(
            REJECTIONS,
            "rejected arrivals",
            _against_rejections,
            needs=((Rejected,),),
            of_answers=True,
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
        "results across epochs": _results_across_epochs,
        "rejected arrivals": lambda seen: len(seen.admitted.rejected),
        "arrivals late by a floor": _late_by_a_floor,
        "pairs outside of the epochs of a query": lambda seen: len(seen.forbidden),
        "protocol steps": _protocol_steps,
        "tuples held when workers came or went": _held_at_changes,
        "shed arrivals": lambda seen: sum(
            each.reason == REASON_SHED for each in seen.admitted.rejected
        ),
        "results across a change of workers": _results_across_changes,
        **row_cases(lambda seen: seen.accounts, *accounts.PLACES),
    },
)


def judge(
    workload: Workload, trace: Trace, counts_pairs: bool = True, recording: Recording = COMPLETE
) -> Judgement:
    """Judge every promise that the workload and the trace put to the test.

    ``counts_pairs``: see :func:`model.join.replay.validate_recording`. A promise about steps that
    ``recording`` lacks is undetermined.
    """
    return CLAIMS.judge(evidence_of(workload, trace, counts_pairs), recording)
