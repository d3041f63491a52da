"""Errata of the published control law: its effect on single windows of periodic streams.

Rules of this file:

1. A stream is windows that do not overlap, with a tuple every microsecond. In a disordered window
   the first tuples are stragglers: they arrive after the next window. Nothing is random. (The last
   tuples would need exactly the largest delay there is, and no factor below 1 waits that long:
   docs/slack.md, section 7, says what clipping at 1 costs ``conformal`` then.)
2. Queries are counts, whose error is the missing share: no assumption is needed.
3. First answers are compared with all tuples that arrive in the end, not with measured ones.
"""

from collections.abc import Iterable, Iterator
from itertools import product
from typing import NamedTuple

from model.checking.claims import Outcome, Verdict
from model.slack import make_system
from model.vocabulary import Event, SlackConfig, Workload
from model.vocabulary.slack import Judged
from model.vocabulary.windows import Final, Result
from straggler.errors import counted
from straggler.pages.errata import Findings, decide, search, undetermined

EPS, DELTA = 0.5, 0.05
TUPLES = range(1, 5)
"""Numbers of tuples in a window."""
WINDOWS = 400
LONG = 4_000
"""Windows of a long run."""
NEAR = 0.01
RECOVERS_WITHIN = 10
"""Most windows until coverage recovers."""
SEARCHED, SHOWN = range(60), (100, 200, 400)
"""Windows in order before the disorder: numbers searched for the least, and numbers shown."""
DISORDERED = 500


class Pattern(NamedTuple):
    """A stream of tumbling windows."""

    tuples: int
    """Tuples of a window; also its length (us)."""
    stragglers: int
    """Stragglers of a disordered window."""
    disordered: int
    """Number of disordered windows, after those in order."""
    in_order: int = 0

    def workload(self, control: str) -> Workload:
        """Return the stream with its query, in one micro-batch."""
        size_us = self.tuples
        times_us: list[int] = []
        owed: Iterable[int] = ()
        for window in range(1, 1 + self.in_order + self.disordered):
            own = range(window * size_us, (window + 1) * size_us)
            late = self.stragglers if window > self.in_order else 0
            times_us += [*own[late:], *owed]
            owed = own[:late]
        times_us += owed
        config = SlackConfig(
            size_us,
            size_us,
            aggregate="count",
            keyed=False,
            control=control,
            eps=EPS,
            delta=DELTA,
            start_slack_us=0,
        )
        arrivals = tuple(
            Event(seq, seq, "", time_us, 1.0, times_us[-1] + size_us + seq)
            for seq, time_us in enumerate(times_us)
        )
        return Workload("slack", arrivals, config.to_json())


class Window(NamedTuple):
    """One window, after the whole stream."""

    coverage: float
    """Share of its tuples in the first answer."""
    required: float
    alpha: float
    """Value of alpha after its judgement."""


def outcome(pattern: Pattern, control: str) -> tuple[Window, ...]:
    """Return the windows of a stream under a control, in the order of their ends."""
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
    """Quality of the first answers in the second half of a stream."""

    coverage: float
    required: float
    wrong: float
    """Share of the windows whose first answer is off by eps or more."""

    def describe(self) -> str:
        """Return the figures as a phrase."""
        return (
            f"mean coverage {self.coverage:.3f} where {self.required:.3f} is required,"
            f" {self.wrong:.1%} of the first answers off by {EPS:.0%} or more"
        )


def share(windows: tuple[Window, ...]) -> Share:
    """Return means over the second half of the windows."""
    late = windows[len(windows) // 2 :]
    n = len(late)
    return Share(
        sum(window.coverage for window in late) / n,
        sum(window.required for window in late) / n,
        sum(1 - window.coverage >= EPS for window in late) / n,
    )


def patterns(windows: int) -> Iterator[Pattern]:
    """Yield every stream of equal windows, the smallest windows first."""
    for tuples, stragglers in product(TUPLES, TUPLES):
        if stragglers < tuples:
            yield Pattern(tuples, stragglers, windows)


PROMISE = "few first answers are wrong"


def promise() -> Findings:
    """Find the smallest windows whose mean coverage is as required, but that are often wrong."""
    return search(
        PROMISE,
        patterns(WINDOWS),
        _judge_law,
        lambda pattern: _conformal([pattern._replace(disordered=LONG)]),
        lambda: _conformal(patterns(LONG)),
        _describe_windows,
    )


def _judge_law(pattern: Pattern) -> Verdict:
    """Judge the published law; only a mean as required leaves no other explanation of errors."""
    found = share(outcome(pattern, "pd"))
    kept = found.wrong <= DELTA or abs(found.coverage - found.required) > NEAR
    sentence = f"In the second half of {WINDOWS} windows: {found.describe()}; promised {DELTA:.0%}."
    return decide(PROMISE, kept, sentence)


def _describe_windows(pattern: Pattern) -> Iterator[str]:
    yield f"{_describe(pattern)} The query is a count with eps = {EPS}, delta = {DELTA}."
    for number, window in enumerate(outcome(pattern, "pd")[200:206], 201):
        yield (
            f"Window {number}: its first answer has {window.coverage:.0%} of the tuples"
            f" ({window.required:.0%} required), then alpha = {window.alpha:.3f}."
        )


def _conformal(chosen: Iterable[Pattern]) -> Verdict:
    """Judge ``conformal``: in the long run at most delta of the first answers are wrong."""
    shares = [(share(outcome(pattern, "conformal")), pattern) for pattern in chosen]
    worst, pattern = max(shares, key=lambda each: each[0].wrong)
    tried = "" if len(shares) == 1 else f"The worst of {counted(len(shares), 'pattern')}: "
    sentence = (
        f"{tried}{counted(pattern.stragglers, 'straggler')} of {pattern.tuples} tuples, second half"
        f" of {LONG:,} windows: {worst.describe()}; promised {DELTA:.0%}."
    )
    return decide(PROMISE, worst.wrong <= DELTA, sentence)


# ----------------------------------------------------------------------------------------- windup

RECOVERY = f"coverage recovers within {RECOVERS_WITHIN} windows"


def recovery(pattern: Pattern, control: str) -> int:
    """Return the windows from the start of the disorder until one has its required coverage."""
    windows = outcome(pattern, control)[pattern.in_order :]
    met = (n for n, window in enumerate(windows) if window.coverage >= window.required)
    return next(met, len(windows))


def windup() -> Findings:
    """Find the shortest time in order after which the law recovers too slowly."""
    plain = Pattern(tuples=3, stragglers=2, disordered=DISORDERED)
    slow = (n for n in SEARCHED if recovery(plain._replace(in_order=n), "pd") > RECOVERS_WITHIN)
    in_order = next(slow, None)
    if in_order is None:
        return undetermined(RECOVERY)
    times = {n: recovery(plain._replace(in_order=n), "pd") for n in (in_order, *SHOWN)}
    sentences = (
        f"{_describe(plain)} Before that come windows in order. A count, eps = {EPS}.",
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
    return Findings(sentences, literal, same, _clamped(plain, (*SEARCHED, *SHOWN)))


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
    return decide(RECOVERY, longest <= RECOVERS_WITHIN, sentence)


def _windows(number: int) -> str:
    return counted(number, "window")


def _describe(pattern: Pattern) -> str:
    return (
        f"Every window of {pattern.tuples} us holds {pattern.tuples} tuples; the first"
        f" {pattern.stragglers} of each come when the next window has come."
    )
