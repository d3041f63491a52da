"""The promises of docs/grouping.md, section 8, judged on any trace.

Rules of this file:

* A trace is judged against its workload by counting and nested loops; no router is asked.
* Each promise has a guard, the case without which it could hold without a test. One trace need not
  contain it, all of them together must (``over_all``).
* Balance is about probabilities: ``balance_claims`` must be told what the keys are drawn from.
* The choices of ``dag`` and ``cg`` are judged by comparison with the reference alone.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise

from model.checking import claims
from model.checking.claims import Judgement, Outcome, Verdict
from model.grouping.answers_claims import answers, partials, rejections
from model.grouping.evidence import Evidence, evidence_of
from model.grouping.heavy_claims import few, heavy
from model.grouping.routing_claims import candidate, least, once
from model.vocabulary import Trace, Workload
from model.vocabulary.grouping import Rejected

ONCE = "every arrival goes to one instance"
CANDIDATE = "every tuple goes to a candidate of its key"
LEAST = "every tuple goes where its sender has sent the least work"
HEAVY = "heavy keys are those of the window before"
FEW = "few instances a key"
PARTIALS = "partial aggregates are those of what the instances got"
ANSWERS = "answers are those of all tuples"
REJECTIONS = "rejected is what is not finite"
SHOWN = 5

TWO_OR_LESS = ("pkg", "d-choices", "w-choices", "tag-literal", "tag")
"""Policies under which a light key has at most 2 candidates."""
BY_LOAD = ("shuffle", *TWO_OR_LESS, "nag-static", "nag-dynamic")
"""Policies that take the least load of the candidates."""


# ---------------------------------------------------------------------------------------- guards


def _guards(seen: Evidence) -> dict[str, int]:
    """How often the interesting cases occurred."""
    config = seen.config
    tables = [(window, seen.table(window)) for window in seen.windows]
    named = [set(table.heavy) for _, table in tables]
    hot = [event.key in t.heavy for window, t in tables for event in window.arrivals]
    sets = [(key in t.heavy, len(t.candidates(key))) for w, t in tables for key in w.frequencies]
    places = [at for window in seen.windows for at in seen.places(window).values()]
    return {
        "tuples of heavy keys": sum(hot),
        "tuples of light keys": len(hot) - sum(hot),
        "keys with a choice": sum(size > 1 for _, size in sets),
        "heavy keys with more than 2 candidates": sum(is_hot and size > 2 for is_hot, size in sets),
        "rebalances that changed the table": sum(a != b for a, b in pairwise(named)),
        "windows with new times": sum(
            a.times_us != b.times_us for (_, a), (_, b) in pairwise(tables)
        ),
        "windows with unequal times": sum(len(set(table.times_us)) > 1 for _, table in tables),
        "several senders": int(config.senders > 1),
        "full summaries": seen.full_summaries(),
        "latencies": int(len(set(config.latency_us)) > 1),
        "keys at several instances": sum(len(at) > 1 for at in places),
        "rejected arrivals": len(seen.trace.of(Rejected)),
        "single instances": int(config.instances == 1),
    }


# ---------------------------------------------------------------------------------------- judging

AGAINST: Mapping[str, Callable[[Evidence], Iterator[str]]] = {
    ONCE: once,
    CANDIDATE: candidate,
    LEAST: least,
    HEAVY: heavy,
    FEW: few,
    PARTIALS: partials,
    ANSWERS: answers,
    REJECTIONS: rejections,
}
GUARDS: Mapping[str, str] = {
    ONCE: "several senders",
    CANDIDATE: "tuples of heavy keys",
    LEAST: "keys with a choice",
    HEAVY: "full summaries",
    FEW: "heavy keys with more than 2 candidates",
    PARTIALS: "keys at several instances",
    ANSWERS: "keys at several instances",
    REJECTIONS: "rejected arrivals",
}


def judge(workload: Workload, trace: Trace) -> Judgement:
    """Every promise that the workload and the trace put to the test."""
    seen = evidence_of(workload, trace)
    skipped = set()
    if seen.config.policy not in BY_LOAD:
        skipped.add(LEAST)
    if seen.config.policy not in TWO_OR_LESS:
        skipped.add(FEW)
    verdicts = [
        _verdict(claim, list(against(seen)))
        for claim, against in AGAINST.items()
        if claim not in skipped
    ]
    return Judgement(tuple(verdicts), _guards(seen))


def _verdict(claim: str, against: list[str]) -> Verdict:
    if not against:
        return Verdict(claim, Outcome.HOLDS, "Nothing speaks against it.")
    more = f" ({len(against):,} in all.)" if len(against) > 1 else ""
    return Verdict(claim, Outcome.BROKEN, f"{against[0]}{more}", tuple(against[:SHOWN]))


def check(workload: Workload, trace: Trace) -> tuple[Verdict, ...]:
    """The verdicts alone."""
    return judge(workload, trace).verdicts


CASES = (
    "tuples of heavy keys",
    "tuples of light keys",
    "keys with a choice",
    "heavy keys with more than 2 candidates",
    "rebalances that changed the table",
    "windows with new times",
    "windows with unequal times",
    "several senders",
    "full summaries",
    "latencies",
    "keys at several instances",
    "rejected arrivals",
    "single instances",
)
"""What all traces together must contain."""


def over_all(cases: Iterable[Judgement]) -> tuple[Verdict, ...]:
    """Judgements of many traces, summed up by claim (:func:`model.checking.claims.over_all`)."""
    return claims.over_all(cases, GUARDS)
