"""Packs of drawn clusters: simulated by SimPy, run on Spark, and compared.

Rules of this file:

* Hypothesis draws whole packs, so it owns seeds, examples and the line that reproduces them. It
  does not shrink, because a pack takes seconds on Spark. A cluster that fails is shrunk in process,
  confirmed on Spark and stored with its plan (``straggler/judging/trial``). A promise about many
  clusters together, such as a mean, is a plain assertion and stores nothing.
* A case counts as reached if Spark's own trace shows it, if Spark's side reports it (kills), or if
  it is a fact of the input: clusters, tuples, copies of tuples, new times of instances.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain
from math import ceil
from typing import Any, NamedTuple

import pytest
from hypothesis import assume
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from model.checking.claims import Verdict
from model.vocabulary import Trace, Workload
from model.vocabulary.grouping import Route
from model.vocabulary.trace import kind_of
from properties.on_spark import run_on_spark
from properties.oracles.promises import Steps, wrong_routes, wrong_windows
from properties.oracles.router import Router
from sim.kernel.run import TimedRun
from sim.kernel.source import Source
from sim.kernel.trigger import EveryTuples
from straggler.judging import counterexamples
from straggler.judging.counterexamples import SimulatedCluster
from straggler.judging.judge import broken_sentences, compare_traces
from straggler.judging.plan_counterexamples import SeededPlan
from straggler.judging.systems import SPARK
from straggler.judging.trial import Promise, Trial
from straggler.rooms import Room, find_room
from straggler.strategies import clusters
from straggler.strategies.clusters import REGIONS, Shape
from straggler.strategies.scales import SCALES, USUAL

BATCHES_MAX = 3
"""Most micro-batches of a cluster, because Spark takes long for each, however small."""
SHOWN_SENTENCES = 8


# ----------------------------------------------------------------------------------------- packs


class ClusterPack(NamedTuple):
    """Clusters of one room that run together, each with its query."""

    room: str
    configs: tuple[Any, ...]
    cases: tuple[SeededPlan, ...]

    def __repr__(self) -> str:
        """Return one line, because the plans would fill pages."""
        return f"<{len(self.cases)} clusters for {self.configs[0]}>"


@st.composite
def packs(
    draw: st.DrawFn,
    name: str,
    size: int,
    configs: st.SearchStrategy[Any] | Sequence[st.SearchStrategy[Any]],
    shape: Callable[[Any], Shape],
    regions: Sequence[str] = REGIONS,
    scales: Sequence[str] = (USUAL,),
) -> ClusterPack:
    """Draw ``size`` clusters, each from one of ``regions`` and of ``scales`` in turn.

    All of them share one query drawn from ``configs``. If there are several strategies, each
    cluster has a query of its own, drawn from these strategies in turn.
    """
    # Hypothesis tries the simplest example first, in which all clusters of a region are alike.
    assume(draw(st.integers(0, 7)))
    if isinstance(configs, st.SearchStrategy):
        chosen = [draw(configs)] * size
    else:
        chosen = [draw(configs[number % len(configs)]) for number in range(size)]
    turn = draw(st.integers(0, len(scales) - 1))  # Each region meets each scale.
    cases = []
    for number, config in enumerate(chosen):
        scaled = SCALES[scales[(number + turn) % len(scales)]](shape(config))
        region = regions[number % len(regions)]
        drawn = clusters.cases(scaled, region)
        if region == "failing":
            drawn = drawn.filter(partial(_is_killed_with_state, name, config))
        cases.append(draw(drawn))
    return ClusterPack(name, tuple(chosen), tuple(cases))


def _is_killed_with_state(room: str, config: Any, case: SeededPlan) -> bool:
    """Return whether a worker fails behind the first micro-batch and before the flush."""
    workload = simulate_case(room, config, case)[1].workload
    return any(0 < each.at < len(list(workload.batches())) for each in workload.faults)


def join_packs(*packs: ClusterPack) -> ClusterPack:
    """Return one pack of all clusters, for a room whose queries may differ in a pack."""
    configs = chain.from_iterable(pack.configs for pack in packs)
    cases = chain.from_iterable(pack.cases for pack in packs)
    return ClusterPack(packs[0].room, tuple(configs), tuple(cases))


def fail_with(sentences: Sequence[str], report: Sequence[str]) -> None:
    """Fail the test with the first sentences, and a report on the smallest failure like it."""
    shown = sentences[:SHOWN_SENTENCES]
    pytest.fail("\n".join([*shown, "", "The smallest like it, alone:", *report]), pytrace=False)


class ClusterRun(NamedTuple):
    """One cluster: the run of the simulation, and Spark's trace of the same workload."""

    room: Room
    given: SimulatedCluster
    run: TimedRun
    trace: Trace
    """Spark's own trace."""

    def fail(self, sentences: Sequence[str], promise: Promise = lambda *_: ()) -> None:
        """Fail the test with a smaller cluster that also fails, stored for ``straggler replay``."""
        trial = Trial(self.room, self.room.spark(), SPARK, self.room.step_types, promise=promise)
        fail_with(sentences, trial.report_cluster(self.given, counterexamples.FOLDER, sentences))


