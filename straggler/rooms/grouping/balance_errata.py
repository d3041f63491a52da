"""Errata on balance: rules for unequal instances that ignore their speeds, or misread them.

Rules of this file:

1. Cases are tried in a fixed order, fewer instances first, then fewer tuples.
2. The reference spreads the tuples by the rules in question; work is counted from its routes.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement, product
from typing import NamedTuple

from model.checking.claims import Outcome, Verdict
from model.grouping import make_system
from model.grouping.balance import imbalance, rho, total_speed, work_us
from model.grouping.variants import VARIANTS
from model.vocabulary import GroupingConfig, System
from model.vocabulary.grouping import Route
from straggler.errors import counted
from straggler.pages.errata import Findings, decide, search, smaller, undetermined
from straggler.rooms.grouping.draws import stream

# -------------------------------------------------------------------------- uniform candidates

KEYS = 1_000
"""Number of keys; each has one tuple, so that no key is heavy."""
SIZES = range(2, 9)
TIMES_SLOWER = (1, 2, 5, 10, 20, 50)
TWICE = 1.0
"""The rho of a makespan twice as long as that of a fluid."""
BOUNDED = "many small keys take at most twice as long as a fluid would"


class Crew(NamedTuple):
    """A number of instances; half of them, rounded up, are slower."""

    n: int
    times_slower: int

    @property
    def times_us(self) -> tuple[int, ...]:
        """Time of a tuple at each instance (us), the fast instances first."""
        return (1,) * (self.n // 2) + (self.times_slower,) * (self.n - self.n // 2)

    def spread(self, policy: str) -> list[int]:
        """Return the tuples at each instance, in a window without heavy keys."""
        config = GroupingConfig(self.n, policy, ((0, self.times_us),), window_tuples=KEYS)
        return _counts(make_system(), config, [f"k{number}" for number in range(KEYS)])

    def rho(self, policy: str) -> float:
        """Return the rho of that window."""
        return rho(self.spread(policy), self.times_us)


CREWS = tuple(Crew(n, times_slower) for n, times_slower in product(SIZES, TIMES_SLOWER))


def _counts(system: System, config: GroupingConfig, keys: Sequence[str]) -> list[int]:
    found = Counter(route.instance for route in system(stream(keys, config)).of(Route))
    return [found[instance] for instance in range(config.instances)]


def uniform() -> Findings:
    """Find the first crew that two uniform candidates cannot balance."""
    return search(
        BOUNDED,
        CREWS,
        lambda crew: _bounded([crew], "tag-literal"),
        lambda crew: _bounded([crew], "tag"),
        lambda: _bounded(CREWS, "tag"),
        _describe_crew,
        "crew",
    )


def _describe_crew(crew: Crew) -> Sequence[str]:
    worse = crew._replace(times_slower=TIMES_SLOWER[-1])
    counts = crew.spread("tag-literal")
    return (
        f"{counted(crew.n, 'instance')}, {crew.n - crew.n // 2} of them {crew.times_slower} times"
        f" slower; {KEYS:,} keys with one tuple each.",
        f"By the rule as printed {_list(counts)} tuples go to the instances: the busiest works"
        f" {max(work_us(counts, crew.times_us)):,} us, a fluid would take"
        f" {KEYS / total_speed(crew.times_us):,.0f} us.",
        "Keys with slow candidates alone have nowhere else to go. It has no bound: were these"
        f" instances {worse.times_slower} times slower, rho would be"
        f" {worse.rho('tag-literal'):.2f}.",
    )


def _bounded(crews: Sequence[Crew], policy: str) -> Verdict:
    largest = max(crew.rho(policy) for crew in crews)
    of = "" if len(crews) == 1 else f", in {len(crews)} crews of up to {SIZES[-1]} instances"
    sentence = f"rho is {'at most ' if of else ''}{largest:.2f}{of}."
    return decide(BOUNDED, largest <= TWICE, sentence)


# ---------------------------------------------------------------- imbalance that hides makespan

LITTLE = 0.25
"""An imbalance I that would be called a good balance."""
FEW_TUPLES, FEW_INSTANCES = 6, 5
TIMES_US = (1, 2, 5, 10)
SHORT = "what is well balanced takes at most twice as long as the best way to spread the tuples"


class Spread(NamedTuple):
    """Tuples at instances, and the time of a tuple there (us)."""

    counts: tuple[int, ...]
    times_us: tuple[int, ...]

    @property
    def makespan_us(self) -> int:
        """Time at which the busiest instance is done."""
        return max(work_us(self.counts, self.times_us))


def _groups() -> Iterator[list[Spread]]:
    """Yield, crew by crew, all ways to spread a few tuples on its instances."""
    for n, m in product(range(2, FEW_INSTANCES + 1), range(1, FEW_TUPLES + 1)):
        ways = [counts for counts in product(range(m + 1), repeat=n) if sum(counts) == m]
        for times_us in combinations_with_replacement(TIMES_US, n):
            yield [Spread(counts, times_us) for counts in ways]


def hidden() -> Findings:
    """Find the first spread that I calls good and that takes too long; judge rho on all spreads."""
    tried, found, best = 0, None, 0
    rho_broken = crews = 0
    for group in _groups():
        least = min(each.makespan_us for each in group)
        crews += 1
        for each in group:
            if rho(*each) <= TWICE and each.makespan_us > 2 * least:
                rho_broken += 1
            if found is None and imbalance(*each) <= LITTLE and each.makespan_us > 2 * least:
                found, best = each, least
            tried += found is None
    if found is None:
        return undetermined(SHORT, f"None of {tried:,} spreads breaks it.")
    sentences = (
        f"Instances that need {_list(found.times_us)} us a tuple get {_list(found.counts)} tuples.",
        f"They work {_list(work_us(*found))} us: I is {imbalance(*found):.2f}, as if all were"
        f" well. Spread otherwise, the same tuples take {best} us, not {found.makespan_us}.",
        smaller(tried, "spread"),
    )
    long = Verdict(
        SHORT,
        Outcome.BROKEN,
        f"It takes {found.makespan_us / best:.1f} times as long as it must, with I no more than"
        f" {LITTLE}.",
    )
    same = decide(
        SHORT,
        rho(*found) > TWICE,
        f"rho is {rho(*found):.2f}, which nobody would call well balanced.",
    )
    scope = decide(
        SHORT,
        not rho_broken,
        f"Where rho is at most 1 nothing takes more than twice as long as the best way: all ways to"
        f" spread up to {FEW_TUPLES} tuples on {crews:,} crews of up to {FEW_INSTANCES} instances.",
    )
    return Findings(sentences, long, same, scope)


# -------------------------------------------------------------------- propagation taken for work

LATENCIES_US = range(5)
PAIRS_US = ((1, 1), (1, 2), (2, 1), (2, 2))
TUPLES = range(1, 13)
WITHIN = "no instance works longer than a fluid would and one tuple more"


class Pair(NamedTuple):
    """Two instances, both candidates of the one key, with latencies (us)."""

    m: int
    latency_us: tuple[int, ...]
    times_us: tuple[int, ...]

    def counts(self, system: System) -> list[int]:
        """Return the tuples at each instance."""
        config = GroupingConfig(
            2, times_us=((0, self.times_us),), latency_us=self.latency_us, window_tuples=self.m
        )
        return _counts(system, config, ["k"] * self.m)

    def is_within(self, counts: Sequence[int]) -> bool:
        """Return whether tuples are spread as well as promised."""
        longest_us = self.m / total_speed(self.times_us) + max(self.times_us)
        return max(work_us(counts, self.times_us)) <= longest_us


PAIRS = tuple(
    Pair(m, latency_us, times_us)
    for m, latency_us, times_us in product(TUPLES, product(LATENCIES_US, repeat=2), PAIRS_US)
)


def propagation() -> Findings:
    """Find the first pair that is out of balance because latency counts as work."""
    literal, right = VARIANTS["with_propagation"].make_system(), make_system()
    return search(
        WITHIN,
        PAIRS,
        lambda pair: _within([pair], literal),
        lambda pair: _within([pair], right),
        lambda: _within(PAIRS, right),
        lambda pair: _describe_pair(pair, pair.counts(literal)),
        "case",
    )


def _describe_pair(pair: Pair, counts: Sequence[int]) -> Sequence[str]:
    return (
        f"Two instances need {_list(pair.times_us)} us a tuple; the ways to them take"
        f" {_list(pair.latency_us)} us. Of {pair.m} tuples of one key {_list(counts)} go to"
        " them.",
        "A tuple on its way keeps nobody busy: the near instance works"
        f" {max(work_us(counts, pair.times_us))} us, a fluid would take"
        f" {pair.m / total_speed(pair.times_us):.1f} us.",
    )


def _within(pairs: Sequence[Pair], system: System) -> Verdict:
    outside = [pair for pair in pairs if not pair.is_within(pair.counts(system))]
    if outside:
        counts = _list(outside[0].counts(system))
        sentence = f"{counts} tuples: one instance works longer, by more than a tuple."
        return Verdict(WITHIN, Outcome.BROKEN, sentence)
    if len(pairs) == 1:
        sentence = f"{_list(pairs[0].counts(system))} tuples: no instance works that long."
    else:
        sentence = f"It holds in {len(pairs):,} cases of up to {TUPLES[-1]} tuples."
    return Verdict(WITHIN, Outcome.HOLDS, sentence)


def _list(numbers: Sequence[int]) -> str:
    return f"{', '.join(f'{number:,}' for number in numbers[:-1])} and {numbers[-1]:,}"
