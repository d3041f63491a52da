"""What the published control law does to single windows, on streams that repeat themselves.

Rules of this file:

1. A stream is windows that do not overlap, a tuple every microsecond. In a disordered window the
   first tuples are stragglers: they come when the next window has come. Nothing is random. (The
   last tuples would need exactly the largest delay there is, which no factor below 1 waits for:
   docs/slack.md, section 7, says what clipping at 1 costs ``conformal`` then.)
2. Counts are asked for, whose error is the share that is missing: no assumption is needed.
3. The first answers are compared with what arrived in the end, not with what was measured.
"""

from collections.abc import Iterable, Iterator
from itertools import islice, product, takewhile
from typing import NamedTuple

from model.checking.claims import Outcome, Verdict
from model.slack import make_system
from model.vocabulary import Event, SlackConfig, Workload
from model.vocabulary.slack import Final, Judged, Result
from properties.errors import counted
from properties.pages.errata import Findings, smaller

EPS, DELTA = 0.5, 0.05
TUPLES = range(1, 5)
"""Tuples of a window."""
WINDOWS = 400
LONG = 4_000
"""Windows for what holds in the long run."""
NEAR = 0.01
RECOVERS_WITHIN = 10
"""Windows."""
SEARCHED, SHOWN = range(60), (100, 200, 400)
"""Windows in order before the disorder: the least of them is looked for, others are shown."""
DISORDERED = 500


class Pattern(NamedTuple):
    """A stream of tumbling windows."""

    tuples: int
    """Of a window; also its length in microseconds."""
    stragglers: int
    """Of a disordered window."""
    disordered: int
    """Windows, after those in order."""
    in_order: int = 0

    def workload(self, control: str) -> Workload:
        """The stream with its query, in one micro-batch."""
        size_us = self.tuples
        times_us: list[int] = []
        owed: Iterable[int] = ()
        for window in range(1, 1 + self.in_order + self.disordered):
            held = range(window * size_us, (window + 1) * size_us)
            late = self.stragglers if window > self.in_order else 0
            times_us += [*held[late:], *owed]
            owed = held[:late]
        times_us += owed
        config = SlackConfig(
            size_us, size_us, aggregate="count", keyed=False, control=control, eps=EPS, delta=DELTA
        )
        arrivals = tuple(
            Event(seq, seq, "", time_us, 1.0, times_us[-1] + size_us + seq)
            for seq, time_us in enumerate(times_us)
        )
        return Workload("slack", arrivals, config.to_json())


class Window(NamedTuple):
    """One window in the end."""

    coverage: float
    """Share of its tuples in the first answer."""
    required: float
    alpha: float
    """After its judgement."""


def outcome(pattern: Pattern, control: str) -> tuple[Window, ...]:
    """What the control made of a stream: its windows in the order of their ends."""
    trace = make_system()(pattern.workload(control))
    first = {result.start_us: result.n_rcv for result in trace.of(Result)}
    judged = {step.start_us: step for step in trace.of(Judged)}
    return tuple(
        Window(
            first.get(final.start_us, 0) / final.n,
            judged[final.start_us].n_req / final.n,
            judged[final.start_us].alpha,
        )
        for final in trace.of(Final)
    )


# ------------------------------------------------------------------------------------ the promise


class Share(NamedTuple):
    """What first answers were like, in the second half of a stream."""

    coverage: float
    required: float
    wrong: float
    """Share of the windows whose first answer is off by eps or more."""

    def told(self) -> str:
        """In a phrase."""
        return (
            f"mean coverage {self.coverage:.3f} where {self.required:.3f} is required,"
            f" {self.wrong:.1%} of the first answers off by {EPS:.0%} or more"
        )


