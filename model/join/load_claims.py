"""The promises about load, judged on the figures of a run: imbalance, shedding, scaling, bytes.

Source: docs/join.md, sections 7 and 8.

Rules of this file:

* A run is a list of moments, or the bytes that were counted. Who measured them is not asked.
* Each promise has a guard, the case without which it could hold without a test. One run need not
  contain it, all of them together must (``over_all``).
* What is drawn by lot is held to a bound with a stated probability of error.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import ceil, isclose, log, sqrt
from typing import NamedTuple

from model.checking import claims
from model.checking.claims import Judgement, Verdict
from model.join.claims import verdict_of
from model.join.load import Limits, Traffic, Watch, share_to_shed, watch

NO_FALSE_SHEDDING = "no worker is above tau1 while the mean is not, and nothing is shed then"
SHED_AS_ASKED = "the share shed is that of the smoothed utilisation"
CALM = "shedding ends only a margin below where it begins"
SCALED = "workers come and go as the utilisation asks"
BYTES = "bytes between workers are at most those of the formula, and at least 95% of them"
FLAT = "bytes between workers do not grow with the number of queries"

ERROR = 1e-9
"""Probability that a share drawn as asked is called wrong (Hoeffding's inequality)."""
ROUNDING = 1e-9
SLACK = 0.05
"""By so much measured bytes may be off, as a share."""


class Moment(NamedTuple):
    """A chain at one moment of a run."""

    at_us: int
    workers: int
    mean: float
    """Utilisation of the workers: tuples held, divided by ``capacity``."""
    fullest: float
    """Utilisation of the fullest worker."""
    smoothed: float
    """Utilisation that shedding goes by."""
    share: float
    """Of the arrivals from now on, to be shed."""
    offered: int
    """Arrivals since the last moment."""
    shed: int
    """Of these, shed."""
    wanted: int
    """Workers that were decided on; it may take until they are there."""


class Rule(NamedTuple):
    """What a run was told."""

    limits: Limits
    capacity: int
    """Tuples that make a utilisation of 1."""
    base: float = 0.0
    power: int = 1
    margin: float = 0.0


LOADED = "moments above the aim with a worker above the mean"
SHARES = "moments with a share that is neither none nor all"
ENDINGS = "times that shedding ended"
CHANGES = "times that workers came and went"
BLOCKS = "blocks sent between workers"
QUERIES = "chains with other numbers of queries and of results"
GUARDS: Mapping[str, str] = {
    NO_FALSE_SHEDDING: LOADED,
    SHED_AS_ASKED: SHARES,
    CALM: ENDINGS,
    SCALED: CHANGES,
    BYTES: BLOCKS,
    FLAT: QUERIES,
}


def over_all(cases: Iterable[Judgement]) -> tuple[Verdict, ...]:
    """Judgements of many runs, summed up by claim (:func:`model.checking.claims.over_all`)."""
    return claims.over_all(cases, GUARDS)


# -------------------------------------------------------------------------------- moments of a run


def judge(moments: Sequence[Moment], rule: Rule) -> Judgement:
    """Imbalance, shedding and scaling over the moments of one run."""
    changes = Counter(
        after.workers > before.workers
        for before, after in pairwise(moments)
        if after.workers != before.workers
    )
    guards = {
        LOADED: sum(
            rule.limits.aim < each.mean < each.fullest and _is_promised(each, rule)
            for each in moments
        ),
        SHARES: sum(0 < each.share < 1 for each in moments),
        ENDINGS: sum(_ends(*both) for both in pairwise(moments)),
        CHANGES: min(changes[True], changes[False]),
    }
    verdicts = (
        verdict_of(NO_FALSE_SHEDDING, list(_false_shedding(moments, rule))),
        verdict_of(SHED_AS_ASKED, [*_other_shares(moments, rule), *_other_counts(moments)]),
        verdict_of(CALM, list(_chatter(moments, rule))),
        verdict_of(SCALED, list(_scaled_otherwise(moments, rule))),
    )
    return Judgement(verdicts, guards)


def _is_promised(moment: Moment, rule: Rule) -> bool:
    """Whether the mean is not above tau1, and a block need not be smaller than a tuple."""
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
                f" {moment.share:.1%} are to be shed, asked for are {asked:.1%}."
            )
        did = moment.share > 0


def _other_counts(moments: Sequence[Moment]) -> Iterator[str]:
    """All or nothing is exact; in between, so many tuples as chance allows."""
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
            f"{shed:,} of {offered:,} arrivals are shed, expected are {expected:,.0f}; more than"
            f" {bound:,.0f} off happens by chance with a probability of {ERROR:g} at most."
        )


def _ends(before: Moment, moment: Moment) -> bool:
    return before.share > 0 and moment.share == 0


def _chatter(moments: Sequence[Moment], rule: Rule) -> Iterator[str]:
    # Without a base the share sinks to nothing by itself, and nothing jumps at tau1.
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
        if expected in (0, now):  # Nobody looks while a change is under way.
            seen, expected = watch(seen, moment.at_us, now, moment.mean, rule.limits)
        if moment.wanted != expected:
            yield (
                f"At {moment.at_us} us the utilisation of {now} workers is {moment.mean:.3f};"
                f" {moment.wanted} are wanted, asked for are {expected}."
            )


# ------------------------------------------------------------------------------------------ bytes


def judge_bytes(traffic: Traffic, mean_block: float, bytes_per_s: float) -> Judgement:
    """Bytes that were counted, against the formula for blocks of their mean size.

    A run may stay below it, for tuples that are dropped do not go all the way.
    """
    most = traffic.bytes_per_s(mean_block)
    against = []
    if not (1 - SLACK) * most <= bytes_per_s <= most * (1 + ROUNDING):
        against.append(
            f"{bytes_per_s:,.0f} bytes/s were counted; the formula says {most:,.0f} for blocks of"
            f" {mean_block:.1f} tuples."
        )
    blocks = traffic.tuples_per_s * (traffic.workers - 1) / mean_block
    return Judgement((verdict_of(BYTES, against),), {BLOCKS: ceil(blocks)})


class Shared(NamedTuple):
    """What a chain with several queries cost."""

    queries: int
    bytes: int
    """Between workers, results left out."""
    results: int


def judge_shared(chains: Sequence[Shared]) -> Judgement:
    """Chains with the same streams and other queries; timing may change a few blocks."""
    against = [
        f"With {chain.queries} queries {chain.bytes:,} bytes go between workers, with"
        f" {chains[0].queries} {chains[0].bytes:,}."
        for chain in chains
        if abs(chain.bytes - chains[0].bytes) > SLACK * chains[0].bytes
    ]
    others = [
        chain.queries != chains[0].queries and chain.results != chains[0].results
        for chain in chains
    ]
    return Judgement((verdict_of(FLAT, against),), {QUERIES: sum(others)})
