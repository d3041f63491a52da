"""The promises about load, judged on the figures of a run: imbalance, shedding, scaling, bytes.

Source: docs/join.md, sections 7 and 8.

Rules of this file:

* A run is a list of moments, or the bytes that were counted, whoever measured them.
* What is drawn by lot is held to a bound with a stated probability of error.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import ceil, isclose, log, sqrt
from typing import NamedTuple

from model.checking.claims import Claim, ClaimSet, Judgement
from model.join.control import Watch, share_to_shed, watch, within
from model.vocabulary.join_load import MOST, Limits

NO_FALSE_SHEDDING = "no worker is above tau1 while the mean is not, and nothing is shed then"
SHED_AS_ASKED = "the share shed is that of the smoothed utilisation"
CALM = "shedding ends only a margin below where it begins"
SCALED = "workers come and go as the utilisation asks"
BYTES = "bytes between workers are at most those of the formula, and at least 95% of them"
FLAT = "bytes between workers do not grow with the number of queries"

ERROR = 1e-9
"""Probability that a correctly drawn share is judged wrong (Hoeffding's inequality)."""
ROUNDING = 1e-9
SLACK = 0.05
"""Relative deviation allowed for measured bytes."""


class Moment(NamedTuple):
    """A chain at one moment of a run."""

    at_us: int
    workers: int
    mean: float
    """Mean utilisation of the workers: tuples held, divided by ``capacity``."""
    fullest: float
    """Utilisation of the fullest worker."""
    smoothed: float
    """Utilisation that shedding follows."""
    share: float
    """Share of the following arrivals that is to be shed."""
    offered: int
    """Arrivals since the last moment."""
    shed: int
    """Number of ``offered`` arrivals that were shed."""
    wanted: int
    """Number of workers that was decided on; reaching it may take time."""


class Rule(NamedTuple):
    """The settings that a run followed."""

    limits: Limits
    capacity: int
    """Number of tuples at a utilisation of 1."""
    base: float = 0.0
    power: int = 1
    margin: float = 0.0
    range_of_workers: tuple[int, int] = (1, MOST)
    """Fewest and most workers."""


LOADED = "moments above the aim with a worker above the mean"
SHARES = "moments with a share that is neither none nor all"
ENDINGS = "times that shedding ended"
CHANGES = "times that workers came and went"
BLOCKS = "blocks sent between workers"
QUERIES = "chains with other numbers of queries and of results"


class Moments(NamedTuple):
    """The moments of one run, and the rule that it followed."""

    moments: Sequence[Moment]
    rule: Rule


# -------------------------------------------------------------------------------- moments of a run


def _loaded_moments(run: Moments) -> int:
    aim = run.rule.limits.aim
    return sum(
        aim < each.mean < each.fullest and _is_promised(each, run.rule) for each in run.moments
    )


def _changes(run: Moments) -> int:
    """Return how often workers were added or how often they left, whichever is less."""
    grown = Counter(
        after.workers > before.workers
        for before, after in pairwise(run.moments)
        if after.workers != before.workers
    )
    return min(grown[True], grown[False])


def _is_promised(moment: Moment, rule: Rule) -> bool:
    """Return whether the mean is not above tau1, and a block need not be smaller than a tuple."""
    spare = 2 * rule.capacity * (rule.limits.tau1 - moment.mean)
    return spare >= 0 and spare >= moment.workers - 1


def _false_shedding(moments: Sequence[Moment], rule: Rule) -> Iterator[str]:
    tau1 = rule.limits.tau1
    for moment in moments:
        if _is_promised(moment, rule) and moment.fullest > tau1 + ROUNDING:
            yield (
                f"At {moment.at_us} us the mean utilisation is {moment.mean:.3f} and that of the"
                f" fullest worker {moment.fullest:.3f}, above {tau1:g}."
            )


def _other_shares(moments: Sequence[Moment], rule: Rule) -> Iterator[str]:
    did = False
    for moment in moments:
        asked = share_to_shed(
            did, moment.smoothed, rule.limits.tau1, rule.base, rule.power, rule.margin
        )
        if not isclose(moment.share, asked, abs_tol=ROUNDING):
            yield (
                f"At {moment.at_us} us the smoothed utilisation is {moment.smoothed:.3f};"
                f" {moment.share:.1%} are to be shed; the rule asks for {asked:.1%}."
            )
        did = moment.share > 0


def _other_counts(moments: Sequence[Moment]) -> Iterator[str]:
    """Yield wrong numbers of shed tuples: all or nothing is exact, other shares are random."""
    offered, shed, expected = 0, 0, 0.0
    for before, moment in pairwise(moments):
        if before.share in (0.0, 1.0):
            if moment.shed != before.share * moment.offered:
                yield (
                    f"Until {moment.at_us} us {moment.shed:,} of {moment.offered:,} arrivals are"
                    f" shed, where {before.share:.0%} were to be."
                )
        else:
            offered, shed = offered + moment.offered, shed + moment.shed
            expected += before.share * moment.offered
    bound = sqrt(offered * log(2 / ERROR) / 2)
    if abs(shed - expected) > bound:
        yield (
            f"{shed:,} of {offered:,} arrivals are shed, not {expected:,.0f}; a difference of more"
            f" than {bound:,.0f} happens by chance with a probability of {ERROR:g} at most."
        )


def _ends(before: Moment, moment: Moment) -> bool:
    return before.share > 0 and moment.share == 0


def _chatter(moments: Sequence[Moment], rule: Rule) -> Iterator[str]:
    # Without a base the share falls to 0 by itself, and nothing jumps at tau1.
    lowest = rule.limits.tau1 - (rule.margin if rule.base else 0.0)
    for before, moment in pairwise(moments):
        if _ends(before, moment) and moment.smoothed > lowest:
            yield (
                f"At {moment.at_us} us shedding ends at a smoothed utilisation of"
                f" {moment.smoothed:.3f}, above {lowest:g}."
            )


def _scaled_otherwise(moments: Sequence[Moment], rule: Rule) -> Iterator[str]:
    seen, expected = Watch(), 0
    for moment in moments:
        now = moment.workers
        if expected in (0, now):  # The rule pauses while a change is under way.
            seen, expected = watch(seen, moment.at_us, now, moment.mean, rule.limits)
            expected = within(expected, *rule.range_of_workers)
        if moment.wanted != expected:
            yield (
                f"At {moment.at_us} us the utilisation of {now} workers is {moment.mean:.3f};"
                f" {moment.wanted} are wanted; the rule asks for {expected}."
            )


RUN_CLAIMS: ClaimSet[Moments] = ClaimSet(
    (
        Claim(NO_FALSE_SHEDDING, LOADED, lambda run: _false_shedding(*run)),
        Claim(
            SHED_AS_ASKED,
            SHARES,
            lambda run: [*_other_shares(*run), *_other_counts(run.moments)],
        ),
        Claim(CALM, ENDINGS, lambda run: _chatter(*run)),
        Claim(SCALED, CHANGES, lambda run: _scaled_otherwise(*run)),
    ),
    {
        LOADED: _loaded_moments,
        SHARES: lambda run: sum(0 < each.share < 1 for each in run.moments),
        ENDINGS: lambda run: sum(_ends(*both) for both in pairwise(run.moments)),
        CHANGES: _changes,
    },
)


def judge(moments: Sequence[Moment], rule: Rule) -> Judgement:
    """Judge imbalance, shedding and scaling over the moments of one run."""
    return RUN_CLAIMS.judge(Moments(moments, rule))


# ------------------------------------------------------------------------------------------ bytes


class Traffic(NamedTuple):
    """The stream that a chain carries, and the sizes of its messages."""

    tuples_per_s: float
    """Tuples of both streams together."""
    workers: int
    tuple_bytes: float
    header_bytes: float
    """Bytes of a header; every block has two for a hop: its own and that of its acknowledgement."""

    def bytes_per_s(self, mean_block: float) -> float:
        """Return the bytes/s with blocks of this mean size."""
        hops_per_s = self.tuples_per_s * (self.workers - 1)
        return hops_per_s * self.tuple_bytes + hops_per_s * (2 * self.header_bytes / mean_block)

    def overhead_bound(self, mean_block: float) -> float:
        """Return the share by which headers exceed the least, at most."""
        return 2 * self.header_bytes / (mean_block * self.tuple_bytes)


class CountedBytes(NamedTuple):
    """The bytes that a run counted, and what the formula needs to predict them."""

    traffic: Traffic
    mean_block: float
    """Tuples a block, on average."""
    bytes_per_s: float


def _other_bytes(counted: CountedBytes) -> Iterator[str]:
    most = counted.traffic.bytes_per_s(counted.mean_block)
    if not (1 - SLACK) * most <= counted.bytes_per_s <= most * (1 + ROUNDING):
        yield (
            f"{counted.bytes_per_s:,.0f} bytes/s were counted; the formula says {most:,.0f} for"
            f" blocks of {counted.mean_block:.1f} tuples."
        )


def _blocks(counted: CountedBytes) -> int:
    traffic = counted.traffic
    return ceil(traffic.tuples_per_s * (traffic.workers - 1) / counted.mean_block)


BYTES_CLAIMS: ClaimSet[CountedBytes] = ClaimSet(
    (Claim(BYTES, BLOCKS, _other_bytes),), {BLOCKS: _blocks}
)


def judge_bytes(traffic: Traffic, mean_block: float, bytes_per_s: float) -> Judgement:
    """Judge counted bytes by the formula for blocks of their mean size.

    A run may stay below it, because tuples that are dropped do not go all the way.
    """
    return BYTES_CLAIMS.judge(CountedBytes(traffic, mean_block, bytes_per_s))


class Shared(NamedTuple):
    """The cost of a chain with several queries."""

    queries: int
    bytes: int
    """Bytes between workers, without results."""
    results: int


def _growing_bytes(chains: Sequence[Shared]) -> Iterator[str]:
    first = chains[0]
    for chain in chains:
        if abs(chain.bytes - first.bytes) > SLACK * first.bytes:
            yield (
                f"With {chain.queries} queries {chain.bytes:,} bytes go between workers, with"
                f" {first.queries} {first.bytes:,}."
            )


def _other_queries(chains: Sequence[Shared]) -> int:
    first = chains[0]
    return sum(
        chain.queries != first.queries and chain.results != first.results for chain in chains
    )


SHARING_CLAIMS: ClaimSet[Sequence[Shared]] = ClaimSet(
    (Claim(FLAT, QUERIES, _growing_bytes),), {QUERIES: _other_queries}
)


def judge_shared(chains: Sequence[Shared]) -> Judgement:
    """Judge chains with the same streams and other queries; timing may change a few blocks."""
    return SHARING_CLAIMS.judge(chains)