Simulated = Mapping[str, tuple[SimulatedCluster, TimedRun]]
"""Clusters of a pack and their runs, by a name of each."""


class PackRun(NamedTuple):
    """A pack that was simulated and run on Spark."""

    seen: tuple[ClusterRun, ...]
    """Runs of the single clusters."""
    kills: Sequence[int]
    """Micro-batches in which the query of the pack was killed."""


def run_packs(spark: SparkSession, *packs: ClusterPack, kills: int = 0) -> Iterator[PackRun]:
    """Simulate packs, and run them on Spark side by side, because a query waits half of its time.

    Spark runs a pack while the next ones are simulated, and while the first ones are judged. The
    query of a pack is killed at most ``kills`` times.
    """
    with ThreadPoolExecutor(len(packs)) as pool:
        running = [pool.submit(_run_pack, spark, kills, pack, simulate(pack)) for pack in packs]
        for each in running:
            yield each.result()


def _run_pack(spark: SparkSession, kills: int, pack: ClusterPack, simulated: Simulated) -> PackRun:
    room = find_room(pack.room)
    workloads = {name: run.workload.with_(name=name) for name, (_, run) in simulated.items()}
    traces, killed = run_on_spark(spark, workloads, kills)
    seen = tuple([ClusterRun(room, *ran, traces[name]) for name, ran in simulated.items()])
    return PackRun(seen, killed)


def simulate(pack: ClusterPack) -> Simulated:
    """Simulate the clusters of a pack; return each with its run, by a name of its own."""
    return {
        f"cluster-{n}": simulate_case(pack.room, config, case)
        for n, (config, case) in enumerate(zip(pack.configs, pack.cases, strict=True))
    }


@lru_cache(4)  # A draw simulates a cluster that fails, and the property runs it, too.
def simulate_case(room: str, query: Any, case: SeededPlan) -> tuple[SimulatedCluster, TimedRun]:
    """Simulate a cluster, with a coarser trigger if its own makes too many micro-batches.

    The case that is returned has the trigger.
    """
    of_room, config, plan = find_room(room), query.to_json(), case.plan
    sheds = any(worker.when_full == "drop" for worker in plan.cluster.workers)
    if isinstance(plan.trigger, EveryTuples) and not sheds:  # nearly all that is sent arrives
        sent = sum(each.events for each in plan.sources if isinstance(each, Source))
        if plan.trigger.tuples * BATCHES_MAX < sent:
            case = _coarser(case, sent)
    run = of_room.simulate_plan(case.plan, config, case.seed)
    if len(list(run.workload.batches())) > BATCHES_MAX:
        case = _coarser(case, len(run.workload.arrivals))
        run = of_room.simulate_plan(case.plan, config, case.seed)
    return SimulatedCluster(room, config, case), run


def _coarser(case: SeededPlan, tuples: int) -> SeededPlan:
    """Return the case with a trigger that makes few enough micro-batches of so many tuples."""
    trigger = EveryTuples(ceil(tuples / BATCHES_MAX))
    return SeededPlan(replace(case.plan, trigger=trigger), case.seed)


# ------------------------------------------------------------------------------------- assertions


def assert_same(seen: ClusterRun) -> None:
    """Assert that Spark's trace equals that of the simulation."""
    room, run = seen.room, seen.run
    verdict, _ = compare_traces(room, run.workload, run.trace, seen.trace, room.step_types)
    assert_claims_hold(seen, verdict)


def assert_claims_hold(seen: ClusterRun, *verdicts: Verdict) -> None:
    """Assert that no claim is broken on Spark's own trace."""
    if broken := broken_sentences(verdicts):
        seen.fail(broken)


def assert_promise_kept(seen: ClusterRun, promise: Promise) -> None:
    """Assert that Spark's own trace keeps a promise."""
    if broken := promise(seen.run.workload, seen.trace):
        seen.fail(broken, promise)


# ---------------------------------------------------------------------------------- recomputation


def plain_steps(trace: Trace) -> Steps:
    """Return the steps of a trace as plain data, by their kind."""
    found: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for step in trace.steps():
        found[kind_of(type(step))].append(step._asdict())
    return found


def list_wrong(
    wrong: Callable[[Mapping[str, Any], Steps], list[str]], workload: Workload, trace: Trace
) -> list[str]:
    """Judge a trace by an oracle of :mod:`properties.oracles.promises`."""
    return wrong(workload.to_json(), plain_steps(trace))


list_wrong_answers = partial(list_wrong, wrong_windows)
"""List the differences between first and last answers, and a dictionary of all windows."""


def list_wrong_routes(workload: Workload, trace: Trace) -> list[str]:
    """List the differences between routes and answers, and a router by definition."""
    return wrong_routes(Router(workload.to_json()), plain_steps(trace))


def routes_of(trace: Trace) -> dict[int, int]:
    """Return the instance of each arrival, by its number."""
    return {step.seq: step.instance for step in trace.of(Route)}
