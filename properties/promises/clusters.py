"""Packs of drawn clusters: simulated by SimPy, run on Spark, and compared.

Rules of this file:

* Hypothesis draws whole packs, so that it owns seeds, examples and the line that reproduces them.
  It does not shrink: a pack takes seconds on Spark. A cluster that fails is made smaller in
  process, confirmed on Spark and stored with its plan (``promises/witness``). A promise about
  many clusters together, such as a mean, is a plain assertion and stores nothing.
* What counts as reached was observed on Spark's own trace, or reported by its side as done (kills),
  or is a fact of what it was given: clusters, tuples, their copies, new times of instances.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from typing import Any, NamedTuple, TypeVar

import pytest
from hypothesis import Phase, assume, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from model.checking.claims import Verdict
from model.vocabulary import Trace, Workload
from model.vocabulary.answers import Final
from model.vocabulary.join import STREAMS, Match, Rejected
from properties.generators import clusters
from properties.generators.clusters import Shape
from properties.judging import counterexamples
from properties.judging.counterexamples import SimulatedCluster
from properties.judging.judge import broken_sentences, compare_traces
from properties.judging.plan_counterexamples import SeededPlan
from properties.judging.systems import SPARK
from properties.promises.on_spark import run_on_spark
from properties.promises.recomputation import Delivery, Windows, joined_pairs, window_aggregates
from properties.promises.witness import Promise, Trial
from properties.rooms import Room, find_room
from sim.kernel.run import TimedRun
from sim.kernel.trigger import EveryTuples

TestT = TypeVar("TestT", bound=Callable[..., None])
ValueT = TypeVar("ValueT")
SCALES: Mapping[str, float] = {"dev": 0.125, "ci": 1.0, "nightly": 16.0}
"""How many packs and long streams a profile has for each that ``ci`` has."""
CLUSTERS_MIN = 3
"""Of a pack: with fewer, what it is about may not occur."""
BATCHES_MAX = 3
"""Of a cluster: micro-batches of Spark take longer than what is in them."""
SHOWN_SENTENCES = 8
PATIENCE_S = 600
"""Of a test in profile ``ci``, on a machine that has other things to do."""


def scaled(number: int) -> int:
    """Return a number of profile ``ci`` for the profile in force, at least 1."""
    scale = SCALES.get(settings.get_current_profile_name(), SCALES["dev"])
    return max(1, round(number * scale))


def of_profile(values: Sequence[ValueT]) -> Sequence[ValueT]:
    """Return those of the values that the profile in force has time for, the first ones."""
    return values[: min(len(values), scaled(len(values)))]


# ----------------------------------------------------------------------------------------- packs


class Pack(NamedTuple):
    """Clusters of one room that run together, each with its query."""

    room: str
    configs: tuple[Any, ...]
    cases: tuple[SeededPlan, ...]

    def __repr__(self) -> str:
        """Return a line, where the plans would fill pages."""
        return f"<{len(self.cases)} clusters for {self.configs[0]}>"


@st.composite
def packs(
    draw: st.DrawFn,
    name: str,
    size: int,
    configs: st.SearchStrategy[Any],
    shape: Callable[[Any], Shape],
    *,
    alike: bool = True,
) -> Pack:
    """Draw ``size`` clusters, fewer in profile ``dev``, with one query for all or one each."""
    # Hypothesis tries what is simplest first: clusters that are alike, and nothing goes wrong.
    assume(draw(st.integers(0, 7)))
    n = min(size, max(CLUSTERS_MIN, scaled(size)))
    chosen = [draw(configs)] * n if alike else [draw(configs) for _ in range(n)]
    cases = [draw(clusters.cases(shape(config))) for config in chosen]
    return Pack(name, tuple(chosen), tuple(cases))


class Seen(NamedTuple):
    """One cluster: what the simulation did, and what Spark did with the same workload."""

    room: Room
    given: SimulatedCluster
    run: TimedRun
    trace: Trace
    """Spark's own."""

    def fail(self, sentences: Sequence[str], promise: Promise = lambda *_: ()) -> None:
        """Fail with a smaller cluster that shows the same, stored for ``straggler replay``."""
        trial = Trial(self.room, self.room.spark(), SPARK, self.room.step_types, promise=promise)
        report = trial.report_cluster(self.given, counterexamples.FOLDER, sentences)
        shown = sentences[:SHOWN_SENTENCES]
        pytest.fail("\n".join([*shown, "", "The smallest like it, alone:", *report]), pytrace=False)


@dataclass(frozen=True, slots=True)
class Observed:
    """A pack that was simulated, and run on Spark."""

    seen: tuple[Seen, ...]
    """One element a cluster."""
    shared: Trace
    """Steps of Spark that belong to no single cluster: the protocol of a chain that all share."""
    kills: Sequence[int]
    """Micro-batches in which the query of the pack was killed."""


def observe(spark: SparkSession, *packs: Pack, kills: int = 0) -> list[Observed]:
    """Simulate packs, then run them on Spark side by side: a query waits half of its time.

    The query of a pack is killed at most ``kills`` times, once in profile ``dev``.
    """
    struck = min(kills, scaled(kills))
    with ThreadPoolExecutor(len(packs)) as pool:
        return list(pool.map(partial(_observed, spark, kills=struck), packs))


