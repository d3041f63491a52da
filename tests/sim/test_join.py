"""The timed chain: costs, epochs, decisions, failures, and workers that come and go."""

from collections import Counter
from typing import Any

import pytest

from model.checking.claims import Outcome
from model.join.claims import judge
from model.join.control import decide, share_to_shed, start, workers_for
from model.join.run import run as model_run
from model.vocabulary import Fault, JoinConfig, Trace
from model.vocabulary.join import And, Between, Decision, Equi, Ineq, Match, Rejected
from model.vocabulary.join_load import LoadRules
from model.vocabulary.settings import read_settings
from properties import profiles
from sim.join import ChainRun, from_settings, simulate
from sim.join.cluster import ChainCluster
from sim.join.line import LOG, Do, Line
from sim.join.live_chain import LiveChain
from sim.join.machine import Service
from sim.join.model_chain import ModelChain
from sim.join.settings import SETTINGS, config_of, plan_of
from sim.join.tuning import ChainTuning, Control, Costs
from sim.kernel.distributions import Constant, Exponential
from sim.kernel.faults import Fail, Schedule
from sim.kernel.link import Place, Tier, Tiers
from sim.kernel.plan import Cluster, Plan, Worker
from sim.kernel.source import Source
from sim.kernel.trigger import At, Every

EVERYTHING = JoinConfig(1_000_000, (("all", And()),), workers=2, block_size=1)
FREE = Costs(0.0, 0.0, 0.0)
ONE_EACH = (Source(1), Source(1, start_us=1_000))
"""One tuple of R, and one of S a millisecond later."""


def small(seed: int = 1, /, **settings: str) -> ChainRun:
    given = {"seconds": "6", "rate_r_hz": "30", "rate_s_hz": "30", "workers": "3"}
    return from_settings({**given, "record": "yes", "shed": "linear", **settings}, seed)


def found(trace: Trace) -> list[tuple[str, int, int]]:
    """Return matches without the epoch in which they came."""
    return sorted(match[:3] for match in trace.of(Match))


def assert_is_the_model_s(run: ChainRun) -> None:
    """Assert that the model observes the trace of the run, given its workload."""
    trace = model_run(run.workload)
    assert found(run.trace) == found(trace)
    assert run.trace.of(Rejected) == trace.of(Rejected)
    for verdict in judge(run.workload, run.trace).verdicts:
        assert verdict.outcome is not Outcome.BROKEN, (verdict.claim, verdict.witness)


def one_pair(
    tier: Tier, tuple_us: float = 0.0, costs: Costs = FREE, speed: float = 1.0
) -> ChainRun:
    """Run a chain that does nothing until the flush, when r and s meet over one link."""
    workers = tuple(Worker(speed, place=Place(process=n)) for n in (0, 1))
    plan = Plan(
        ONE_EACH,
        cluster=Cluster(workers, Constant(tuple_us)),
        tuning=ChainTuning(costs, intake_us=1, commit_us=0),
        tiers=Tiers(process=Tier(0.0, 1e9), node=tier),
        trigger=At(()),
    )
    return simulate(plan, EVERYTHING, 0)


# -------------------------------------------------------------------------------------- the times


COSTLY = (100.0, Costs(1_000.0, 10.0, 1.0))
WORK_US = (2 * 1_000 + 2 * 100) + (2 * 1_000 + 100 + 10 + 1)
"""S is admitted and sent on, two messages and two tuples; R has come in the meantime, and is
received, compared, found and acknowledged."""


@pytest.mark.parametrize(
    ("timed", "latency_us"),
    [
        # R waits for S, which comes 1 ms later and has an equally long way from the log.
        ((Tier(100.0, 1e9),), 100.0),
        ((Tier(5_000.0, 1e9),), 5_000.0),
        ((Tier(0.0, 1e9), *COSTLY), WORK_US),
        ((Tier(0.0, 1e9), *COSTLY, 0.5), WORK_US / 0.5),
    ],
)
def test_links_and_work_take_their_time(timed: tuple[Any, ...], latency_us: float) -> None:
    assert one_pair(*timed).summary["mean_latency_us"] == pytest.approx(latency_us)


def test_only_tuples_that_an_index_selects_are_compared() -> None:
    plan = Plan((Source(50, Constant(1_000), keys=("a", "b")),) * 2)
    config = JoinConfig(10_000_000, (("equal", Equi("key")), ("all", And())), workers=1)
    timed = simulate(plan, config, 0)
    counts = Counter((event.stream, event.key) for event in timed.workload.arrivals)
    equal = sum(counts["R", key] * counts["S", key] for key in "ab")
    assert timed.summary["comparisons"] == equal + 2_500
    assert timed.summary["results"] == equal + 2_500
    assert timed.summary["efficiency"] == 1.0


