"""Promise 5 of docs/grouping.md: balance, where it is known what keys are drawn from.

Rules of this file:

* Every window is judged by itself: its candidates and times are fixed before its tuples come.
* Work is measured as loads are, by c_i: for ``tag`` that is time, for ``pkg`` tuples.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from model.claims import Outcome, Verdict
from model.grouping import balance
from model.grouping.evidence import Evidence, Window, evidence_of
from model.grouping.routing_claims import costs_of
from model.grouping.rules import RULES
from model.vocabulary import Trace, Workload

UPPER = "no instance has more work than the bound allows"
LOWER = "no router does better than the candidates allow"
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Balance:
    """How the tuples of a window are spread."""

    window: int
    counts: tuple[int, ...]
    """Tuples at each instance."""
    times_us: tuple[int, ...]
    work: int
    """The largest one, as loads measure it."""
    least_work: float
    """What every router with these candidates has to give some instance."""
    bound: float
    """What this one may give any instance, except with probability delta."""

    @property
    def rho(self) -> float:
        """Makespan over that of a fluid, minus 1."""
        return balance.rho(self.counts, self.times_us)

    @property
    def imbalance(self) -> float:
        """I, which hides it."""
        return balance.imbalance(self.counts, self.times_us)


def balances(
    workload: Workload, trace: Trace, weights: Mapping[str, int], delta: float
) -> tuple[Balance, ...]:
    """Windows in order; keys are drawn with these weights, whatever came before.

    Raises ``ValueError`` for what the bound does not hold for: several senders, and several
    windows of a policy whose loads go on.
    """
    seen = evidence_of(workload, trace)
    if seen.config.senders > 1:
        msg = f"senders is {seen.config.senders}; the bound is for one"
        raise ValueError(msg)
    if len(seen.windows) > 1 and seen.config.policy not in RULES.afresh:
        msg = f"there are {len(seen.windows)} windows; loads of {seen.config.policy!r} go on"
        raise ValueError(msg)
    return tuple(_balance(seen, window, weights, delta) for window in seen.windows)


def _balance(seen: Evidence, window: Window, weights: Mapping[str, int], delta: float) -> Balance:
    table, costs = seen.table(window), costs_of(seen.config, window)
    counts = seen.counts(window)
    total, m = sum(weights.values()), len(window.arrivals)
    sets = {key: frozenset(table.candidates(key)) for key in {*weights, *window.frequencies}}
    shares = balance.masses((sets[key], weight / total) for key, weight in weights.items())
    there = balance.masses((sets[key], f) for key, f in window.frequencies.items())
    lambda_us = balance.least_time_us(shares, costs)
    return Balance(
        window.number,
        counts,
        table.times_us,
        max(balance.work_us(counts, costs)),
        balance.least_time_us(there, costs),
        balance.largest_work_us(lambda_us, m, costs, delta),
    )


def check(
    workload: Workload, trace: Trace, weights: Mapping[str, int], delta: float
) -> tuple[Verdict, ...]:
    """Both bounds; the upper one is wrongly called broken with probability delta a window."""
    found = balances(workload, trace, weights, delta)
    return (_verdict(UPPER, _too_much(found, delta)), _verdict(LOWER, _too_little(found)))


def _too_much(found: tuple[Balance, ...], delta: float) -> Iterator[str]:
    for each in found:
        if each.work > each.bound:
            yield (
                f"In window {each.window} an instance has the work {each.work}; more than "
                f"{each.bound:.0f} has probability {delta:g} (counts {each.counts})."
            )


def _too_little(found: tuple[Balance, ...]) -> Iterator[str]:
    for each in found:
        if each.work < each.least_work * (1 - ROUNDING):
            yield (
                f"In window {each.window} no instance has more than the work {each.work}; "
                f"{each.least_work:.0f} is the least that candidates allow (counts {each.counts})."
            )


def _verdict(claim: str, against: Iterator[str]) -> Verdict:
    witness = tuple(against)
    if witness:
        return Verdict(claim, Outcome.BROKEN, witness[0], witness)
    return Verdict(claim, Outcome.HOLDS, "Nothing speaks against it.")
