"""The timed chain: costs, epochs, decisions, and faults that cost time and change no result."""

from dataclasses import replace

import pytest

from model.join.control import decide, start
from model.vocabulary import Fault, JoinConfig
from model.vocabulary.join import (
    REASON_SHED,
    And,
    Decision,
    Equi,
    Match,
    Quiet,
    Rejected,
)
from model.vocabulary.join_load import LoadRules
from sim.join import ChainRun, simulate
from sim.join.room import TIMED_ROOM
from sim.join.tuning import ChainTuning, Control, Costs
from sim.kernel.distributions import Constant
from sim.kernel.faults import Congest, Duplicate, Fail, Lose, Pause, Replay, Schedule, Slow
from sim.kernel.link import Place, Tier, Tiers
from sim.kernel.plan import Cluster, Plan, Worker
from sim.kernel.source import Source
from sim.kernel.trigger import At, Every
from tests.sim.chains import LINK, STOPPED, assert_is_the_model_s, faulty, found, small

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


# -------------------------------------------------------------------------------------- the times


def test_a_message_takes_the_time_of_its_link() -> None:
    near, far = one_pair(), one_pair(Tier(5_000.0, 1e9))
    # R waits for S, which comes 1 ms later and has an equally long way from the log.
    assert near.summary["mean_latency_us"] == pytest.approx(100.0)
    assert far.summary["mean_latency_us"] == pytest.approx(5_000.0)


def test_work_takes_the_time_that_it_costs_on_that_worker() -> None:
    costs = Costs(1_000.0, 10.0, 1.0)
    # S is admitted and sent on, two messages and two tuples; R has come in the meantime, and is
    # received, compared, found and acknowledged.
    work_us = (2 * 1_000 + 2 * 100) + (2 * 1_000 + 100 + 10 + 1)
    for speed in (1.0, 0.5):
        timed = one_pair(Tier(0.0, 1e9), 100.0, costs, speed)
        assert timed.summary["mean_latency_us"] == pytest.approx(work_us / speed)


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


# ------------------------------------------------------------------------------------------- faults


EVERY_FAULT: dict[str, Schedule] = {
    "pause": (Pause("worker-1", 2_000_000, 700_000),),
    "slow": (Slow("worker-0", 1_000_000, 3_000_000, 20_000.0),),
    "fail at the end": (Fail("worker-0", 3_000_000, 400_000),),
    "fail in the middle": (Fail("worker-1", 4_400_000, 1), Fail("worker-1", 5_100_000, 900_000)),
    "fail together": (Fail("worker-1", 3_000_000, 400_000), Fail("worker-2", 3_100_000, 600_000)),
    "fail in the flush": (Fail("worker-2", 8_012_500, 100_000),),
    "congest": (Congest(LINK, 1_000_000, 2_000_000), Congest("worker-2>worker-1", 0, 10**7, 1e-4)),
    "congest the log": (Congest("log>worker-2", 2_000_000, 1_500_000),),
    "lose": tuple(Lose(LINK, nth) for nth in range(0, 60, 3)),
    "lose from the log": tuple(Lose("log>worker-0", nth) for nth in range(0, 60, 7)),
    "replay": tuple(Replay(LINK, nth, 37 * nth**3) for nth in range(60)),
    "replay back": tuple(Replay("worker-1>worker-0", nth, 37 * nth**3) for nth in range(60)),
    "replay from the log": tuple(Replay("log>worker-0", nth, 1_000) for nth in range(60)),
    "duplicate": tuple(Duplicate("source-1", nth, 100_000) for nth in range(60)),
    "all of them": (
        Fail("worker-2", 3_300_000, 300_000),
        Slow("worker-1", 1_000_000, 3_000_000, 9_000.0),
        Pause("worker-0", 2_000_000, 700_000),
        *(Lose(LINK, nth) for nth in range(0, 60, 3)),
        *(Replay("worker-2>worker-1", nth, 10_000 * nth) for nth in range(60)),
        Duplicate("source-0", 7, 1_000),
    ),
}


@pytest.fixture(scope="module")
def calm() -> ChainRun:
    return faulty(())


@pytest.mark.parametrize("name", EVERY_FAULT)
def test_a_fault_changes_no_result(name: str, calm: ChainRun) -> None:
    run = faulty(EVERY_FAULT[name])
    assert_is_the_model_s(run)
    assert len(found(run.trace)) > 500
    assert found(run.trace) == found(calm.trace)
    assert run.digest != calm.digest
    if name == "replay from the log":
        # The log's tuples have numbers: a copy on its way to a worker is thrown away.
        assert int(run.summary["came_again"]) > 10
        assert {**run.summary, "came_again": 0} == {**calm.summary, "came_again": 0}
        assert run.trace.digest() == calm.trace.digest()


