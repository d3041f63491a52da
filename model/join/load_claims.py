"""The promises about load, judged on the figures of a run: imbalance, shedding, scaling.

Source: docs/join.md, sections 7 and 8.

Rules of this file:

* A run is a list of moments, whoever measured them.
* What is drawn by lot is held to a bound with a stated probability of error.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import isclose, log, sqrt
from typing import NamedTuple

from model.checking.claims import Claim, ClaimSet, Judgement
from model.join.control import Watch, share_to_shed, watch, within
from model.vocabulary.join_load import MOST, Limits

NO_FALSE_SHEDDING = "no worker is above tau1 while the mean is not, and nothing is shed then"
SHED_AS_ASKED = "the share shed is that of the smoothed utilisation"
CALM = "shedding ends only a margin below where it begins"
SCALED = "workers come and go as the utilisation asks"

ERROR = 1e-9
"""Probability that a correctly drawn share is judged wrong (Hoeffding's inequality)."""
ROUNDING = 1e-9


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
