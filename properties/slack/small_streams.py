"""Every small stream: the smallest that breaks a promise, and all of them by the right rules.

Rules of this file:

1. A stream is a few tuples in some order, each a micro-batch of its own, then a flush. Streams
   are tried in a fixed order, fewer tuples first, so the first that breaks a promise is a smallest.
2. Values are powers of two, so that a sum says which tuples it counts.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from itertools import product
from typing import Any

from model.checking.claims import Outcome, Verdict, combine
from model.slack import make_system
from model.slack.claims import judge, over_all
from model.slack.scopes import explore
from model.slack.variants import VARIANTS
from model.vocabulary import Event, SlackConfig, System, Trace, Workload
from model.vocabulary.slack import Late, Progress, Result, Revision
from properties.judging.smallest_stream import promise_or_broken
from properties.judging.smallest_stream import smallest as find
from properties.pages.errata import Findings

SIZE_US, SLIDE_US = 4, 2
TIMES_US = range(2, 14)
"""Event times: three windows one after the other."""
TUPLES_MAX = 3
SCOPES = ("conformal", "small")
"""Scopes of the explorer, which also knows every slack and every crash."""


def smallest(variant: str, **settings: object) -> Findings:
    """The smallest stream on which a variant breaks its promise, beside the right rules."""
    bug = VARIANTS[variant]
    config = {**_plain(str(bug.example.config["control"])), **settings}
    right: System = make_system()
    scope = partial(_scope, bug.promise, tuple(config.items()))
    return find(bug, right, judge, streams(config), _told, scope)


def streams(config: Mapping[str, Any]) -> Iterator[Workload]:
    """All streams of up to ``TUPLES_MAX`` tuples for a query, fewer tuples first."""
    for length in range(1, TUPLES_MAX + 1):
        for times_us in product(TIMES_US, repeat=length):
            arrivals = tuple(
                Event(seq, seq, "", event_time_us, float(1 << seq), TIMES_US.stop + seq)
                for seq, event_time_us in enumerate(times_us)
            )
            yield Workload("slack", arrivals, config, tuple(range(1, length)))


def _plain(control: str) -> dict[str, Any]:
    """Sums in overlapping windows, corrections early enough to be seen; ``fixed`` waits 0."""
    config = SlackConfig(
        SIZE_US, SLIDE_US, keyed=False, control=control, gamma_us=SIZE_US, max_age_us=SIZE_US
    )
    plain = SlackConfig(SIZE_US, SLIDE_US).to_json()
    return {name: value for name, value in config.to_json().items() if _differs(plain, name, value)}


def _differs(plain: Mapping[str, Any], name: str, value: object) -> bool:
    return name in ("size_us", "slide_us") or value != plain[name]


# ----------------------------------------------------------------------------- the right rules


@cache
def _streams_judged(settings: tuple[tuple[str, object], ...]) -> tuple[tuple[Verdict, ...], int]:
    """Every stream by the right rules: a verdict for each claim, and how many streams."""
    right: System = make_system()
    judged = [judge(workload, right(workload)) for workload in streams(dict(settings))]
    return over_all(judged), len(judged)


@cache
def _explored() -> tuple[Outcome, int]:
    """Every behaviour of the explorer's scopes by the right rules."""
    found = [explore(scope) for scope in SCOPES]
    outcome = combine(verdict for each in found for verdict in each.verdicts)
    return outcome, sum(each.unique_states for each in found)


def _scope(claim: str, settings: tuple[tuple[str, object], ...]) -> Verdict:
    """The promise with all others, on every stream and in every state of the scopes."""
    verdicts, tried = _streams_judged(settings)
    verdict = promise_or_broken(verdicts, claim)
    explored, states = _explored()
    sentence = (
        f"{verdict.sentence} These were all {tried:,} streams of up to {TUPLES_MAX} tuples; of"
        f" {states:,} states of the explorer ({', '.join(SCOPES)}), too, every claim {explored}."
    )
    return Verdict(claim, combine([verdict, Verdict(claim, explored, "")]), sentence)


# ------------------------------------------------------------------------------------- in words


def _told(workload: Workload, trace: Trace) -> Iterator[str]:
    """What happens, arrival by arrival, by the rules that made the trace."""
    config = SlackConfig.from_json(workload.config)
    unusual = {k: v for k, v in workload.config.items() if k not in ("size_us", "slide_us")}
    settings = ", ".join(f"{name}={value}" for name, value in unusual.items())
    yield f"Windows of {config.size_us} us, one every {config.slide_us} us; {settings}."
    for batch, (event,) in enumerate(workload.batches()):
        arrives = f"Tuple #{event.source_id} (event time {event.event_time_us},"
        happens = "; ".join(_steps(config, trace, batch))
        yield f"{batch + 1}. {arrives} value {event.value:g}) arrives: {happens}."
    batch = len(workload.arrivals)
    yield f"{batch + 1}. The stream is flushed: {'; '.join(_steps(config, trace, batch))}."


def _steps(config: SlackConfig, trace: Trace, batch: int) -> Iterable[str]:
    def named(start_us: int) -> str:
        return f"[{start_us}, {start_us + config.size_us})"

    for progress in trace.of(Progress):
        if progress.batch == batch:
            slack = f", the slack {progress.slack_us}" if progress.slack_us else ""
            yield f"the watermark is {progress.wm_us}{slack}"
    for result in trace.of(Result):
        if result.batch == batch:
            yield f"{named(result.start_us)} is answered, {result.value:g}"
    for late in trace.of(Late):
        if late.batch == batch:
            yield f"#{late.source_id} is late for {named(late.start_us)}"
    for revision in trace.of(Revision):
        if revision.batch == batch:
            yield f"a correction makes {named(revision.start_us)} {revision.value:g}"
