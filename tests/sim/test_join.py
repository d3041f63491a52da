"""The timed chain: determinism, costs, epochs, faults and full queues."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from model.checking.claims import Outcome
from model.join import load
from model.join.claims import judge
from model.vocabulary import Event, JoinConfig
from model.vocabulary.join import (
    REASON_SHED,
    Ack,
    Admit,
    And,
    Decision,
    Equi,
    Forward,
    Match,
    Quiet,
    Receive,
    Rejected,
)
from model.vocabulary.settings import read_settings
from sim.join import ChainRun, from_settings, simulate
from sim.join.room import TIMED_ROOM
from sim.join.tuning import ChainTuning, Control, Costs
from sim.kernel.distributions import Constant, Distribution, Exponential
from sim.kernel.faults import Congest
from sim.kernel.link import Place, Tier, Tiers
from sim.kernel.plain import from_plain, to_plain
from sim.kernel.plan import Cluster, Plan, Worker
from sim.kernel.source import Source
from sim.kernel.trigger import At, Every
from tests.sim.chains import LINK, STOPPED, assert_is_the_model_s, faulty, found, small

SCRIPT = "from tests.sim.chains import small; print(small().digest)"
EVERYTHING = JoinConfig(1_000_000, (("all", And()),), workers=2, block_size=1)
FREE = Costs(0.0, 0.0, 0.0)
ONE_EACH = (Source(1), Source(1, start_us=1_000))
"""One tuple of R, and one of S a millisecond later."""
NEAR = Tier(100.0, 1e9)


def one_pair(
    tier: Tier = NEAR, tuple_us: float = 0.0, costs: Costs = FREE, speed: float = 1.0
) -> ChainRun:
    """Run a chain that does nothing until the flush, when r and s meet over one link."""
    workers = tuple(Worker(speed, place=Place(process=n)) for n in (0, 1))
    plan = Plan(
        ONE_EACH,
        cluster=Cluster(workers, Constant(tuple_us)),
        tuning=ChainTuning(costs, intake_us=1, commit_us=0),
        tiers=Tiers(process=Tier(0.0, 1e9), node=tier),
        log_place=Place(),
        trigger=At(()),
    )
    return simulate(plan, EVERYTHING, 0)


# ------------------------------------------------------------------------------------ determinism


def test_the_seed_alone_determines_a_run() -> None:
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
    for word in (Admit, Forward, Receive, Ack, Match):
        assert timed.trace.of(word)


# -------------------------------------------------------------------------------------- the times


def test_a_message_takes_the_time_of_its_link() -> None:
    near, far = one_pair(), one_pair(Tier(5_000.0, 1e9))
    # R waits for S, which comes 1 ms later and has an equally long way from the log.
    assert near.summary["mean_latency_us"] == pytest.approx(100.0)
    assert far.summary["mean_latency_us"] == pytest.approx(5_000.0)


def test_a_source_sees_arrivals_at_multiples_of_its_interval_only() -> None:
    timed = small(shed="no", intake_us="500000")
    admissions = timed.trace.of(Admit)
    assert max(each.tuples for each in admissions) > 10
    # No source has 256 arrivals in half a second: it takes all of them at once, but for those that
    # come in the same half second and in the next epoch.
    moments = {(each.stream, -(-each.arrival_us // 500_000)) for each in timed.workload.arrivals}
    assert len(admissions) == len(moments)
    # No tuple waits longer than the interval.
    often = small(shed="no", intake_us="1000")
    later_us = [float(each.summary["mean_latency_us"]) for each in (often, timed)]
    assert later_us[0] < later_us[1] <= later_us[0] + 500_000


def test_a_source_hands_over_all_that_it_has_seen() -> None:
    tuning = ChainTuning(intake_tuples=8, intake_us=60_000_000)
    plan = Plan((Source(100, Constant(0)), Source(1)), tuning=tuning, trigger=At(()))
    timed = simulate(plan, EVERYTHING, 0)
    # 13 portions, one after the other, and not one a minute.
    assert timed.summary["results"] == 100
    assert float(timed.summary["duration_us"]) < 1_000_000


def test_work_takes_the_time_that_it_costs_on_that_worker() -> None:
    costs = Costs(1_000.0, 10.0, 1.0)
    # S is admitted and sent on, two messages and two tuples; R has come in the meantime, and is
    # received, compared, found and acknowledged.
    work_us = (2 * 1_000 + 2 * 100) + (2 * 1_000 + 100 + 10 + 1)
    for speed in (1.0, 0.5):
        timed = one_pair(Tier(0.0, 1e9), 100.0, costs, speed)
        assert timed.summary["mean_latency_us"] == pytest.approx(work_us / speed)


def test_work_of_a_tuple_may_be_random() -> None:
    def busy_us(service: Distribution) -> float:
        cluster = Cluster((Worker(),), service)
        plan = Plan((Source(500), Source(500)), cluster=cluster, tuning=ChainTuning(FREE))
        timed = simulate(plan, replace(EVERYTHING, window_us=0), 0)
        return float(timed.summary["busy_0"]) * float(timed.summary["duration_us"])

    # A single worker admits and drops every tuple.
    assert busy_us(Constant(100.0)) == pytest.approx(2 * 1_000 * 100.0)
    assert busy_us(Exponential(100.0)) == pytest.approx(2 * 1_000 * 100.0, rel=0.1)


def test_only_tuples_that_an_index_selects_are_compared() -> None:
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
    # The last tuple comes after a millisecond.
    assert timed.summary["bytes_per_s"] == pytest.approx(total / 1_000 * 1e6)


# ----------------------------------------------------------------------------- epochs and streams


def test_a_run_without_arrivals_has_no_results() -> None:
    timed = simulate(Plan((Source(0), Source(0))), EVERYTHING, 0)
    assert timed.summary["results"] == 0
    assert not timed.workload.arrivals


def test_a_stream_without_a_flush_owes_what_has_not_met() -> None:
    plan = Plan((Source(20), Source(20)), flush=False)
    owing, flushed = (simulate(each, EVERYTHING, 0) for each in (plan, replace(plan, flush=True)))
    assert not owing.workload.flush
    assert set(found(owing.trace)) < set(found(flushed.trace))
    for verdict in judge(owing.workload, owing.trace).verdicts:
        assert verdict.outcome is not Outcome.BROKEN, (verdict.claim, verdict.witness)


def test_two_streams_wait_for_each_other_at_most_until_the_epoch_ends() -> None:
    pauses: list[int] = []

    def duration_us(pace_us: int | None) -> float:
        tuning = ChainTuning(pace_us=pace_us, intake_us=1_000)
        # S has a gap, and ends early.
        sources = (Source(30, Constant(100_000)), Source(2, Constant(900_000)))
        plan = Plan(sources, tuning=tuning, trigger=Every(500_000))
        timed = simulate(plan, EVERYTHING, 0)
        pauses.append(int(timed.summary["intake_pauses"]))
        assert_is_the_model_s(timed)
        return float(timed.summary["duration_us"])

    assert duration_us(10_000) == pytest.approx(duration_us(None), abs=100_000)
    # R runs ahead of S once in each of its six epochs.
    assert pauses == [6, 0]


def test_a_workload_is_replayed_when_its_tuples_came() -> None:
    timed = small(shed="no")
    assert found(TIMED_ROOM.make_system()(timed.workload)) == found(timed.trace)
    again = TIMED_ROOM.replay(timed.workload)
    assert_is_the_model_s(again)
    assert again.workload.cuts == timed.workload.cuts
    assert again.workload.arrivals == timed.workload.arrivals


def scaling(**settings: str) -> ChainRun:
    return small(
        scale="yes",
        capacity="40",
        out_after_us="1000000",
        in_after_us="2000000",
        trigger_interval_us="1000000",
        shed="no",
        **settings,  # type: ignore[arg-type]  # none of them is the seed
    )


def test_a_chain_of_several_sizes_holds_what_the_rules_say() -> None:
    timed = scaling()
    workers = set(timed.series["workers"].astype(int).tolist())
    assert len(workers) > 1
    assert str(timed.summary["resized"]).startswith("3 to ")
    mean, m = timed.series["utilisation"], timed.series["workers"]
    assert (mean * m * 40).round().tolist() == timed.series["held"].tolist()
    assert load.workers_for(3, 1.0, Control().limits) > 3


def decisions_of(timed: ChainRun) -> tuple[Decision, ...]:
    return JoinConfig.from_json(timed.workload.config).decisions


def test_a_chain_that_scales_leaves_its_decisions_in_the_workload() -> None:
    timed = scaling()
    decisions = decisions_of(timed)
    resized = ", ".join(
        f"{before} to {after.workers}"
        for before, after in zip(
            [3, *(each.workers for each in decisions)], decisions, strict=False
        )
    )
    assert resized == timed.summary["resized"] != "no"
    assert_is_the_model_s(timed)
    again = TIMED_ROOM.replay(timed.workload)
    assert_is_the_model_s(again)
    assert again.summary["resized"] == resized
    assert decisions_of(again) == decisions
    assert found(again.trace) == found(timed.trace)
    assert any(step.worker >= 3 for step in again.trace.of(Quiet))


def test_workers_stay_within_their_range() -> None:
    within = {each.workers for each in decisions_of(scaling(least="2", most="4"))}
    assert within <= {2, 3, 4}
    assert within != {each.workers for each in decisions_of(scaling())}


def test_a_chain_takes_the_decisions_of_its_workload() -> None:
    decisions = (Decision(0, 2, 3, 0.5), Decision(1, 5, 1, 0.0), Decision(3, 1, 9, 0.25))
    timed = small(shed="no", trigger_interval_us="1500000")
    config = replace(JoinConfig.from_json(timed.workload.config), decisions=decisions)
    again = TIMED_ROOM.replay(timed.workload.with_(config=config.to_json()))
    assert_is_the_model_s(again)
    quiet = {(step.epoch, step.worker) for step in again.trace.of(Quiet)}
    assert [sum(epoch == each for epoch, _ in quiet) for each in range(5)] == [2, 5, 5, 1, 1]
    shed = [step.seq for step in again.trace.of(Rejected) if step.reason == REASON_SHED]
    first, second, third, _ = again.workload.cuts
    assert 0.35 * first < sum(seq < first for seq in shed) < 0.65 * first
    assert not any(first <= seq < third for seq in shed)
    assert second < third < max(shed)
    assert again.workload.arrivals == timed.workload.arrivals


@pytest.mark.parametrize(
    ("control", "sentence"),
    [
        (Control(scale=True), "scale is 'yes'; it must be no for a chain whose decisions"),
        (Control(shed="linear"), "shed is 'linear'; it must be no for a chain whose decisions"),
    ],
)
def test_a_chain_follows_its_load_or_its_decisions(control: Control, sentence: str) -> None:
    config = replace(EVERYTHING, decisions=(Decision(0, 2, 1, 0.0),))
    with pytest.raises(ValueError, match="must be no") as error:
        simulate(Plan(ONE_EACH, tuning=ChainTuning(control=control)), config, 0)
    assert sentence in str(error.value)


# ------------------------------------------------------------------------------------- the tables


def test_series_are_one_table_with_every_worker() -> None:
    timed = faulty(STOPPED)
    series = timed.series
    assert len({len(column) for column in series.values()}) == 1
    assert (np.diff(series["time_us"]) > 0).all()
    for n in range(3):
        assert {f"queue_{n}", f"utilisation_{n}"} <= set(series)
    assert series["queue_0"].max() > 5
    slowed = (series["time_us"] > 2e6) & (series["time_us"] < 4e6)
    assert (series["utilisation_0"][slowed] > 0.9).all()
    assert np.nanmin(series["watermark_lag_us"]) > 0
    mean = np.mean([series[f"utilisation_{n}"] for n in range(3)], axis=0)
    np.testing.assert_allclose(series["busy"], mean)


def test_a_plan_of_a_chain_is_plain_data() -> None:
    plan = faulty(STOPPED, queue_limit=3).plan
    assert from_plain(to_plain(plan)) == plan


# --------------------------------------------------------------------------------------- settings


def test_neighbours_have_the_requested_distance() -> None:
    from sim.join.settings import SETTINGS, plan_of

    for names in (("process", "node", "rack", "elsewhere"), ("node",), ("rack", "rack", "process")):
        given = read_settings({"tiers": ",".join(names), "speeds": "1,2"}, SETTINGS)
        plan = plan_of(given)
        for n in range(40):
            one, other = (plan.cluster.worker(each).place for each in (n, n + 1))
            assert plan.way(one, other) == getattr(Tiers(), names[n % len(names)])


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"worker": "3"}, "there is no setting 'worker'; did you mean 'workers'?"),
        ({"workers": "0"}, "workers is 0; it must be an integer > 0"),
        ({"scenario": "burst"}, "scenario is 'burst'; it must be one of"),
        ({"tiers": "node,moon"}, "tiers is 'moon'; it must be one of"),
        ({"speeds": "1,x"}, "speeds is 'x'; it must be a finite number"),
        ({"speeds": "1,0"}, "speeds is 0.0; it must be a finite number > 0"),
        ({"seconds": "-1"}, "seconds is -1.0; it must be a finite number > 0"),
        ({"predicate": "ban"}, "predicate is 'ban'; it must be one of band"),
        ({"shed": "some"}, "shed is 'some'; it must be one of no, linear, quadratic"),
        ({"blocks": "big"}, "blocks is 'big'; it must be one of fixed, adaptive"),
        ({"scale": "maybe"}, "scale is 'maybe'; it must be yes or no"),
        ({"pace_us": "soon"}, "pace_us is 'soon'; it must be an integer >= 0, or never"),
        ({"trigger_interval_us": "0"}, "trigger_interval_us is 0; it must be an integer > 0"),
        ({"tau0": "0.9"}, "tau0, tau1, tau2 are 0.9"),
        ({"least": "5", "most": "4"}, "least is 5; it must be at most 4, which is most"),
        ({"base": "0.9"}, "base is 0.9; it must be at most 0.8, which is tau2"),
        ({"queries": "0"}, "queries is 0; it must be an integer > 0"),
        ({"queue_limit": "-1"}, "queue_limit is -1; it must be an integer >= 0"),
        ({"when_full": "wait"}, "when_full is 'wait'; it must be one of block, drop"),
        ({"loss": "2"}, "Noise.loss is 2.0; it must be between 0 and 1"),
        ({"tuple_us": "-1"}, "Constant.us is -1.0; it must be finite and at least 0"),
        ({"message_us": "-1"}, "message_us is -1.0; it must be a finite number >= 0"),
        ({"tuple_bytes": "0"}, "tuple_bytes is 0; it must be an integer > 0"),
        ({"faults": "fail worker-0 -5 1"}, "fail.at_us is -5; it must be at least 0"),
        ({"faults": "fail worker-7 5 1"}, "target of fail is 'worker-7'; it must be one of"),
        ({"faults": "lose worker-0>worker-2 1"}, "target of lose is 'worker-0>worker-2'; it must"),
    ],
)
def test_a_bad_setting_is_named(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(ValueError, match=r"must be|no setting") as error:
        from_settings(settings, 0)
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        (Plan((), tuning=Costs()), "Plan.tuning is Costs("),
        (Plan((), cluster=Cluster((Worker(servers=2),))), "servers of a worker is 2; it must be 1"),
        (Plan((), faults=(Congest(LINK, 0, 1),)), f"target of congest is '{LINK}'; this run has"),
    ],
)
def test_an_impossible_plan_is_refused(plan: Plan, sentence: str) -> None:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 (compared below)
        simulate(plan, EVERYTHING, 0)
    assert str(refusal.value).startswith(sentence)


def test_an_arrival_of_a_third_stream_is_refused() -> None:
    workload = small(seconds="1").workload
    stranger = Event(0, 1, "a", 0, 1.0, 0, "T")
    with pytest.raises(ValueError, match="stream of an arrival is 'T'; it must be one of R, S"):
        TIMED_ROOM.replay(workload.with_(arrivals=(stranger,), cuts=()))
