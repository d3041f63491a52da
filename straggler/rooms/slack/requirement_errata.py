"""Errata of the required coverage: two forms that require too little, found by counting subsets.

Rules of this file:

1. A promise is a probability over the subsets of tuples that a first answer may miss, all equally
   likely. Windows are small, so the probability is counted, not estimated.
2. Smaller windows are tried first. The level d is delta itself, as under every control except
   ``conformal``.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, product
from math import ceil, comb
from typing import NamedTuple

from model.checking.claims import Outcome, Verdict
from model.slack.requirement import WindowFacts, requirement_of
from model.slack.variants import VARIANTS
from model.vocabulary import SlackConfig
from straggler.pages.errata import Findings, decide, search

EPS = (0.1, 0.2, 0.4)
DELTAS = (0.05, 0.2)
VALUES = (1, 2, 4)
TUPLES = range(2, 8)
"""Numbers of tuples in a window with values."""
RANKED = range(2, 41)
"""Numbers of tuples in a window of which only ranks matter."""
QUANTILES = (0.9, 0.95, 0.99)

CLAIM = "the error is below eps except with probability delta"


class Window(NamedTuple):
    """A window and its query."""

    config: SlackConfig
    total: int
    """Number N of its tuples."""
    values: tuple[int, ...] = ()

    @property
    def known(self) -> WindowFacts:
        """The facts that a judgement would know."""
        mean = Fraction(sum(self.values), self.total)
        squares = Fraction(sum(value * value for value in self.values), self.total)
        cv_squared = float(squares / mean**2 - 1) if mean else 0.0
        return WindowFacts(self.total, cv_squared, [float(value) for value in self.values])

    def probability(self, n: int) -> Fraction:
        """Return the probability of an error of eps or more with n of the tuples."""
        eps = Fraction(repr(self.config.eps))
        if self.values:
            return _sum_fails(self.values, self.total - n, eps)
        return _ranks_fail(Fraction(repr(self.config.q)), eps, self.total, n)


def _sum_fails(values: Sequence[int], missing: int, eps: Fraction) -> Fraction:
    """Return the share of the ways to miss tuples that lose eps of the sum or more."""
    ways: Counter[tuple[int, int]] = Counter({(0, 0): 1})
    for value in values:
        ways += Counter({(m + 1, lost + value): n for (m, lost), n in ways.items()})
    limit = eps * sum(values)
    failed = sum(n for (m, lost), n in ways.items() if m == missing and lost >= limit)
    return Fraction(failed, comb(len(values), missing))


@lru_cache(maxsize=1 << 12)
def _ranks_fail(q: Fraction, eps: Fraction, total: int, n: int) -> Fraction:
    """Return the share of all n-subsets of 1..N whose answer is eps * N ranks off or more."""
    aim, k = ceil(q * total), ceil(q * n)
    failed = sum(
        comb(rank - 1, k - 1) * comb(total - rank, n - k)
        for rank in range(1, total + 1)
        if abs(rank - aim) >= eps * total
    )
    return Fraction(failed, comb(total, n))


def sums() -> Iterator[Window]:
    """Yield every small window of small values, with every quality of its sum."""
    for total in TUPLES:
        for values, eps, delta in product(
            combinations_with_replacement(VALUES, total), EPS, DELTAS
        ):
            yield Window(SlackConfig(1, 1, control="pd", eps=eps, delta=delta), total, values)


def ranks() -> Iterator[Window]:
    """Yield every small window, with every quality of its extreme quantiles."""
    for total, q, eps, delta in product(RANKED, QUANTILES, EPS, DELTAS):
        asked = SlackConfig(1, 1, aggregate="quantile", q=q, control="pd", eps=eps, delta=delta)
        yield Window(asked, total)


# ----------------------------------------------------------------------------------- the two forms


def smaller_root() -> Findings:
    """Search sums. The right root is an approximation: the scope judges the rigorous method."""
    return _findings(
        "smaller_root",
        sums,
        lambda: _with_approximation(_scope(_rigorous(window) for window in sums())),
    )


def normal_quantile() -> Findings:
    """Search quantiles; the right requirement is exact."""
    return _findings(
        "normal_quantile",
        ranks,
        lambda: _scope((window, requirement_of(window.config)(window.known)) for window in ranks()),
    )


def _findings(
    variant: str, windows: Callable[[], Iterator[Window]], scope: Callable[[], Verdict]
) -> Findings:
    """Find the first window that the wrong form of a variant fails."""
    literal = VARIANTS[variant].rules.requirement
    cases = ((window, literal(window.config)(window.known)) for window in windows())
    return search(
        CLAIM,
        cases,
        lambda case: _judged(*case),
        lambda case: _judged(case[0], requirement_of(case[0].config)(case[0].known)),
        scope,
        lambda case: _describe(*case),
        "case",
    )


def _with_approximation(rigorous: Verdict) -> Verdict:
    """Add to the verdict on the rigorous method how often the right root requires too little."""
    right = [(window, requirement_of(window.config)(window.known)) for window in sums()]
    exceeded = sum(_judged(*each).outcome is Outcome.BROKEN for each in right)
    approximate = f"The larger coverage, an approximation, exceeds it in {exceeded:,} of them."
    return replace(rigorous, sentence=f"Method rigorous: {rigorous.sentence} {approximate}")


def _rigorous(window: Window) -> tuple[Window, int]:
    plain = window.config
    config = SlackConfig(1, 1, control="pd", eps=plain.eps, delta=plain.delta, method="rigorous")
    return window, requirement_of(config)(window.known)


def _judged(window: Window, n: int) -> Verdict:
    probability = window.probability(n)
    kept = probability <= Fraction(repr(window.config.delta))
    sentence = (
        f"{n} of {window.total} tuples required; then the probability of an error of"
        f" {window.config.eps} or more is {float(probability):.3f}, allowed is"
        f" {window.config.delta}."
    )
    return decide(CLAIM, kept, sentence)


def _scope(required: Iterator[tuple[Window, int]]) -> Verdict:
    """Judge the required numbers of all windows, and all larger numbers of tuples."""
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


def _describe(window: Window, n: int) -> Sequence[str]:
    query = f"eps = {window.config.eps} and delta = {window.config.delta} are asked of"
    if window.values:
        values = ", ".join(map(str, window.values))
        first = f"A window of {window.total} tuples with the values {values}; {query} its sum."
    else:
        q = window.config.q
        first = f"A window of {window.total} tuples; {query} its quantile {q}, in ranks."
    failed = window.probability(n)
    return (
        first,
        f"The first answer is to contain {n} of them.",
        f"Of the {comb(window.total, n)} ways to have {n} of {window.total} tuples,"
        f" {failed * comb(window.total, n)} are wrong by {window.config.eps} or more.",
    )