def test_a_tree_finds_the_values_beyond_an_inequality() -> None:
    plan = Plan((Source(50, Constant(1_000)),) * 2)
    queries = (("above", Between("value", 70, None)), ("at least", Ineq("value", ">=", "value")))
    config = JoinConfig(5_000, queries, workers=1)  # without a watermark, so nothing is dropped
    timed = simulate(plan, config, 0)
    r, s = ([e for e in timed.workload.arrivals if e.stream == stream] for stream in "RS")
    beyond = [(one, other) for one in r for other in s if other.value - one.value >= 70]
    beyond += [(one, other) for one in r for other in s if one.value >= other.value]
    assert timed.summary["comparisons"] == len(beyond)
    near = [one for one, other in beyond if abs(one.event_time_us - other.event_time_us) <= 5_000]
    assert timed.summary["results"] == len(near) < len(beyond)


# ------------------------------------------------------------------------------------------- faults


def test_the_workload_carries_every_failure() -> None:
    run = faulty((Fail("worker-1", 4_400_000, 1), Fail("worker-1", 5_100_000, 900_000)))
    assert run.workload.faults == (Fault("kill", 2),)
    assert run.summary["failures"] == 2
    in_the_flush = faulty((Fail("worker-2", 8_012_500, 100_000),))
    assert in_the_flush.workload.faults == (Fault("kill", 4),)


def faulty(faults: Schedule) -> ChainRun:
    """Run three distant workers on 30 tuples/s of each stream for 6 seconds."""
    places = ((1.0, Place()), (0.1, Place(node=1)), (0.5, Place(rack=1)))
    workers = tuple(Worker(speed, place=place) for speed, place in places)
    source = Source(180, Exponential(33_000.0), delay=Exponential(20_000.0), keys=("a", "b"))
    plan = Plan(
        (source, source),
        cluster=Cluster(workers, Constant(2.0)),
        tuning=ChainTuning(record=True),
        faults=faults,
        trigger=Every(2_000_000),
    )
    queries = (("same", Equi("key")),)
    query = JoinConfig(500_000, queries, workers=3, block_size=4, lateness_us=100_000)
    return simulate(plan, query, 7)


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
    """Run two streams whose rates are five times as high for 1.5 of 8 seconds."""
    sources = [
        Source(events, Constant(interval_us), start_us=start_us, keys=("a", "b"))
        for events, interval_us, start_us in ((160, 50_000.0, 0), (120, 12_500.0, 1_500_000))
        for _ in "RS"
    ]
    tuning = ChainTuning(Costs(comparison_us=900), Control(rules=RULES), commit_us=COMMIT_US)
    plan = Plan(tuple(sources), tuning=tuning, trigger=Every(EPOCH_US))
    return simulate(plan, CONFIG, 3)


def test_the_decisions_are_those_of_the_controller() -> None:
    run = rising_and_falling()
    state, taken = start(RULES, CONFIG.workers), Decision(0, CONFIG.workers, CONFIG.block_size, 0.0)
    for number, (measured, decision) in enumerate(run.concluded):
        assert measured.epoch == number
        assert len(measured.busy_us) == taken.workers
        assert max(measured.busy_us) <= measured.elapsed_us
        state, taken = decide(RULES, state, measured)
        assert decision == taken
    workers = [each.decision.workers for each in run.concluded]
    assert workers[0] == workers[-1] == 2
    assert max(workers) > 2
    assert len({each.decision.block_size for each in run.concluded}) > 2
    assert_is_the_model_s(run)  # exact over what was not shed


def test_a_full_chain_sheds_everything_and_an_idle_one_keeps_a_worker() -> None:
    for power in (1, 2):
        assert share_to_shed(False, 3.0, 0.8, 0.1, power, 0.05) == 1.0
        assert share_to_shed(False, 3.0, 1.0, 0.1, power, 0.05) == 1.0
    assert [workers_for(3, each, LoadRules()) for each in (0.0, 0.4, 0.8)] == [1, 3, 6]


def test_overdue_tuples_go_on_at_the_end_of_an_epoch() -> None:
    given = {"block_size": "64", "trigger_interval_us": "1000000", "window_us": "300000"}
    runs = [small(3, blocks="fixed", drains=drains, **given) for drains in ("no", "yes")]
    stayed, gone = ([each.batch for each in run.trace.of(Match)] for run in runs)
    assert len(gone) == len(stayed)
    assert sum(gone) < sum(stayed)
    assert_is_the_model_s(runs[1])