def share(windows: tuple[Window, ...]) -> Share:
    """Means over the second half."""
    late = windows[len(windows) // 2 :]
    n = len(late)
    return Share(
        sum(window.coverage for window in late) / n,
        sum(window.required for window in late) / n,
        sum(1 - window.coverage >= EPS for window in late) / n,
    )


def patterns(windows: int) -> Iterator[Pattern]:
    """Every stream of windows that are all alike, the smallest windows first."""
    for tuples, stragglers in product(TUPLES, TUPLES):
        if stragglers < tuples:
            yield Pattern(tuples, stragglers, windows)


PROMISE = "few first answers are wrong"


def _is_as_promised(pattern: Pattern) -> bool:
    """Not so only where the mean is as required, so that nothing else explains the errors."""
    found = share(outcome(pattern, "pd"))
    return found.wrong <= DELTA or abs(found.coverage - found.required) > NEAR


def promise() -> Findings:
    """The smallest windows that are required on the average and often wrong one by one."""
    kept = list(takewhile(_is_as_promised, patterns(WINDOWS)))
    pattern = next(islice(patterns(WINDOWS), len(kept), None), None)
    if pattern is None:
        return _nothing(PROMISE)
    windows = outcome(pattern, "pd")
    told = (
        f"{_told(pattern)} The query is a count with eps = {EPS}, delta = {DELTA}.",
        *(
            f"Window {number}: its first answer has {window.coverage:.0%} of the tuples"
            f" ({window.required:.0%} required), then alpha = {window.alpha:.3f}."
            for number, window in enumerate(windows[200:206], 201)
        ),
        smaller(len(kept)),
    )
    found = share(windows)
    sentence = f"In the second half of {WINDOWS} windows: {found.told()}; promised {DELTA:.0%}."
    literal = Verdict(PROMISE, Outcome.BROKEN, sentence)
    same = _conformal([pattern._replace(disordered=LONG)])
    return Findings(told, literal, same, _conformal(patterns(LONG)))


def _conformal(chosen: Iterable[Pattern]) -> Verdict:
    """At most delta of first answers are wrong under ``conformal``, in the long run."""
    shares = [(share(outcome(pattern, "conformal")), pattern) for pattern in chosen]
    worst, pattern = max(shares, key=lambda each: each[0].wrong)
    kept = worst.wrong <= DELTA
    tried = "" if len(shares) == 1 else f"The worst of {counted(len(shares), 'pattern')}: "
    sentence = (
        f"{tried}{counted(pattern.stragglers, 'straggler')} of {pattern.tuples} tuples, second half"
        f" of {LONG:,} windows: {worst.told()}; promised {DELTA:.0%}."
    )
    return Verdict(PROMISE, Outcome.HOLDS if kept else Outcome.BROKEN, sentence)


# ----------------------------------------------------------------------------------------- windup

RECOVERY = f"coverage recovers within {RECOVERS_WITHIN} windows"


def recovery(pattern: Pattern, control: str) -> int:
    """Windows from the start of the disorder until one has its required coverage."""
    windows = outcome(pattern, control)[pattern.in_order :]
    met = (n for n, window in enumerate(windows) if window.coverage >= window.required)
    return next(met, len(windows))


def windup() -> Findings:
    """The shortest time in order after which the law waits too long before it waits at all."""
    plain = Pattern(tuples=3, stragglers=2, disordered=DISORDERED)
    slow = (n for n in SEARCHED if recovery(plain._replace(in_order=n), "pd") > RECOVERS_WITHIN)
    in_order = next(slow, None)
    if in_order is None:
        return _nothing(RECOVERY)
    times = {n: recovery(plain._replace(in_order=n), "pd") for n in (in_order, *SHOWN)}
    told = (
        f"{_told(plain)} Before that come windows in order. A count, eps = {EPS}.",
        *(
            f"{n} windows in order: {_windows(took)} until one is good."
            for n, took in times.items()
        ),
        f"Tried were 0 to {in_order} windows in order one by one, then"
        f" {', '.join(map(str, SHOWN))}: with fewer than {in_order} it takes at most"
        f" {RECOVERS_WITHIN}.",
    )
    alpha = outcome(plain._replace(in_order=in_order), "pd")[in_order - 1].alpha
    sentence = (
        f"After {in_order} windows in order alpha is {alpha:.2f}; when disorder sets in,"
        f" {_windows(times[in_order])} pass before one has the required coverage."
    )
    literal = Verdict(RECOVERY, Outcome.BROKEN, sentence)
    same = _clamped(plain, (in_order,))
    return Findings(told, literal, same, _clamped(plain, (*SEARCHED, *SHOWN)))


def _clamped(plain: Pattern, in_order: tuple[int, ...]) -> Verdict:
    times = {n: recovery(plain._replace(in_order=n), "pd-clamped") for n in in_order}
    longest = max(times.values())
    after = f"{in_order[0]} windows in order"
    if len(in_order) > 1:
        after = (
            f"{SEARCHED[0]} to {SEARCHED[-1]} windows in order, each of these numbers, and after"
            f" {', '.join(map(str, SHOWN))}"
        )
    sentence = f"After {after}, {_windows(longest)} pass at most."
    kept = longest <= RECOVERS_WITHIN
    return Verdict(RECOVERY, Outcome.HOLDS if kept else Outcome.BROKEN, sentence)


def _nothing(claim: str) -> Findings:
    nothing = Verdict(claim, Outcome.UNDETERMINED, "Nothing that was searched breaks it.")
    return Findings((), nothing, nothing, nothing)


def _windows(number: int) -> str:
    return counted(number, "window")


def _told(pattern: Pattern) -> str:
    return (
        f"Every window of {pattern.tuples} us holds {pattern.tuples} tuples; the first"
        f" {pattern.stragglers} of each come when the next window has come."
    )
