"""Errata of room ``slack``: where the published design, read literally, breaks its promises.

Source: the hybrid processing model for continuous aggregates over out-of-order streams. Its
sections are cited as it numbers them: 1.1 modules, 1.2 control, 1.3 division of tuples between
the modules, 1.4 trigger of corrections.

Rules of this file:

1. A stream is a few tuples in some order, one per micro-batch, then a flush. Streams with fewer
   tuples are tried first.
2. Values are powers of two, so that a sum shows which tuples it counts.
3. ``control_errata`` searches single windows instead of streams.
"""

from collections.abc import Iterable, Iterator
from functools import cache, partial

from model.checking.claims import Outcome, Verdict, combine
from model.slack import make_system
from model.slack.claims import CLAIMS, judge
from model.slack.scopes import explore
from model.slack.variants import VARIANTS
from model.vocabulary import SlackConfig, Trace, Workload
from model.vocabulary.settings import JsonObject
from model.vocabulary.slack import Progress
from model.vocabulary.windows import Late, Result, Revision
from straggler.pages.errata import (
    Erratum,
    Findings,
    Kind,
    erratum,
    promise_or_broken,
    smallest_stream,
)
from straggler.rooms.slack import control_errata
from straggler.rooms.windows import cases

SIZE_US, SLIDE_US = 4, 2
TIMES_US = range(2, 14)
"""Event times: three windows, one after the other."""
TUPLES_MAX = 3
SCOPES = ("conformal", "small")
"""Scopes that the explorer visits as well, with every slack and every crash."""


def smallest(variant: str) -> Findings:
    """Find the smallest stream on which a variant breaks its promise."""
    bug = VARIANTS[variant]
    control = str(bug.example.config["control"])
    scope = partial(_scope, bug.promise, control)
    return smallest_stream(bug, make_system(), judge, streams(_plain(control)), _describe, scope)


def streams(config: JsonObject) -> Iterator[Workload]:
    """Yield all streams of up to ``TUPLES_MAX`` tuples for a query, fewer tuples first."""
    return cases.streams("slack", config, TIMES_US, [float(1 << n) for n in range(TUPLES_MAX)])


def _plain(control: str) -> JsonObject:
    """Return the settings that make a query of sums in overlapping windows, with early corrections.

    Defaults are left out, except for sizes. The control ``fixed`` waits 0.
    """
    config = SlackConfig(
        SIZE_US, SLIDE_US, keyed=False, control=control, gamma_us=SIZE_US, max_age_us=SIZE_US
    )
    plain = SlackConfig(SIZE_US, SLIDE_US).to_json()
    sizes = ("size_us", "slide_us")
    return {k: v for k, v in config.to_json().items() if k in sizes or v != plain[k]}


# ----------------------------------------------------------------------------- the right rules


@cache
def _streams_judged(control: str) -> tuple[tuple[Verdict, ...], int]:
    """Judge every stream by the right rules; return the verdicts and the number of streams."""
    right = make_system()
    judged = [judge(workload, right(workload)) for workload in streams(_plain(control))]
    return CLAIMS.over_all(judged), len(judged)


@cache
def _explored() -> tuple[Outcome, int]:
    """Explore the scopes by the right rules; return the outcome and the number of states."""
    found = [explore(scope) for scope in SCOPES]
    outcome = combine(verdict for each in found for verdict in each.verdicts)
    return outcome, sum(each.unique_states for each in found)


def _scope(claim: str, control: str) -> Verdict:
    """Return the verdict on a claim from all streams and scopes, or on another that is broken."""
    verdicts, tried = _streams_judged(control)
    verdict = promise_or_broken(verdicts, claim)
    explored, states = _explored()
    sentence = (
        f"{verdict.sentence} These were all {tried:,} streams of up to {TUPLES_MAX} tuples; of"
        f" {states:,} states of the explorer ({', '.join(SCOPES)}), too, every claim {explored}."
    )
    return Verdict(claim, combine([verdict, Verdict(claim, explored, "")]), sentence)


# ------------------------------------------------------------------------------------- in words


def _describe(workload: Workload, trace: Trace) -> Iterator[str]:
    """Describe a trace, arrival by arrival."""
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


# ------------------------------------------------------------------------------------- the table

HPM = "hybrid processing model for continuous aggregates over out-of-order streams"
EXACT = "In the end every answer is exact."
WITHIN = "The probability that the first answer is off by eps or more is at most delta."


def _erratum(kind: Kind, name: str, variant: str, promise: str, source: str) -> Erratum:
    """Return an erratum that a planted bug shows on the smallest stream."""
    find = partial(smallest, variant)
    return erratum(VARIANTS[variant], kind, name, promise, f"{HPM}{source}", find)


ERRATA: tuple[Erratum, ...] = (
    _erratum(
        Kind.READING,
        "closing-rule",
        "early_closing",
        "A tuple that was not delayed is never late.",
        ", 1.3: a window closes when its largest timestamp is at most t_max - K; that is the last"
        " time that it can hold, or its end",
    ),
    _erratum(
        Kind.PRINTED,
        "mixed-tuples",
        "mixed_tuple_lost",
        EXACT,
        ", 1.3: tuples of the second class go to the stream module alone",
    ),
    _erratum(
        Kind.OPEN,
        "lost-update",
        "lost_update",
        EXACT,
        ", 1.1: both modules write results to one table; which one may write a window is left open",
    ),
    _erratum(
        Kind.PRINTED,
        "gamma-without-age",
        "gamma_only",
        "A late tuple is corrected for whether or not others follow, or the stream ends.",
        ", 1.4: the only trigger is the span of the pending tuples",
    ),
    _erratum(
        Kind.OPEN,
        "missing-flush",
        "no_flush",
        EXACT,
        ": what happens when a stream ends is left open",
    ),
    _erratum(
        Kind.PRINTED,
        "slack-out-of-range",
        "slack_winds_up",
        "The buffer is a share of the largest delay.",
        ", 1.2: K = alpha * k, alpha from equation (1), which has no bounds",
    ),
    Erratum(
        Kind.PRINTED,
        "pd-promise",
        WITHIN,
        f"{HPM}, 1.2: quality requirement (eps, delta) and equation (1)",
        "The law brings the mean coverage to the required one, so answers are as good as required.",
        "The share of windows that miss their requirement is what is controlled, and half of delta "
        "is kept for windows that met it (control conformal).",
        control_errata.promise,
    ),
    Erratum(
        Kind.PRINTED,
        "windup",
        "When disorder sets in, the buffer grows until answers are as good as required, within "
        f"{control_errata.RECOVERS_WITHIN} windows.",
        f"{HPM}, 1.2: equation (1) adds up without limit",
        "Alpha sinks in every window that is better than required, with nothing to stop it.",
        "Alpha is clipped to [0, 1] after every judgement (pd-clamped; conformal does so, too).",
        control_errata.windup,
    ),
)
