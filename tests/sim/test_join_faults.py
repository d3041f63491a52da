"""Faults and full queues of a timed chain: they cost time and change no result."""

from dataclasses import replace

import pytest

from model.vocabulary import Fault
from model.vocabulary.join import Ack, Forward, Receive
from sim.join import ChainRun, simulate
from sim.kernel.faults import Congest, Duplicate, Fail, Lose, Pause, Replay, Schedule, Slow
from sim.kernel.link import Noise
from sim.kernel.plan import Plan
from sim.kernel.source import Source
from tests.sim.chains import LINK, QUERY, STOPPED, assert_is_the_model_s, faulty, found, small

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


def test_the_protocol_acknowledges_a_repeated_block_again(calm: ChainRun) -> None:
    run = faulty(tuple(Replay(LINK, nth, 0) for nth in range(1_000)))
    # Repeated messages are not recorded.
    assert [len(run.trace.of(word)) for word in (Forward, Receive, Ack)] == [
        int(run.summary["blocks"])
    ] * 3

    def acknowledgements(run: ChainRun) -> float:
        blocks, mean_block, share = (
            float(run.summary[name]) for name in ("blocks", "mean_block", "header_share")
        )
        return share * blocks * mean_block * 100 / 50 - blocks

    over_link = sum(each.worker == 0 for each in run.trace.of(Forward))
    again = acknowledgements(run) - float(run.summary["blocks"])
    assert over_link == pytest.approx(again)
    assert acknowledgements(calm) == pytest.approx(float(calm.summary["blocks"]))


def test_lost_messages_come_later(calm: ChainRun) -> None:
    plan = replace(calm.plan, cluster=replace(calm.plan.cluster, noise=Noise(0.3, 50_000.0)))
    run = simulate(plan, QUERY, 7)
    assert_is_the_model_s(run)
    assert found(run.trace) == found(calm.trace)
    assert float(run.summary["mean_latency_us"]) > float(calm.summary["mean_latency_us"]) + 50_000


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


def test_a_failure_goes_back_to_the_last_quiet_epoch() -> None:
    timed = small(faults="fail worker-0 4000000 500000", trigger_interval_us="2500000")
    assert timed.summary["failures"] == 1
    # The epoch began at 2.5 s; about 30 tuples a second of either stream came since.
    assert 40 < int(timed.summary["arrivals_taken_again"]) < 140


def test_a_failure_after_the_end_costs_nothing() -> None:
    plan = Plan((Source(3), Source(3)), faults=(Fail("worker-1", 10**9, 1),))
    late = simulate(plan, QUERY, 0)
    assert late.summary["failures"] == 0
    assert late.workload.faults == ()


def test_a_shed_arrival_stays_shed_after_a_failure() -> None:
    overload = {"shed": "linear", "capacity": "20", "trigger_interval_us": "2500000"}
    timed = small(1, **overload, faults="fail worker-0 4000000 500000")
    assert int(timed.summary["shed"]) > 10
    assert_is_the_model_s(timed)
    assert timed.summary["arrivals"] == int(timed.summary["shed"]) + len(timed.workload.arrivals)