# ------------------------------------------------------- workers that come and go while tuples flow


WINDOW_US = 1_000_000
CASE = {
    "scenario": "case",
    "seconds": "45",
    "rate_r_hz": "20",
    "rate_s_hz": "20",
    "window_us": f"{WINDOW_US}",
    "capacity": "25",
    "workers": "4",
    "predicate": "equi",
    "scale": "yes",
    "live": "yes",
    "intake_us": "20000",
    "control_us": "100000",
    "tau0": "0.25",
    "out_after_us": "500000",
    "in_after_us": "3000000",
    "blocks": "fixed",
    "block_size": "4",
    "tiers": "elsewhere",
    "speeds": "1",
}
"""A case study in which the number of workers doubles and halves within 45 s."""


def run(settings: dict[str, str], seed: int = 1) -> ChainRun:
    values = read_settings({**CASE, **settings}, SETTINGS)
    return simulate(plan_of(values), config_of(values), seed, machine=LiveChain)


def changes(timed: ChainRun) -> list[tuple[int, int]]:
    """Return the numbers of workers before and after each change."""
    text = str(timed.summary["resized"])
    pairs = [one.split(" to ") for one in text.split(", ")] if text != "no" else []
    return [(int(before), int(after)) for before, after in pairs]


def test_workers_come_and_go_within_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, int]] = []
    tell = Line.tell

    def recorded(line: Line, sender: str, to: int, do: Do) -> None:
        told.append((sender, to))
        tell(line, sender, to, do)

    monkeypatch.setattr(Line, "tell", recorded)
    timed = run({"trigger_interval_us": "never"})  # one epoch, so nothing happens between two
    numbers = changes(timed)
    assert any(after > before for before, after in numbers)
    assert any(after < before for before, after in numbers)
    assert 100_000 < int(timed.summary["longest_change_us"]) < WINDOW_US
    # MARK goes to the old end, and END from the first worker that leaves to the new end.
    ends = [(LOG, a - 1) if b > a else (f"worker-{b}", b - 1) for a, b in numbers]
    assert [message for message in told if message in ends] == ends
    assert all(sender in (LOG, f"worker-{to + 1}") for sender, to in told)
    assert found(timed.trace) == found(model_run(timed.workload))


@pytest.mark.parametrize(
    "settings",
    [
        {"faults": "fail worker-0 16500000 500000"},
        *(
            pytest.param(each, marks=pytest.mark.long)
            for each in (
                {"workers": "1", "trigger_interval_us": "1000000"},
                {
                    "workers": "2",
                    "lateness_us": "0",
                    "message_us": "3000",
                    "trigger_interval_us": "never",
                },
                {"blocks": "adaptive", "loss": "0.1", "trigger_interval_us": "7000000"},
                {"faults": "fail worker-1 30500000 500000; slow worker-0 15000000 4000000 40"},
            )
        ),
    ],
    ids=["failure", "one worker", "slow", "lost", "failure and slowness"],
)
def test_every_pair_of_admitted_tuples_comes_out_once(settings: dict[str, str]) -> None:
    for seed in range(profiles.choose(1, nightly=3)):
        timed = run(settings, seed)
        befores, afters = zip(*changes(timed), strict=True)
        assert befores == (int({**CASE, **settings}["workers"]), *afters[:-1])
        assert found(timed.trace) == found(model_run(timed.workload))


def test_a_change_between_epochs_takes_as_long_as_moving_the_tuples(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moved: list[int] = []
    rests_us: list[float] = []
    resize, change = ModelChain.resize, ChainCluster._resize

    def resized(chain: ModelChain, workers: int) -> Service:
        moved.append((service := resize(chain, workers)).tuples)
        return service

    def changed(cluster: ChainCluster, wanted: int) -> float:
        rests_us.append(change(cluster, wanted))
        return rests_us[-1]

    monkeypatch.setattr(ModelChain, "resize", resized)
    monkeypatch.setattr(ChainCluster, "_resize", changed)
    settings = {**CASE, "live": "no", "trigger_interval_us": "1000000"}
    values = read_settings(settings, SETTINGS)
    plan = plan_of(values)
    simulate(plan, config_of(values), 1, machine=ModelChain)
    tier = plan.way(plan.cluster.worker(0).place, plan.cluster.worker(1).place)
    assert tier is not None
    bits = [8 * plan.cluster.tuple_bytes * tuples for tuples in moved]
    # A megabit a second is a bit in a microsecond.
    assert rests_us == [tier.latency_us + each / tier.bandwidth_mbps for each in bits]
    assert max(moved) > 0