def test_the_workload_carries_every_failure() -> None:
    run = faulty(EVERY_FAULT["fail in the middle"])
    assert run.workload.faults == (Fault("kill", 2),)
    assert run.summary["failures"] == 2
    flushed = faulty(EVERY_FAULT["fail in the flush"])
    assert flushed.workload.faults == (Fault("kill", 4),)


@pytest.mark.parametrize("limit", [0, 1])
def test_a_full_worker_holds_up_its_source(limit: int) -> None:
    free, held = faulty(STOPPED), faulty(STOPPED, queue_limit=limit)
    assert_is_the_model_s(held)
    assert found(held.trace) == found(free.trace)
    assert "shed_at_log" not in held.summary
    assert held.summary["peak_waiting"] > free.summary["peak_waiting"]  # type: ignore[operator]  # figures are numbers here


@pytest.mark.parametrize("limit", [0, 1, 5])
def test_a_full_worker_sheds_the_stream_that_enters_there(limit: int) -> None:
    run = faulty(STOPPED, queue_limit=limit, when_full="drop")
    assert_is_the_model_s(run)
    shed = int(run.summary["shed_at_log"])
    assert shed > 0
    counts = {stream: sum(e.stream == stream for e in run.workload.arrivals) for stream in "RS"}
    assert counts == {"R": 180 - shed, "S": 180}


# --------------------------------------------------------------------------- decisions by busy time


RULES = LoadRules(
    least=2,
    most=4,
    tau0=0.13,
    tau1=0.4,
    tau2=0.4,
    out_after_us=500_000,
    in_after_us=1_000_000,
    capacity=40,
    blocks="adaptive",
    shed="linear",
    block_size=8,
)
CONFIG = JoinConfig(500_000, (("same", Equi("key")),), workers=2, block_size=8, lateness_us=0)
EPOCH_US, COMMIT_US = 500_000, 10_000


def rising_and_falling() -> ChainRun:
    """Run two streams whose rates are three times as high in the second of four parts."""
    sources = [
        Source(events, Constant(interval_us), start_us=start_us, keys=("a", "b"))
        for events, interval_us, start_us in ((120, 50_000.0, 0), (120, 12_500.0, 1_500_000))
        for _ in "RS"
    ]
    tuning = ChainTuning(
        Costs(comparison_us=900), Control(rules=RULES), pace_us=50_000, commit_us=COMMIT_US
    )
    plan = Plan(tuple(sources), tuning=tuning, trigger=Every(EPOCH_US))
    return simulate(plan, CONFIG, 3)


def test_the_decisions_are_those_of_the_controller() -> None:
    run = rising_and_falling()
    state, taken = start(RULES, CONFIG.workers), Decision(0, CONFIG.workers, CONFIG.block_size, 0.0)
    for number, (measured, decision) in enumerate(run.concluded):
        assert measured.epoch == number
        assert len(measured.busy_us) == taken.workers
        assert max(measured.busy_us) <= measured.elapsed_us
        assert (measured.shed > 0) <= (taken.share > 0)
        state, taken = decide(RULES, state, measured)
        assert decision == taken
    workers = [each.decision.workers for each in run.concluded]
    assert workers[0] == workers[-1] == 2
    assert max(workers) > 2
    assert len({each.decision.block_size for each in run.concluded}) > 2


def test_what_is_measured_adds_up() -> None:
    run = rising_and_falling()
    measured = [each.measured for each in run.concluded]
    assert sum(each.offered for each in measured) == run.summary["arrivals"]
    assert sum(each.shed for each in measured) == run.summary["shed"]
    assert sum(each.shed for each in measured) > 0
    # An epoch is cut at a multiple of its interval, and is over when the chain is quiet.
    ends_us = [sum(each.elapsed_us for each in measured[: n + 1]) for n in range(len(measured))]
    assert all(end_us >= n * EPOCH_US for n, end_us in enumerate(ends_us[:-1], 1))


def test_results_are_exact_over_what_was_not_shed() -> None:
    run = rising_and_falling()
    assert JoinConfig.from_json(run.workload.config).decisions
    assert_is_the_model_s(run)


def test_overdue_tuples_go_on_at_the_end_of_an_epoch() -> None:
    given = {"block_size": "64", "trigger_interval_us": "1000000", "window_us": "300000"}
    runs = [small(3, blocks="fixed", drains=drains, **given) for drains in ("no", "yes")]
    stayed, gone = ([each.batch for each in run.trace.of(Match)] for run in runs)
    assert len(gone) == len(stayed)
    assert sum(gone) < sum(stayed)
    assert_is_the_model_s(runs[1])
