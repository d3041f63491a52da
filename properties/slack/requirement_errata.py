"""Forms of the required coverage that require too little, against a count of all subsets.

Rules of this file:

1. A promise is a probability over the subsets that a window's first answer may have missed, all
   equally likely. Windows are small, so it is counted, not estimated.
2. Windows are tried in a fixed order, smaller ones first. The level d is delta itself, as under
   every control but ``conformal``.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import comb
from typing import NamedTuple

from model.checking.claims import Outcome, Verdict
from model.slack.coverage import Known, requirement_of
from model.slack.requirement_claims import rank_failures
from model.slack.variants import VARIANTS
from model.vocabulary import SlackConfig
from properties.pages.errata import Findings

EPS = (0.1, 0.2, 0.4)
DELTAS = (0.05, 0.2)
VALUES = (1, 2, 4)
TUPLES = range(2, 8)
"""Tuples of a window of values."""
RANKED = range(2, 41)
"""Tuples of a window of which ranks alone matter."""
QUANTILES = (0.9, 0.95, 0.99)

CLAIM = "the error is below eps except with probability delta"


class Window(NamedTuple):
    """A window with what is asked of it."""

    config: SlackConfig
    total: int
    """N."""
    values: tuple[int, ...] = ()

    @property
    def known(self) -> Known:
        """What a judgement would know."""
        mean = Fraction(sum(self.values), self.total)
        squares = Fraction(sum(value * value for value in self.values), self.total)
        cv_squared = float(squares / mean**2 - 1) if mean else 0.0
        return Known(self.total, cv_squared, [float(value) for value in self.values])

    def probability(self, n: int) -> Fraction:
        """Of an error of eps or more when n of the tuples are there."""
        eps = Fraction(repr(self.config.eps))
        if self.values:
            return _sum_fails(self.values, self.total - n, eps)
        return rank_failures(Fraction(repr(self.config.q)), eps, self.total, n)


def _sum_fails(values: Sequence[int], missing: int, eps: Fraction) -> Fraction:
    """Share of the ways to miss so many tuples whose sum is eps of the whole or more."""
    ways: Counter[tuple[int, int]] = Counter({(0, 0): 1})
    for value in values:
        ways += Counter({(m + 1, lost + value): n for (m, lost), n in ways.items()})
    limit = eps * sum(values)
    failed = sum(n for (m, lost), n in ways.items() if m == missing and lost >= limit)
    return Fraction(failed, comb(len(values), missing))


def sums() -> Iterator[Window]:
    """Every small window of small values, with every quality asked of its sum."""
    for total in TUPLES:
        for values, eps, delta in product(
            combinations_with_replacement(VALUES, total), EPS, DELTAS
        ):
            yield Window(SlackConfig(1, 1, control="pd", eps=eps, delta=delta), total, values)


def ranks() -> Iterator[Window]:
    """Every small window, with every quality asked of its extreme quantiles."""
    for total, q, eps, delta in product(RANKED, QUANTILES, EPS, DELTAS):
        asked = SlackConfig(1, 1, aggregate="quantile", q=q, control="pd", eps=eps, delta=delta)
        yield Window(asked, total)


# ----------------------------------------------------------------------------------- the two forms


def smaller_root() -> Findings:
    """A sum. The right root is an approximation: in the scope the rigorous method is held to it."""
    return _findings(
        "smaller_root",
        sums,
        lambda: _with_approximation(_scope(_rigorous(window) for window in sums())),
    )


def normal_quantile() -> Findings:
    """A quantile; the right requirement is exact."""
    return _findings(
        "normal_quantile",
        ranks,
        lambda: _scope((window, requirement_of(window.config)(window.known)) for window in ranks()),
    )


def _findings(
    variant: str, windows: Callable[[], Iterator[Window]], scope: Callable[[], Verdict]
) -> Findings:
    """The first window that a wrong form fails, and what the right one makes of it."""
    literal = VARIANTS[variant].rules.requirement
    broken = _first(windows(), lambda window: literal(window.config)(window.known))
    if broken is None:
        return _nothing()
    window, n, tried = broken
    return Findings(
        _told(window, n, tried),
        _judged(window, n),
        _judged(window, requirement_of(window.config)(window.known)),
        scope(),
    )


def _with_approximation(rigorous: Verdict) -> Verdict:
    """The verdict on the rigorous method, and how often the right root requires too little."""
    right = [(window, requirement_of(window.config)(window.known)) for window in sums()]
    exceeded = sum(_judged(*each).outcome is Outcome.BROKEN for each in right)
    approximate = f"The larger coverage, an approximation, exceeds it in {exceeded:,} of them."
    return replace(rigorous, sentence=f"Method rigorous: {rigorous.sentence} {approximate}")


def _rigorous(window: Window) -> tuple[Window, int]:
    plain = window.config
    config = SlackConfig(1, 1, control="pd", eps=plain.eps, delta=plain.delta, method="rigorous")
    return window, requirement_of(config)(window.known)


def _first(
    windows: Iterator[Window], required: Callable[[Window], int]
) -> tuple[Window, int, int] | None:
    """The first window of which too little is required, how much, and how many came before it."""
    for tried, window in enumerate(windows):
        n = required(window)
        if window.probability(n) > Fraction(repr(window.config.delta)):
            return window, n, tried
    return None


def _judged(window: Window, n: int) -> Verdict:
    probability = window.probability(n)
    kept = probability <= Fraction(repr(window.config.delta))
    sentence = (
        f"{n} of {window.total} tuples required; then the probability of an error of"
        f" {window.config.eps} or more is {float(probability):.3f}, allowed is"
        f" {window.config.delta}."
    )
    return Verdict(CLAIM, Outcome.HOLDS if kept else Outcome.BROKEN, sentence)


def _scope(required: Iterator[tuple[Window, int]]) -> Verdict:
    """No window of all has a larger probability than allowed, whether more tuples come or not."""
    tried, missed = 0, 0
    for window, n in required:
        tried += 1
        missed += n < window.total
        for more in range(n, window.total + 1):
            verdict = _judged(window, more)
            if verdict.outcome is Outcome.BROKEN:
                return verdict
    sentence = f"Never larger in {tried:,} windows, of which {missed:,} may miss tuples."
    return Verdict(CLAIM, Outcome.HOLDS if missed else Outcome.UNDETERMINED, sentence)


def _told(window: Window, n: int, tried: int) -> tuple[str, ...]:
    asked = f"eps = {window.config.eps} and delta = {window.config.delta} are asked of"
    if window.values:
        values = ", ".join(map(str, window.values))
        first = f"A window of {window.total} tuples with the values {values}; {asked} its sum."
    else:
        q = window.config.q
        first = f"A window of {window.total} tuples; {asked} its quantile {q}, in ranks."
    failed = window.probability(n)
    return (
        first,
        f"The first answer is to contain {n} of them.",
        f"Of the {comb(window.total, n)} ways to have {n} of {window.total} tuples,"
        f" {failed * comb(window.total, n)} are wrong by {window.config.eps} or more.",
        f"Smaller windows and other qualities do not break the promise: {tried:,} of {tried:,}"
        " tried before.",
    )


def _nothing() -> Findings:
    nothing = Verdict(CLAIM, Outcome.UNDETERMINED, "Nothing that was searched breaks it.")
    return Findings((), nothing, nothing, nothing)
