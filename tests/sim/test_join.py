"""The timed chain: what work costs, when epochs end, and that a seed says everything."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from model.claims import Outcome
from model.join import load
from model.join.claims import judge
from model.vocabulary import JoinConfig
from model.vocabulary.join import Admit, And, Equi, Forward, Match, Receive
from sim.join import Run, from_settings, make_system, simulate
from sim.join.crew import Control, Costs, Crew
from sim.kernel.distributions import Constant
from sim.kernel.faults import Fail, Lose
from sim.kernel.link import Tier
from sim.kernel.plan import Plan
from sim.kernel.source import Source

SCRIPT = "from tests.sim.test_join import small; print(small().digest)"
EVERYTHING = JoinConfig(1_000_000, (("all", And()),), workers=2, block_size=1)
FREE = Costs(0.0, 0.0, 0.0, 0.0)
ONE_EACH = Plan((Source(1), Source(1, start_us=1_000)))
"""One tuple of R, and one of S a millisecond later."""


def small(seed: int = 1, **settings: str) -> Run:
    given = {"seconds": "6", "rate_r_hz": "30", "rate_s_hz": "30", "workers": "3"}
    return from_settings({**given, "record": "yes", "shed": "linear", **settings}, seed)


def one_pair(**crew: object) -> Run:
    """A chain that does nothing until the flush, where r and s meet over one link."""
    hardware = {"costs": FREE, "tiers": (Tier(100.0, 1e9),), "intake_us": 1, "commit_us": 0}
    return simulate(ONE_EACH, EVERYTHING, 0, crew=Crew(**{**hardware, **crew}))  # type: ignore[arg-type]


def test_a_seed_says_everything() -> None:
    assert small().digest == small().digest
    assert small().digest != small(2).digest
    root = Path(__file__).parents[2]
    for hash_seed in ("0", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(root)}
        command = [sys.executable, "-c", SCRIPT]
        run = subprocess.run(
            command,
            capture_output=True,
            check=True,
            cwd=root,
            env=environment,
            text=True,
            timeout=120,
        )
        assert run.stdout.strip() == small().digest


def test_a_run_is_a_behaviour_of_the_model_with_every_step() -> None:
    timed = small()
    for verdict in judge(timed.workload, timed.trace).verdicts:
        assert verdict.outcome is Outcome.HOLDS, (verdict.claim, verdict.sentence, verdict.witness)
    for word in (Admit, Forward, Receive, Match):
        assert timed.trace.of(word)


def test_a_message_takes_the_time_of_its_link() -> None:
    near, far = one_pair(), one_pair(tiers=(Tier(5_000.0, 1e9),))
    # R leaves at 0, and S comes to the right worker after 1 ms.
    assert near.summary["mean_latency_us"] == pytest.approx(0.0)
    assert far.summary["mean_latency_us"] == pytest.approx(4_000.0)


def test_a_source_sees_arrivals_at_multiples_of_its_interval_only() -> None:
    timed = small(shed="no", intake_us="500000")
    admissions = timed.trace.of(Admit)
    assert max(each.tuples for each in admissions) > 10
    # No source has 256 arrivals in half a second: it takes all of them at once.
    moments = {(each.stream, -(-each.arrival_us // 500_000)) for each in timed.workload.arrivals}
    assert len(admissions) == len(moments)
    # Nobody waits longer for it.
    often = small(shed="no", intake_us="1000")
    later_us = [float(each.summary["mean_latency_us"]) for each in (often, timed)]
    assert later_us[0] < later_us[1] <= later_us[0] + 500_000


def test_a_source_hands_over_all_that_it_has_seen() -> None:
    plan = Plan((Source(100, Constant(0)), Source(1)))
    timed = simulate(plan, EVERYTHING, 0, crew=Crew(intake_tuples=8, intake_us=60_000_000))
    # 13 handfuls, one after the other, and not one a minute.
    assert timed.summary["results"] == 100
    assert float(timed.summary["duration_us"]) < 1_000_000


def test_work_takes_the_time_that_it_costs_on_that_worker() -> None:
    costs = Costs(1_000.0, 100.0, 10.0, 1.0)
    # S is admitted and sent on, two messages and two tuples; R has come in the meantime, and is
    # received, compared, found and acknowledged.
    work_us = (2 * 1_000 + 2 * 100) + (2 * 1_000 + 100 + 10 + 1)
    for speed in (1.0, 0.5):
        timed = one_pair(costs=costs, speeds=(speed,))
        assert timed.summary["mean_latency_us"] == pytest.approx(work_us / speed)


def test_what_an_index_selects_is_what_is_compared() -> None:
    plan = Plan(
        (
            Source(50, Constant(1_000), keys=("a", "b")),
            Source(50, Constant(1_000), keys=("a", "b")),
        )
    )
    config = JoinConfig(10_000_000, (("equal", Equi("key")), ("all", And())), workers=1)
    timed = simulate(plan, config, 0)
    counts = {
        (stream, key): sum(e.stream == stream and e.key == key for e in timed.workload.arrivals)
        for stream in "RS"
        for key in "ab"
    }
    equal = sum(counts["R", key] * counts["S", key] for key in "ab")
    assert timed.summary["comparisons"] == equal + 2_500
    assert timed.summary["results"] == equal + 2_500
    assert timed.summary["efficiency"] == 1.0


def test_bytes_are_those_of_the_blocks_and_acknowledgements() -> None:
    timed = one_pair()
    # Exactly one of the two tuples crosses: the other one is where it comes to.
    crossed = int(timed.summary["blocks"])
    total = (100 + 2 * 50) * crossed
    per_s = total / float(timed.summary["duration_us"]) * 1e6
    assert timed.summary["bytes_per_s"] == pytest.approx(per_s)


def test_a_failure_goes_back_to_the_last_quiet_epoch() -> None:
    timed = small(fail_at_us="4000000", fail_for_us="500000", trigger_interval_us="2500000")
    assert timed.summary["failures"] == 1
    # The epoch began at 2.5 s; about 30 tuples a second of either stream came since.
    assert 40 < int(timed.summary["arrivals_taken_again"]) < 140


def test_a_failure_between_nothing_costs_nothing() -> None:
    plan = Plan((Source(3), Source(3)))
    late = simulate(plan, EVERYTHING, 0, faults=(Fail("worker-1", 10**9, 1),))
    assert late.summary["failures"] == 0


def test_no_arrivals_are_a_run_too() -> None:
    timed = simulate(Plan((Source(0), Source(0))), EVERYTHING, 0)
    assert timed.summary["results"] == 0
    assert not timed.workload.arrivals


def test_a_workload_is_replayed_when_its_tuples_came() -> None:
    timed = small(shed="no")
    found = sorted(match[:3] for match in make_system()(timed.workload).of(Match))
    assert found == sorted(match[:3] for match in timed.trace.of(Match))


def test_a_chain_of_several_sizes_holds_what_the_rules_say() -> None:
    timed = small(
        scale="yes",
        capacity="40",
        out_after_us="1000000",
        in_after_us="2000000",
        trigger_interval_us="1000000",
        shed="no",
    )
    workers = set(timed.series["workers"].astype(int).tolist())
    assert len(workers) > 1
    assert str(timed.summary["resized"]).startswith("3 to ")
    mean, m = timed.series["utilisation"], timed.series["workers"]
    assert (mean * m * 40).round().tolist() == timed.series["held"].tolist()
    assert load.workers_for(3, 1.0, Control().limits) > 3


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"worker": "3"}, "there is no setting 'worker'; did you mean 'workers'?"),
        ({"workers": "0"}, "workers is 0; it must be greater than 0"),
        ({"scenario": "burst"}, "scenario is 'burst'; it must be one of"),
        ({"tiers": "node,moon"}, "tiers is 'moon'; it must be one of"),
        ({"speeds": "1,x"}, "speeds is 'x'; it must be a finite number"),
        ({"speeds": "1,0"}, "speeds is 0.0; it must be finite and above 0"),
        ({"seconds": "-1"}, "seconds is -1.0; it must be above 0"),
        ({"predicate": "ban"}, "predicate is 'ban'; it must be one of band"),
        ({"shed": "some"}, "shed is 'some'; it must be one of no, linear, quadratic"),
        ({"blocks": "big"}, "blocks is 'big'; it must be one of fixed, adaptive"),
        ({"scale": "maybe"}, "scale is 'maybe'; it must be one of yes, no"),
        ({"pace_us": "soon"}, "pace_us is 'soon'; it must be an integer, or never"),
        ({"tau0": "0.9"}, "tau0, tau1, tau2 are 0.9"),
        ({"queries": "0"}, "queries is 0; it must be above 0"),
        ({"fail_at_us": "-5"}, "fail.at_us is -5; it must be at least 0"),
    ],
)
def test_a_bad_setting_is_named(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(ValueError, match=r"must be|no setting") as error:
        from_settings(settings, 0)
    assert sentence in str(error.value)


def test_a_connection_of_a_chain_loses_nothing() -> None:
    with pytest.raises(ValueError, match="connections of a chain lose and double nothing"):
        simulate(ONE_EACH, EVERYTHING, 0, faults=(Lose("right-0", 0),))
    with pytest.raises(ValueError, match="there is no worker 'worker-7' to fault"):
        simulate(ONE_EACH, EVERYTHING, 0, faults=(Fail("worker-7", 0, 1),))
