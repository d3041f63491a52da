"""The promises of docs/join.md, section 10, judged on any trace.

Rules of this file:

* A trace is judged against its workload and the nested loop of ``oracle``; no chain is asked,
  except about the steps of the protocol, where there are any.
* Each promise has a guard, the case without which it could hold without a test. One trace need not
  contain it, all of them together must (``over_all``).
* Without a flush pairs may be owed, and nothing says which: none may be wrong or doubled.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from model.checking import claims
from model.checking.claims import Judgement, Outcome, Verdict
from model.join.oracle import Admission, Found, admission, quick_matches
from model.join.recorded import CLAIM as CONFORMS
from model.join.recorded import validate_recording
from model.join.scope_claims import LOST, TWICE
from model.vocabulary import Event, JoinConfig, Trace, Workload
from model.vocabulary.join import PROTOCOL, Match, Rejected

WRONG = "no pair that is no result"
LIMITED = "no pair from outside of the epochs of its query"
IN_TIME = "no pair before its tuples"
REJECTIONS = "rejected is what the watermark says"
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Truth:
    """What must be true of every trace of a workload."""

    workload: Workload
    config: JoinConfig
    admitted: Admission
    results: Collection[Found]
    forbidden: Collection[Found]
    """What would be a result if no query were limited to epochs."""


def truth_of(workload: Workload) -> Truth:
    """What a nested loop says.

    Raises ``ValueError`` with one sentence for a workload that cannot be.
    """
    config = JoinConfig.from_json(workload.config)
    admitted = admission(workload)
    results = quick_matches(config, admitted)
    forbidden = set[Found]()
    if config.epochs:
        forbidden = quick_matches(replace(config, epochs=()), admitted) - results
    return Truth(workload, config, admitted, results, forbidden)


# --------------------------------------------------------------------------------------- guards


def _guards(truth: Truth, trace: Trace) -> dict[str, int]:
    """How often the interesting cases occurred."""
    r_by_id = {event.source_id: event for event in truth.admitted.r.tuples}
    s_by_id = {event.source_id: event for event in truth.admitted.s.tuples}
    dt_us = [abs(r_by_id[r].event_time_us - s_by_id[s].event_time_us) for _, r, s in truth.results]
    tuples = (*truth.admitted.r.tuples, *truth.admitted.s.tuples)
    keys = Counter((event.stream, event.key) for event in tuples)
    config, n = truth.config, len(tuples)
    return {
        "results": len(truth.results),
        "results at the edge of the window": sum(dt == config.window_us for dt in dt_us),
        "results at the same time": sum(dt == 0 for dt in dt_us),
        "results across epochs": _across(truth),
        "rejected arrivals": len(truth.admitted.rejected),
        "redelivered tuples": truth.admitted.redelivered,
        "keys that several tuples have": sum(count > 1 for count in keys.values()),
        "keys that half of the tuples have": sum(2 * count > n > 3 for count in keys.values()),
        "empty streams": n > 0 and sum(not each.tuples for each in truth.admitted.streams.values()),
        "single workers": int(config.workers == 1),
        "blocks larger than the streams": int(config.block_size > n),
        "several queries": int(len(config.queries) > 1),
        **_guards_of_epochs(truth),
        "protocol steps": sum(len(trace.of(word)) for word in PROTOCOL),
    }


def _guards_of_epochs(truth: Truth) -> dict[str, int]:
    limited = {name: (first, last) for name, first, last in truth.config.epochs}
    r_epoch, s_epoch = _epochs(truth)
    across_first = across_last = 0
    for query, r, s in truth.forbidden:
        first, last = limited[query]
        before, after = sorted((r_epoch[r], s_epoch[s]))
        across_first += before < first <= after and (last is None or after <= last)
        across_last += first <= before and last is not None and before <= last < after
    found = {(r, s) for _, r, s in truth.results}
    return {
        "results of limited queries": sum(query in limited for query, _, _ in truth.results),
        "pairs for another query alone": sum((r, s) in found for _, r, s in truth.forbidden),
        "pairs across the first epoch of a query": across_first,
        "pairs across the last epoch of a query": across_last,
    }


def _epochs(truth: Truth) -> tuple[dict[int, int], dict[int, int]]:
    r, s = (
        {event.source_id: epoch for event, epoch in zip(each.tuples, each.epochs, strict=True)}
        for each in (truth.admitted.r, truth.admitted.s)
    )
    return r, s


def _across(truth: Truth) -> int:
    r_epoch, s_epoch = _epochs(truth)
    return sum(r_epoch[r] != s_epoch[s] for _, r, s in truth.results)


# --------------------------------------------------------------------------------------- claims


def judge(workload: Workload, trace: Trace, counts_pairs: bool = True) -> Judgement:
    """Every promise that the workload and the trace put to the test.

    ``counts_pairs``: see :func:`model.join.recorded.validate_recording`.
    """
    truth = truth_of(workload)
    times = Counter((match.query, match.r_id, match.s_id) for match in trace.of(Match))
    found, results, forbidden = set(times), set(truth.results), set(truth.forbidden)
    verdicts = [
        verdict_of(TWICE, _doubled(times, truth)),
        verdict_of(WRONG, _told(sorted(found - results - forbidden), truth)),
        verdict_of(IN_TIME, _too_early(truth, trace)),
        verdict_of(REJECTIONS, _rejections(truth, trace)),
    ]
    if workload.flush:
        verdicts.insert(1, verdict_of(LOST, _told(sorted(results - found), truth)))
    if truth.config.epochs:
        verdicts.append(verdict_of(LIMITED, _told(sorted(found & forbidden), truth)))
    guards = _guards(truth, trace)
    if guards["protocol steps"]:
        verdicts.append(validate_recording(workload, trace, counts_pairs))
    return Judgement(tuple(verdicts), guards)


def check(workload: Workload, trace: Trace) -> tuple[Verdict, ...]:
    """The verdicts alone."""
    return judge(workload, trace).verdicts


def verdict_of(claim: str, against: Sequence[str]) -> Verdict:
    """Holds if nothing speaks against a claim; otherwise the first sentences that do."""
    if not against:
        return Verdict(claim, Outcome.HOLDS, "Nothing speaks against it.")
    more = f" ({len(against):,} in all.)" if len(against) > 1 else ""
    return Verdict(claim, Outcome.BROKEN, f"{against[0]}{more}", tuple(against[:SHOWN]))


def _told(pairs: Sequence[Found], truth: Truth) -> list[str]:
    """A sentence for every pair; finding the tuples of those that are not shown takes too long."""
    shown = [_named(pair, truth) for pair in pairs[:SHOWN]]
    return [*shown, *(f"{pair}." for pair in pairs[SHOWN:])]


def _doubled(times: Mapping[Found, int], truth: Truth) -> list[str]:
    pairs = [pair for pair, n in sorted(times.items()) if n > 1]
    told = _told(pairs, truth)
    return [
        f"{sentence.removesuffix('.')}, and came out {times[pair]} times."
        for pair, sentence in zip(pairs, told, strict=True)
    ]


def _named(found: Found, truth: Truth) -> str:
    """A pair as a sentence, with the contents of its tuples as far as they are admitted."""
    query, r_id, s_id = found
    r = _tuple("r", r_id, truth.admitted.r.tuples)
    s = _tuple("s", s_id, truth.admitted.s.tuples)
    is_result = "a result" if found in truth.results else "no result"
    return f"{r} with {s} is {is_result} of {query!r}."


def _tuple(name: str, source_id: int, tuples: Iterable[Event]) -> str:
    event = next((each for each in tuples if each.source_id == source_id), None)
    if event is None:
        return f"{name} #{source_id} (not admitted)"
    parts = f"at {event.event_time_us}, key {event.key!r}, value {event.value:g}"
    return f"{name} #{source_id} ({parts})"


def _too_early(truth: Truth, trace: Trace) -> list[str]:
    """Matches whose epoch is not one from the admission of both to the end."""
    r_epoch, s_epoch = _epochs(truth)
    last = sum(1 for _ in truth.workload.batches()) - (not truth.workload.flush)
    against = []
    for match in trace.of(Match):
        if match.r_id in r_epoch and match.s_id in s_epoch:
            first = max(r_epoch[match.r_id], s_epoch[match.s_id])
            if not first <= match.batch <= last:
                against.append(
                    f"r #{match.r_id} with s #{match.s_id} came in epoch {match.batch}, "
                    f"possible are {first} to {last}."
                )
    return against


def _rejections(truth: Truth, trace: Trace) -> list[str]:
    expected, found = Counter(truth.admitted.rejected), Counter(trace.of(Rejected))
    missing, extra = expected - found, found - expected
    return [
        f"{each.stream} #{each.source_id} (arrival {each.seq}) is {what}: {each.reason}."
        for what, counted in (("not rejected", missing), ("rejected", extra))
        for each in sorted(counted.elements())
    ]


# ------------------------------------------------------------------------------------- many traces

GUARDS: Mapping[str, str] = {
    TWICE: "results",
    LOST: "results",
    WRONG: "results",
    LIMITED: "pairs across the first epoch of a query",
    IN_TIME: "results across epochs",
    REJECTIONS: "rejected arrivals",
    CONFORMS: "protocol steps",
}
OF_EPOCHS = (
    "results of limited queries",
    "pairs for another query alone",
    "pairs across the first epoch of a query",
    "pairs across the last epoch of a query",
)
CASES = (
    "results",
    "results at the edge of the window",
    "results at the same time",
    "results across epochs",
    "rejected arrivals",
    "redelivered tuples",
    "keys that several tuples have",
    "keys that half of the tuples have",
    "empty streams",
    "single workers",
    "blocks larger than the streams",
    "several queries",
    *OF_EPOCHS,
)
"""What all traces together must contain."""


def over_all(cases: Iterable[Judgement]) -> tuple[Verdict, ...]:
    """Judgements of many traces, summed up by claim (:func:`model.checking.claims.over_all`)."""
    return claims.over_all(cases, GUARDS)
