"""Balance promised for unequal instances by rules that do not look at their speeds, or look amiss.

Rules of this file:

1. Everything is tried in a fixed order, fewer instances first, then fewer tuples: nothing that was
   tried before a counterexample breaks the promise.
2. Tuples are spread by the reference with the rules in question; work is counted from its routes.
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
from properties.errors import counted
from properties.grouping.draws import stream
from properties.pages.errata import Findings, smaller

# -------------------------------------------------------------------------- uniform candidates

KEYS = 1_000
"""Each has one tuple, so that none is large."""
SIZES = range(2, 9)
TIMES_SLOWER = (1, 2, 5, 10, 20, 50)
TWICE = 1.0
"""rho at which everything takes twice as long as a fluid."""
BOUNDED = "many small keys take at most twice as long as a fluid would"


class Crew(NamedTuple):
    """Instances of which half, rounded up, are slower."""

    n: int
    times_slower: int

    @property
    def times_us(self) -> tuple[int, ...]:
        """The fast ones first."""
        return (1,) * (self.n // 2) + (self.times_slower,) * (self.n - self.n // 2)

    def spread(self, policy: str) -> list[int]:
        """Tuples at each instance, of a window in which no key is heavy."""
        config = GroupingConfig(self.n, policy, ((0, self.times_us),), window_tuples=KEYS)
        return _counts(make_system(), config, [f"k{number}" for number in range(KEYS)])

    def rho(self, policy: str) -> float:
        """Of that window."""
        return rho(self.spread(policy), self.times_us)


CREWS = tuple(Crew(n, times_slower) for n, times_slower in product(SIZES, TIMES_SLOWER))


def _counts(system: System, config: GroupingConfig, keys: Sequence[str]) -> list[int]:
    found = Counter(route.instance for route in system(stream(keys, config)).of(Route))
    return [found[instance] for instance in range(config.instances)]


def uniform() -> Findings:
    """The first crew that two uniform candidates cannot balance."""
    tried = next(i for i, crew in enumerate(CREWS) if crew.rho("tag-literal") > TWICE)
    crew = CREWS[tried]
    worse = crew._replace(times_slower=TIMES_SLOWER[-1])
    counts = crew.spread("tag-literal")
    told = (
        f"{counted(crew.n, 'instance')}, {crew.n - crew.n // 2} of them {crew.times_slower} times"
        f" slower; {KEYS:,} keys with one tuple each.",
        f"By the rule as written {_listed(counts)} tuples go to the instances: the busiest works"
        f" {max(work_us(counts, crew.times_us)):,} us, a fluid would take"
        f" {KEYS / total_speed(crew.times_us):,.0f} us.",
        "Keys with slow candidates alone have nowhere else to go. It has no bound: were these"
        f" instances {worse.times_slower} times slower, rho would be"
        f" {worse.rho('tag-literal'):.2f}.",
        smaller(tried, "crew"),
    )
    return Findings(
        told, _bounded([crew], "tag-literal"), _bounded([crew], "tag"), _bounded(CREWS, "tag")
    )


def _bounded(crews: Sequence[Crew], policy: str) -> Verdict:
    largest = max(crew.rho(policy) for crew in crews)
    of = "" if len(crews) == 1 else f", in {len(crews)} crews of up to {SIZES[-1]} instances"
    outcome = Outcome.HOLDS if largest <= TWICE else Outcome.BROKEN
    sentence = f"rho is {'at most ' if of else ''}{largest:.2f}{of}."
    return Verdict(BOUNDED, outcome, sentence)


# ------------------------------------------------------------------------------- what I hides

LITTLE = 0.25
"""I that would be called a good balance."""
FEW_TUPLES, FEW_INSTANCES = 6, 5
TIMES_US = (1, 2, 5, 10)
SHORT = "what is well balanced takes at most twice as long as the best way to spread the tuples"


class Spread(NamedTuple):
    """Tuples at instances, and how long a tuple takes there."""

    counts: tuple[int, ...]
    times_us: tuple[int, ...]

    @property
    def makespan_us(self) -> int:
        """When the busiest instance is done."""
        return max(work_us(self.counts, self.times_us))


def _groups() -> Iterator[list[Spread]]:
    """All ways to spread so many tuples on instances, crew by crew."""
    for n, m in product(range(2, FEW_INSTANCES + 1), range(1, FEW_TUPLES + 1)):
        ways = [counts for counts in product(range(m + 1), repeat=n) if sum(counts) == m]
        for times_us in combinations_with_replacement(TIMES_US, n):
            yield [Spread(counts, times_us) for counts in ways]


def hidden() -> Findings:
    """The first spread that I calls good and that takes too long, beside what rho says of all."""
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
        nothing = Verdict(SHORT, Outcome.UNDETERMINED, f"None of {tried:,} spreads breaks it.")
        return Findings((), nothing, nothing, nothing)
    told = (
        f"Instances that need {_listed(found.times_us)} us a tuple get {_listed(found.counts)}"
        " tuples.",
        f"They work {_listed(work_us(*found))} us: I is {imbalance(*found):.2f}, as if all were"
        f" well. Spread otherwise, the same tuples take {best} us, not {found.makespan_us}.",
        smaller(tried, "spread"),
    )
    long = Verdict(
        SHORT,
        Outcome.BROKEN,
        f"It takes {found.makespan_us / best:.1f} times as long as it must, with I no more than"
        f" {LITTLE}.",
    )
    same = Verdict(
        SHORT,
        Outcome.HOLDS if rho(*found) > TWICE else Outcome.BROKEN,
        f"rho is {rho(*found):.2f}, which nobody would call well balanced.",
    )
    scope = Verdict(
        SHORT,
        Outcome.BROKEN if rho_broken else Outcome.HOLDS,
        f"Where rho is at most 1 nothing takes more than twice as long as the best way: all ways to"
        f" spread up to {FEW_TUPLES} tuples on {crews:,} crews of up to {FEW_INSTANCES} instances.",
    )
    return Findings(told, long, same, scope)


# ----------------------------------------------------------------------------- the way as work

LATENCIES_US = range(5)
PAIRS_US = ((1, 1), (1, 2), (2, 1), (2, 2))
TUPLES = range(1, 13)
WITHIN = "no instance works longer than a fluid would and one tuple more"


class Pair(NamedTuple):
    """Two instances, both candidates of every key, with ways of these lengths."""

    m: int
    latency_us: tuple[int, ...]
    times_us: tuple[int, ...]

    def counts(self, system: System) -> list[int]:
        """Where the tuples go."""
        config = GroupingConfig(
            2, times_us=((0, self.times_us),), latency_us=self.latency_us, window_tuples=self.m
        )
        return _counts(system, config, ["k"] * self.m)

    def is_within(self, counts: Sequence[int]) -> bool:
        """Whether they are spread as well as is promised."""
        longest_us = self.m / total_speed(self.times_us) + max(self.times_us)
        return max(work_us(counts, self.times_us)) <= longest_us


PAIRS = tuple(
    Pair(m, latency_us, times_us)
    for m, latency_us, times_us in product(TUPLES, product(LATENCIES_US, repeat=2), PAIRS_US)
)


def propagation() -> Findings:
    """The first pair that a way taken for work leaves out of balance."""
    literal = VARIANTS["with_propagation"].make_system()
    tried = next(i for i, each in enumerate(PAIRS) if not each.is_within(each.counts(literal)))
    pair = PAIRS[tried]
    counts = pair.counts(literal)
    told = (
        f"Two instances need {_listed(pair.times_us)} us a tuple; the ways to them take"
        f" {_listed(pair.latency_us)} us. Of {pair.m} tuples of one key {_listed(counts)} go to"
        " them.",
        "A tuple on its way keeps nobody busy: the near instance works"
        f" {max(work_us(counts, pair.times_us))} us, a fluid would take"
        f" {pair.m / total_speed(pair.times_us):.1f} us.",
        smaller(tried, "case"),
    )
    return Findings(told, _within([pair], literal), *_kept(pair))


def _kept(pair: Pair) -> tuple[Verdict, Verdict]:
    right = make_system()
    return _within([pair], right), _within(PAIRS, right)


def _within(pairs: Sequence[Pair], system: System) -> Verdict:
    outside = [pair for pair in pairs if not pair.is_within(pair.counts(system))]
    if outside:
        counts = _listed(outside[0].counts(system))
        sentence = f"{counts} tuples: one instance works longer, by more than a tuple."
        return Verdict(WITHIN, Outcome.BROKEN, sentence)
    if len(pairs) == 1:
        sentence = f"{_listed(pairs[0].counts(system))} tuples: no instance works that long."
    else:
        sentence = f"It holds in {len(pairs):,} cases of up to {TUPLES[-1]} tuples."
    return Verdict(WITHIN, Outcome.HOLDS, sentence)


def _listed(numbers: Sequence[int]) -> str:
    return f"{', '.join(f'{number:,}' for number in numbers[:-1])} and {numbers[-1]:,}"
