"""Claims about load (``model/join/load_claims.py``) on timed runs, moment by moment."""

from dataclasses import replace

import pytest

from model.checking.claims import Outcome, Verdict
from model.join.load_claims import (
    CALM,
    NO_FALSE_SHEDDING,
    SCALED,
    SHED_AS_ASKED,
    Shared,
    judge,
    judge_bytes,
    judge_shared,
    over_all,
)
from model.vocabulary.join import END_US
from sim.join import ChainRun
from tests.properties.join.test_sim_load import CASE_STUDY, HEAVY, OVERLOAD, figure, run

SHEDS = {"shed": "linear", "base": 0.2, "margin": 0.1}

SETTLED_US = 6_500_000, 11_500_000
"""Period in which the window of the heavy run is full and its tuples are spread.

Before it, the first tuples to expire leave neighbours that differ by more than a block.
"""


def verdict_on(
    timed: ChainRun, claim: str, power: int | None = None, within_us: tuple[int, int] | None = None
) -> Verdict:
    rule = timed.rule._replace(power=power or timed.rule.power)
    first_us, last_us = within_us or (0, END_US)
    chosen = [moment for moment in timed.moments if first_us <= moment.at_us <= last_us]
    verdicts = over_all([judge(chosen, rule)])
    return next(verdict for verdict in verdicts if verdict.claim == claim)


def test_there_is_no_false_shedding() -> None:
    timed = run(**HEAVY, blocks="adaptive")
    verdict = verdict_on(timed, NO_FALSE_SHEDDING, within_us=SETTLED_US)
    assert verdict.outcome is Outcome.HOLDS, verdict.sentence


def test_fixed_blocks_shed_falsely() -> None:
    timed = run(**HEAVY, blocks="fixed")
    assert verdict_on(timed, NO_FALSE_SHEDDING, within_us=SETTLED_US).outcome is Outcome.BROKEN


@pytest.mark.parametrize(("rule", "power"), [("linear", 1), ("quadratic", 2)])
def test_the_requested_share_is_shed(rule: str, power: int) -> None:
    timed = run(**OVERLOAD, **{**SHEDS, "shed": rule})
    for claim in (SHED_AS_ASKED, CALM):
        verdict = verdict_on(timed, claim)
        assert verdict.outcome is Outcome.HOLDS, (claim, verdict.sentence)
    # The other rule requires another share.
    assert verdict_on(timed, SHED_AS_ASKED, power=3 - power).outcome is Outcome.BROKEN


def test_workers_come_and_go_as_asked() -> None:
    verdict = verdict_on(run(**CASE_STUDY), SCALED)
    assert verdict.outcome is Outcome.HOLDS, verdict.sentence


@pytest.mark.parametrize("block_size", [4, 16, 64])
def test_bytes_are_those_of_the_formula(block_size: int) -> None:
    timed = run(block_size=block_size)
    measured = figure(timed, "mean_block"), figure(timed, "bytes_per_s")
    assert figure(timed, "mean_block") > 0.9 * block_size
    (verdict,) = judge_bytes(timed.traffic, *measured).verdicts
    assert verdict.outcome is Outcome.HOLDS, verdict.sentence
    # Blocks and acknowledgements each carry a header, so that one header is too few.
    if block_size == 4:
        too_low = replace(timed.traffic, headers=1)
        assert judge_bytes(too_low, *measured).verdicts[0].outcome is Outcome.BROKEN


def test_queries_share_the_bandwidth_and_chains_do_not() -> None:
    together = {count: run(queries=count) for count in (1, 4)}
    shared = [Shared(count, sent(timed), found(timed)) for count, timed in together.items()]
    (verdict,) = judge_shared(shared).verdicts
    assert verdict.outcome is Outcome.HOLDS, verdict.sentence
    chains = [run(queries=1, eps=50 + n) for n in range(4)]
    apart = Shared(4, sum(map(sent, chains)), sum(map(found, chains)))
    assert apart.results == shared[1].results
    assert judge_shared([shared[0], apart]).verdicts[0].outcome is Outcome.BROKEN
    assert apart.bytes == pytest.approx(4 * shared[1].bytes, rel=0.01)


def sent(timed: ChainRun) -> int:
    span_us = timed.workload.arrivals[-1].arrival_us - timed.plan.epoch_us
    return round(figure(timed, "bytes_per_s") * span_us / 1e6)


def found(timed: ChainRun) -> int:
    return int(figure(timed, "results"))
