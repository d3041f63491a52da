"""Packs of drawn clusters: simulated by SimPy, run on Spark, and compared.

Rules of this file:

* Hypothesis draws whole packs, so it owns seeds, examples and the line that reproduces them. It
  does not shrink, because a pack takes seconds on Spark. The workload of a cluster that fails is
  shrunk in process, confirmed on Spark and stored (``straggler/judging/trial``). A promise about
  many clusters together, such as a mean, is a plain assertion and stores nothing.
* A case counts as reached if Spark's own trace shows it, if Spark's side reports it (kills), or if
  it is a fact of the input: clusters, tuples, copies of tuples, new times of instances.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from model.checking.claims import Verdict
from model.vocabulary import Trace, Workload
from model.vocabulary.grouping import Route
from model.vocabulary.trace import kind_of
from properties.on_spark import run_on_spark
from properties.oracles.promises import Steps, wrong_routes, wrong_windows
from properties.oracles.router import Router
from sim.kernel.run import TimedRun
from straggler.judging import counterexamples
from straggler.judging.judge import broken_sentences, compare_traces
from straggler.judging.levels import Scope
from straggler.judging.systems import SPARK
from straggler.judging.trial import Promise, Trial
from straggler.rooms import Room, find_room
from straggler.strategies.packs import ClusterPack, simulate_case

SHOWN_SENTENCES = 8


def fail_with(sentences: Sequence[str], report: Sequence[str]) -> None:
    """Fail the test with the first sentences, and a report on the smallest failure like it."""
    shown = sentences[:SHOWN_SENTENCES]
    pytest.fail("\n".join([*shown, "", "The smallest like it, alone:", *report]), pytrace=False)


class ClusterRun(NamedTuple):
    """One cluster: the run of the simulation, and Spark's trace of the same workload."""

    room: Room
    run: TimedRun
    trace: Trace
    """Spark's own trace."""

    def fail(self, sentences: Sequence[str], promise: Promise = lambda *_: ()) -> None:
        """Fail the test with the cluster; store a smaller workload for ``straggler replay``."""
        trial = Trial(Scope.of(self.room), self.room.spark(), SPARK, promise=promise)
        cluster = [f"The cluster: {self.run.plan!r}", *sentences]
        fail_with(cluster, trial.report(self.run.workload, counterexamples.FOLDER))


Simulated = Mapping[str, TimedRun]
"""Runs of the clusters of a pack, by a name of each."""


class PackRun(NamedTuple):
    """A pack that was simulated and run on Spark."""

    seen: tuple[ClusterRun, ...]
    """Runs of the single clusters."""
    kills: Sequence[int]
    """Micro-batches in which the query of the pack was killed."""


def run_packs(
    spark: SparkSession, *packs: ClusterPack, kills: int = 0, **reading: bool
) -> Iterator[PackRun]:
    """Simulate packs, and run them on Spark side by side, because a query waits half of its time.

    Spark runs a pack while the next ones are simulated, and while the first ones are judged. The
    query of a pack is killed at most ``kills`` times; ``reading`` is for :func:`run_on_spark`.
    """
    with ThreadPoolExecutor(len(packs)) as pool:
        run = partial(_run_pack, spark, kills, reading)
        running = [pool.submit(run, pack, simulate(pack)) for pack in packs]
        for each in running:
            yield each.result()


def _run_pack(
    spark: SparkSession,
    kills: int,
    reading: Mapping[str, bool],
    pack: ClusterPack,
    simulated: Simulated,
) -> PackRun:
    room = find_room(pack.room)
    workloads = {name: run.workload.with_(name=name) for name, run in simulated.items()}
    traces, killed = run_on_spark(spark, workloads, kills, **reading)
    seen = tuple([ClusterRun(room, run, traces[name]) for name, run in simulated.items()])
    return PackRun(seen, killed)


def simulate(pack: ClusterPack) -> Simulated:
    """Simulate the clusters of a pack; return their runs, by a name of each."""
    return {
        f"cluster-{n}": simulate_case(pack.room, config, case)
        for n, (config, case) in enumerate(zip(pack.configs, pack.cases, strict=True))
    }


# ------------------------------------------------------------------------------------- assertions


def assert_equals_simulation(seen: ClusterRun, *unread: type) -> None:
    """Assert that Spark's trace equals that of the simulation, but for types that were not read."""
    room, run = seen.room, seen.run
    kept = [word for word in room.step_types if word not in unread]
    verdict, _ = compare_traces(room, run.workload, run.trace, seen.trace, kept)
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
