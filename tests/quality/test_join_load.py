"""Claims about load catch what is planted: a fixed block size, other shares, chatter, other counts.

A run here is only numbers: a load rises and falls, and workers come and go by the rules, or by
rules that are slightly wrong.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from model.checking.claims import Outcome
from model.join.load import (
    Traffic,
    Watch,
    block_size,
    share_to_shed,
    shed_share,
    watch,
    workers_for,
)
from model.join.load_claims import (
    BLOCKS,
    BYTES,
    CALM,
    CHANGES,
    FLAT,
    GUARDS,
    NO_FALSE_SHEDDING,
    QUERIES,
    SCALED,
    SHED_AS_ASKED,
    Moment,
    Rule,
    Shared,
    judge,
    judge_bytes,
    judge_shared,
    over_all,
)
from model.vocabulary.join_load import Limits

LIMITS = Limits(0.25, 0.75, 0.75)
RULE = Rule(LIMITS, capacity=400, base=0.1, margin=0.05)
SECOND = 1_000_000
LARGEST = 50
"""Largest block size, zeta*."""
ARRIVALS = 1_000
CHANGE_S = 3
"""Time until workers have come or gone, in seconds."""

Watching = Callable[[Watch, int, int, float, Limits], tuple[Watch, int]]
Sharing = Callable[[bool, float], float]
Sizing = Callable[[float, int], int]


def right_share(did: bool, tau: float) -> float:
    return share_to_shed(did, tau, LIMITS.tau1, RULE.base, RULE.power, RULE.margin)


def right_size(mean: float, workers: int) -> int:
    return block_size(mean, RULE.capacity, workers, LIMITS.tau1, LARGEST)


@dataclass(frozen=True, slots=True)
class Way:
    """The decisions of a simulated run, which planted bugs replace."""

    watch: Watching = watch
    share: Sharing = right_share
    size: Sizing = right_size
    obeys: Callable[[float], float] = lambda share: share
    """Share that is shed, where one is to be."""


def load_at(second: int) -> float:
    """Return the workers that the load would keep busy: about tau1, above it, then fewer."""
    if second < 20:
        return 4 * (0.73 if second % 2 else 0.77)
    if second < 30:
        return 4 * 0.68
    return 4 * 0.77 if second < 200 else 1.5


def run(way: Way, seconds: int = 900) -> list[Moment]:
    """Run the case study, a moment a second; neighbours differ by a block as they may."""
    workers, wanted, asked, seen, share, moments = 4, 4, 0, Watch(), 0.0, []
    for second in range(seconds):
        mean = min(1.0, load_at(second) / workers)
        zeta = way.size(mean, workers)
        step = zeta / RULE.capacity
        fullest = mean + step * (workers - 1) / 2
        shed = round(way.obeys(share) * ARRIVALS)
        share = way.share(share > 0, mean)
        at_us = second * SECOND
        if wanted == workers:
            asked = second
            seen, wanted = way.watch(seen, at_us, workers, mean, LIMITS)
        moments.append(Moment(at_us, workers, mean, fullest, mean, share, ARRIVALS, shed, wanted))
        if second >= asked + CHANGE_S:
            workers = wanted
    return moments


def outcomes(way: Way) -> dict[str, Outcome]:
    return {each.claim: each.outcome for each in over_all([judge(run(way), RULE)])}


def test_the_rules_keep_every_promise_and_every_guard_occurs() -> None:
    for verdict in over_all([judge(run(Way()), RULE)]):
        assert verdict.outcome is Outcome.HOLDS, (verdict.claim, verdict.sentence)


def test_the_case_study_goes_from_4_to_8_and_back_to_4() -> None:
    counts = [moment.workers for moment in run(Way())]
    assert [counts[0], *(b for a, b in pairwise(counts) if a != b)] == [4, 8, 4]


# --------------------------------------------------------------------------------- planted bugs


def turned_round(
    seen: Watch, now_us: int, workers: int, tau: float, limits: Limits
) -> tuple[Watch, int]:
    """Let workers go while the utilisation is *above* tau0: the source, read literally."""
    return watch(seen, now_us, workers, tau, limits, idle=lambda tau, limits: tau > limits.tau0)


def at_once(
    _seen: Watch, _now_us: int, workers: int, tau: float, limits: Limits
) -> tuple[Watch, int]:
    outside = tau > limits.tau2 or tau < limits.tau0
    return Watch(), workers_for(workers, tau, limits) if outside else workers


def one_more(
    seen: Watch, now_us: int, workers: int, tau: float, limits: Limits
) -> tuple[Watch, int]:
    seen, wanted = watch(seen, now_us, workers, tau, limits)
    return seen, workers + (wanted > workers) - (wanted < workers)


@pytest.mark.parametrize(
    ("way", "claim"),
    [
        pytest.param(Way(size=lambda _tau, _m: LARGEST), NO_FALSE_SHEDDING, id="zeta-fixed-at-50"),
        pytest.param(
            Way(size=lambda tau, m: 2 * right_size(tau, m)), NO_FALSE_SHEDDING, id="zeta-twice"
        ),
        pytest.param(
            Way(share=lambda _did, tau: shed_share(tau, LIMITS.tau1, RULE.base, 2)),
            SHED_AS_ASKED,
            id="quadratic-for-linear",
        ),
        pytest.param(
            Way(share=lambda did, tau: right_share(did, tau + 0.05)),
            SHED_AS_ASKED,
            id="sheds-below-tau1",
        ),
        pytest.param(Way(obeys=lambda share: share / 2), SHED_AS_ASKED, id="half-of-the-share"),
        pytest.param(Way(obeys=lambda share: share + 0.01), SHED_AS_ASKED, id="one-hundredth-more"),
        pytest.param(
            Way(share=lambda did, tau: share_to_shed(did, tau, LIMITS.tau1, RULE.base, 1, 0.0)),
            CALM,
            id="without-a-margin",
        ),
        pytest.param(Way(watch=turned_round), SCALED, id="tau-above-tau0"),
        pytest.param(Way(watch=at_once), SCALED, id="without-waiting"),
        pytest.param(Way(watch=one_more), SCALED, id="one-worker-at-a-time"),
    ],
)
def test_a_mistake_is_found(way: Way, claim: str) -> None:
    assert outcomes(way)[claim] is Outcome.BROKEN


@pytest.mark.parametrize(
    ("second", "fields", "claim", "part"),
    [
        (20, {"fullest": 0.76}, NO_FALSE_SHEDDING, "of the fullest worker 0.760, above 0.75."),
        (1, {"share": 0.2}, SHED_AS_ASKED, "20.0% are to be shed; the rule asks for 10.0%."),
        (21, {"shed": 1}, SHED_AS_ASKED, "1 of 1,000 arrivals are shed, where 0% were to be."),
        (20, {"smoothed": 0.73}, CALM, "ends at a smoothed utilisation of 0.730, above 0.7."),
        (10, {"wanted": 5}, SCALED, "5 are wanted; the rule asks for 4."),
    ],
    ids=["a worker above tau1", "another share", "a tuple shed", "an early end", "a worker wanted"],
)
def test_a_changed_moment_is_found(
    second: int, fields: dict[str, Any], claim: str, part: str
) -> None:
    moments = run(Way())
    before, after = (
        next(each for each in judge(given, RULE).verdicts if each.claim == claim)
        for given in (
            moments,
            [*moments[:second], moments[second]._replace(**fields), *moments[second + 1 :]],
        )
    )
    assert (before.outcome, after.outcome) == (Outcome.HOLDS, Outcome.BROKEN)
    assert part in after.sentence


def test_where_nothing_happens_nothing_is_proved() -> None:
    judgement = judge(run(Way())[-10:], RULE)
    assert {v.outcome for v in over_all([judgement])} == {Outcome.UNDETERMINED}
    assert set(judgement.guards) < set(GUARDS.values())
    assert judge(run(Way(), 100), RULE).guards[CHANGES] == 0


# ---------------------------------------------------------------------------------------- bytes

TRAFFIC = Traffic(10_000, 4, 30, 40)


@pytest.mark.parametrize(
    ("share", "outcome"),
    [(1.0, Outcome.HOLDS), (0.96, Outcome.HOLDS), (0.94, Outcome.BROKEN), (1.01, Outcome.BROKEN)],
)
def test_bytes_are_those_of_the_formula(share: float, outcome: Outcome) -> None:
    judgement = judge_bytes(TRAFFIC, 20, share * TRAFFIC.bytes_per_s(20))
    assert judgement.verdicts[0].outcome is outcome
    assert judgement.guards[BLOCKS]


def test_headers_of_single_tuples_are_not_those_of_blocks() -> None:
    counted = TRAFFIC.bytes_per_s(1)
    assert judge_bytes(TRAFFIC, 20, counted).verdicts[0].outcome is Outcome.BROKEN
    lonely = Traffic(10_000, 1, 30, 40)
    (verdict,) = over_all([judge_bytes(lonely, 20, 0.0)])
    assert (verdict.claim, verdict.outcome) == (BYTES, Outcome.UNDETERMINED)


def test_queries_share_a_chain() -> None:
    of = partial(Shared, results=10)
    one, four = Shared(1, 1_000, 10), Shared(4, 1_010, 40)
    (verdict,) = over_all([judge_shared([one, four])])
    assert (verdict.claim, verdict.outcome) == (FLAT, Outcome.HOLDS)
    # Four chains, one for each query, cost four times as much.
    (verdict,) = over_all([judge_shared([one, Shared(4, 4_000, 40)])])
    assert verdict.outcome is Outcome.BROKEN
    assert verdict.sentence == ("With 4 queries 4,000 bytes go between workers, with 1 1,000.")
    assert judge_shared([of(1, 1_000), of(4, 1_000)]).guards[QUERIES] == 0