def _observed(spark: SparkSession, pack: Pack, kills: int) -> Observed:
    of_room = find_room(pack.room)
    simulated = {
        f"cluster-{n}": _simulated(of_room, config.to_json(), case)
        for n, (config, case) in enumerate(zip(pack.configs, pack.cases, strict=True))
    }
    workloads = {name: run.workload.with_(name=name) for name, (_, run) in simulated.items()}
    ran = run_on_spark(spark, workloads, kills)
    seen = [Seen(of_room, given, run, ran.traces[name]) for name, (given, run) in simulated.items()]
    return Observed(tuple(seen), ran.shared, ran.kills)


def _simulated(
    of_room: Room, config: Mapping[str, Any], case: SeededPlan
) -> tuple[SimulatedCluster, TimedRun]:
    """Simulate a cluster; where its trigger makes too many micro-batches, with a coarser one."""
    run = of_room.simulate_plan(case.plan, config, case.seed)
    if len(list(run.workload.batches())) > BATCHES_MAX:
        trigger = EveryTuples(ceil(len(run.workload.arrivals) / BATCHES_MAX))
        case = SeededPlan(replace(case.plan, trigger=trigger), case.seed)
        run = of_room.simulate_plan(case.plan, config, case.seed)
    return SimulatedCluster(of_room.name, config, case), run


# ------------------------------------------------------------------------------------- assertions


def same(seen: Seen, step_types: Collection[type] | None = None) -> None:
    """Assert that Spark did what the simulation did."""
    chosen = seen.room.step_types if step_types is None else step_types
    verdict, wrong = compare_traces(
        seen.room, seen.run.workload, seen.run.trace, seen.trace, chosen
    )
    if wrong:
        seen.fail(broken_sentences([verdict]))


def holds(seen: Seen, *verdicts: Verdict) -> None:
    """Assert that no claim is broken on Spark's own trace."""
    broken = broken_sentences(verdicts)
    if broken:
        seen.fail(broken)


def keeps(seen: Seen, promise: Promise) -> None:
    """Assert that a promise is kept by Spark's own trace, and by the simulation's."""
    for trace in (seen.trace, seen.run.trace):
        if broken := promise(seen.run.workload, trace):
            seen.fail(broken, promise)


def claims(seen: Seen, *names: str) -> tuple[Verdict, ...]:
    """Judge Spark's own trace; return the verdicts of these claims, or of all."""
    verdicts = seen.room.check(seen.run.workload, seen.trace).verdicts
    return tuple([each for each in verdicts if not names or each.claim in names])


# ---------------------------------------------------------------------------------- recomputation


def pairs_found_wrongly(workload: Workload, trace: Trace) -> list[str]:
    """Compare the matches of admitted tuples with brute force: each pair once for each query."""
    rejected = {step.seq for step in trace.of(Rejected)}
    admitted = [event for event in workload.arrivals if event.seq not in rejected]
    r, s = ([Delivery(*e[1:5]) for e in admitted if e.stream == name] for name in STREAMS)
    window_us, asked = workload.config["window_us"], workload.config["queries"]
    expected = Counter(
        (query, *pair)
        for query, predicate in asked
        for pair in joined_pairs(r, s, window_us, predicate)
    )
    return _differences(expected, Counter(match[:3] for match in trace.of(Match)))


def answers_that_end_wrong(workload: Workload, trace: Trace) -> list[str]:
    """Compare final answers with windows aggregated anew: each window once, with all it has."""
    finals = Counter(((f.key, f.start_us), (f.value, f.n)) for f in trace.of(Final))
    return _differences(Counter(exact_windows(workload).items()), finals)


def exact_windows(workload: Workload) -> Windows:
    """Aggregate the windows of a query anew, in plain Python."""
    config = workload.config
    tuples = (Delivery(*event[1:5]) for event in workload.arrivals)
    return window_aggregates(tuples, config["aggregate"], config["size_us"], config["slide_us"])


def _differences(expected: Counter[Any], found: Counter[Any]) -> list[str]:
    return [
        f"{each} was found {found[each]} times, and recomputed {expected[each]} times."
        for each in sorted((expected - found) | (found - expected))
    ]


# ------------------------------------------------------------------------------------------ tests


def promise(packs: int, *needed: str) -> Callable[[TestT], TestT]:
    """Let Hypothesis draw so many packs, and require that the needed cases occurred.

    A promise that was never put to the test is undetermined, which is no pass; in profile ``dev``,
    with its few clusters, it is only told.
    """
    effort = settings(
        max_examples=scaled(packs),
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
        report_multiple_bugs=False,
    )

    def decorate(test: TestT) -> TestT:
        patient = pytest.mark.timeout(max(PATIENCE_S, scaled(PATIENCE_S)))
        return pytest.mark.reaches(*needed)(patient(effort(test)))  # type: ignore[no-any-return]

    return decorate
