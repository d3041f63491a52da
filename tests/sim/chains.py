"""Small timed chains, and how their runs are held to the model."""

from model.checking.claims import Outcome
from model.join.claims import judge
from model.join.run import run as model_run
from model.vocabulary import JoinConfig, Trace
from model.vocabulary.join import Equi, Match, Rejected
from sim.join import ChainRun, from_settings, simulate
from sim.join.tuning import ChainTuning
from sim.kernel.distributions import Constant, Exponential
from sim.kernel.faults import Schedule
from sim.kernel.link import Place
from sim.kernel.plan import Cluster, Plan, Worker
from sim.kernel.source import Source
from sim.kernel.trigger import Every

WORKERS = ((1.0, Place()), (0.1, Place(node=1)), (0.5, Place(rack=1)))
QUERY = JoinConfig(500_000, (("same", Equi("key")),), workers=3, block_size=4, lateness_us=100_000)


def small(seed: int = 1, **settings: str) -> ChainRun:
    given = {"seconds": "6", "rate_r_hz": "30", "rate_s_hz": "30", "workers": "3"}
    return from_settings({**given, "record": "yes", "shed": "linear", **settings}, seed)


def faulty(faults: Schedule) -> ChainRun:
    """Run three distant workers on 30 tuples/s of each stream for 6 seconds."""
    workers = tuple(Worker(speed, place=place) for speed, place in WORKERS)
    source = Source(180, Exponential(33_000.0), delay=Exponential(20_000.0), keys=("a", "b"))
    plan = Plan(
        (source, source),
        cluster=Cluster(workers, Constant(2.0)),
        tuning=ChainTuning(record=True),
        faults=faults,
        trigger=Every(2_000_000),
    )
    return simulate(plan, QUERY, 7)


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
