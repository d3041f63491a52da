"""Packs of drawn clusters: simulated by SimPy, run on Spark, and compared.

Rules of this file:

* Hypothesis draws whole packs, so that it owns seeds, examples and the line that reproduces them.
  It does not shrink: a pack takes seconds on Spark. A cluster that fails is made smaller in
  process, confirmed on Spark and stored with its plan (``properties/witness.py``).
* What counts as reached was observed on Spark's own trace.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from model.claims import Verdict
from model.vocabulary import Trace
from properties import clusters, counterexamples
from properties.clusters import Shape
from properties.counterexamples import Simulated
from properties.judge import agree, broken_sentences
from properties.on_spark import run_on_spark
from properties.plans import Case
from properties.rooms import Room, room
from properties.systems import SPARK
from properties.witness import Trial
from sim.kernel.run import Run

TestT = TypeVar("TestT", bound=Callable[..., None])
SCALES: Mapping[str, float] = {"dev": 0.25, "ci": 1.0, "nightly": 16.0}
"""How many packs and long streams a profile has for each that ``ci`` has."""
SHOWN_SENTENCES = 8


def scaled(number: int) -> int:
    """Return a number of profile ``ci`` for the profile in force, at least 1."""
    scale = SCALES.get(settings.get_current_profile_name(), SCALES["dev"])
    return max(1, round(number * scale))


# ----------------------------------------------------------------------------------------- packs


class Pack(NamedTuple):
    """Clusters of one room that run together, each with its query."""

    room: str
    configs: tuple[Any, ...]
    cases: tuple[Case, ...]

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
    """Draw ``size`` clusters, a quarter of them in profile ``dev``, with one query or one each."""
    n = min(size, scaled(size))
    chosen = [draw(configs)] * n if alike else [draw(configs) for _ in range(n)]
    cases = [draw(clusters.cases(shape(config))) for config in chosen]
    return Pack(name, tuple(chosen), tuple(cases))


class Seen(NamedTuple):
    """One cluster: what the simulation did, and what Spark did with the same workload."""

    room: Room
    given: Simulated
    run: Run
    trace: Trace
    """Spark's own."""

    def fail(self, sentences: Sequence[str]) -> None:
        """Fail with a smaller cluster that shows the same, stored for ``straggler replay``."""
        trial = Trial(self.room, self.room.spark(), SPARK, self.room.words)
        report = trial.report_cluster(self.given, counterexamples.FOLDER)
        shown = sentences[:SHOWN_SENTENCES]
        pytest.fail("\n".join([*shown, "", "The smallest like it, alone:", *report]), pytrace=False)


@dataclass(frozen=True, slots=True)
class Observed:
    """A pack that was simulated, and run on Spark."""

    seen: tuple[Seen, ...]
    """One element a cluster."""
    shared: Trace
    """Steps of Spark that belong to no single cluster: the protocol of a chain that all share."""
    kills: int
    """How often the query of the pack was killed."""


def observe(spark: SparkSession, pack: Pack) -> Observed:
    """Simulate a pack, then run its workloads on Spark."""
    of_room = room(pack.room)
    given = [
        Simulated(of_room.name, config.to_json(), case)
        for config, case in zip(pack.configs, pack.cases, strict=True)
    ]
    runs = {
        f"cluster-{n}": of_room.simulate_plan(each.case.plan, each.config, each.case.seed)
        for n, each in enumerate(given)
    }
    ran = run_on_spark(spark, {name: run.workload.with_(name=name) for name, run in runs.items()})
    seen = [
        Seen(of_room, each, run, ran.traces[name])
        for each, (name, run) in zip(given, runs.items(), strict=True)
    ]
    return Observed(tuple(seen), ran.shared, ran.kills)


# ------------------------------------------------------------------------------------- assertions


def same(seen: Seen, words: Collection[type] | None = None) -> None:
    """Assert that Spark did what the simulation did."""
    chosen = seen.room.words if words is None else words
    verdict, wrong = agree(seen.room, seen.run.workload, seen.run.trace, seen.trace, chosen)
    if wrong:
        seen.fail(broken_sentences([verdict]))


def holds(seen: Seen, *verdicts: Verdict) -> None:
    """Assert that no claim is broken on Spark's own trace."""
    broken = broken_sentences(verdicts)
    if broken:
        seen.fail(broken)


def claims(seen: Seen, *names: str) -> tuple[Verdict, ...]:
    """Judge Spark's own trace; return the verdicts of these claims, or of all."""
    verdicts = seen.room.check(seen.run.workload, seen.trace).verdicts
    return tuple([each for each in verdicts if not names or each.claim in names])


def promise(packs: int, *needed: str) -> Callable[[TestT], TestT]:
    """Let Hypothesis draw so many packs, and require that the needed cases occurred.

    A promise that was never put to the test is undetermined, which is no pass.
    """
    effort = settings(
        max_examples=scaled(packs),
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
        report_multiple_bugs=False,
    )

    def decorate(test: TestT) -> TestT:
        return pytest.mark.reaches(*needed)(effort(test))  # type: ignore[no-any-return]

    return decorate
