"""Operators of the Spark side in simulated time, each on clusters that are drawn for it.

Rules of this file:

* A cluster is run twice: by the model's machine and by Spark's. Both are given the same plan.
* Arrivals do not depend on the machine that runs, unless full workers shed tuples; nor do the
  decisions of a chain that follows its load, unless messages take another time. In these cases the
  model is given the arrivals and the decisions of Spark's operator.
* Only what the operator records in process is compared; claims are judged on its own trace.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import inf
from typing import Any, NamedTuple

from hypothesis import strategies as st

from model.vocabulary import Trace, Workload
from model.vocabulary.grouping import Heavy
from model.vocabulary.join import Receive
from model.vocabulary.script.config import ScriptConfig
from model.vocabulary.script.tree import Arithmetic, Sensor, Statement, Window, Workflow
from model.vocabulary.windows import Late, Rejected
from properties.agreement import crowded
from properties.packs import SHOWN_SENTENCES
from properties.reached_cases import count_scales
from sim import grouping, join, script, slack, watermark
from sim.join.tuning import ChainTuning
from sim.kernel.faults import Duplicate, Fail
from sim.kernel.log import drop_later_disturbances, simulate_arrivals
from sim.kernel.plan import Plan
from sim.kernel.run import TimedRun
from sim.kernel.source import Source
from sim.kernel.trigger import At
from sim.script.host import ScriptTuning
from spark_impl.slack.query import SLACK
from spark_impl.watermark.query import WATERMARK
from spark_impl.windows.room import WindowRoom
from straggler.judging.judge import broken_sentences
from straggler.judging.plan_counterexamples import SeededPlan, describe, smallest
from straggler.rooms import find_room
from straggler.rooms.grouping.spark_machine import SparkMachine as Routers
from straggler.rooms.join.spark_machine import SparkMachine as Chain
from straggler.rooms.script.spark_machine import WAYS, SparkScripts
from straggler.rooms.windows.spark_machine import SparkMachine as Task
from straggler.strategies.grouping import replaying
from straggler.strategies.grouping import timed_cases as grouping_cases
from straggler.strategies.join import TimedCase as ChainCase
from straggler.strategies.join import clusters_of_chains
from straggler.strategies.scales import USUAL
from straggler.strategies.script import timed_cases as script_cases
from straggler.strategies.streams import UNIT_US, arrivals, timings
from straggler.strategies.streams import configs as slack_configs
from straggler.strategies.watermark import configs as watermark_configs

SECONDS_MAX = 20.0
"""Time limit for shrinking a cluster."""
CHAIN_EVENTS_MAX = 72
"""Most tuples of a chain, because a few chains of twice as many took half of all the time."""
SCALE_OF: Mapping[str | None, str] = {
    "redelivered": "wide identities",
    "bursty": "large values",
    "lossy": "years",
    "slow": "microseconds",
}
"""Scale of the streams of a windowed room in a region; others have the usual one."""


class Drawn(NamedTuple):
    """A query and the cluster that it runs on."""

    config: Any
    case: SeededPlan

    def __repr__(self) -> str:
        """Return one line, because the plan would fill a page."""
        return f"<cluster, seed {self.case.seed}, for {self.config}>"


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """The part of a room's Spark side that runs in simulated time."""

    name: str
    calm: Callable[[str | None], st.SearchStrategy[Drawn]]
    """Draws a cluster in a region, or in any, before trouble is added."""
    simulate: Callable[..., TimedRun]
    machine: Callable[..., Any]
    """Constructor of the Spark side's machine."""
    figures: Mapping[str, str]
    """Entry of a run's summary that counts an interesting case, by the name of the case."""
    counts: Callable[[TimedRun], Mapping[str, int]] = lambda _run: {}
    """Count the other interesting cases of the room in a run, by name."""

    @property
    def drawn(self) -> st.SearchStrategy[Drawn]:
        """Clusters of every region."""
        return self.drawn_in(None)

    def drawn_in(self, region: str | None) -> st.SearchStrategy[Drawn]:
        """Draw a cluster in a region, or in any."""
        return _troubled(self.calm(region), region)

    def broken(
        self, drawn: Drawn, count: Callable[[Mapping[str, int]], object] = len
    ) -> tuple[str, ...]:
        """Run model and operator; return sentences on the mistakes of the operator.

        ``count`` is called with the cases that Spark's operator met. Raise ``ValueError`` for an
        impossible cluster.
        """
        room, (config, (plan, seed)) = find_room(self.name), drawn
        expected = self.simulate(plan, config, seed)
        try:
            observed = self.simulate(plan, config, seed, machine=self.machine)
        except Exception as error:  # every error counts as a failure of the operator
            text = " ".join(str(error).split()) or "no message"
            return (f"the operator raised {type(error).__name__}: {text[:300]}",)
        count(self.reached(observed))
        workload, trace, step_types = observed.workload, expected.trace, room.in_process_step_types
        undetermined = room.undetermined_steps(plan)
        other = tuple(_differences(expected.workload, workload))
        is_shed = has_shed(expected) or has_shed(observed)
        decisions = [each.config.get("decisions") for each in (expected.workload, workload)]
        if (other and is_shed) or decisions[0] != decisions[1]:
            other = () if is_shed else other
            trace = room.reference()(workload)
            step_types = room.determined_steps(plan, step_types)
        difference = room.compare(workload, trace, observed.trace, step_types)
        judged = [step for step in observed.trace.steps() if type(step) not in undetermined]
        verdicts = room.check(workload, Trace(observed.trace.producer, judged)).verdicts
        return (*other, *difference.sentences, *broken_sentences(verdicts))

    def reached(self, run: TimedRun) -> dict[str, int]:
        """Count the interesting cases that occurred in a run."""
        return {
            "clusters": 1,
            "tuples": len(run.workload.arrivals),
            "crashes with state": sum(fault.at > 0 for fault in run.workload.faults),
            "messages sent again": int(run.summary.get("sent_again", 0)),
            "shed arrivals": has_shed(run),
            **{case: int(run.summary.get(entry, 0)) for case, entry in self.figures.items()},
            **self.counts(run),
        }


def has_shed(run: TimedRun) -> bool:
    """Return whether arrivals were shed."""
    return bool(run.summary.get("shed") or run.summary.get("shed_at_log"))


def _differences(expected: Workload, observed: Workload) -> Iterator[str]:
    """Yield sentences on differences between workloads, except for times of failures and decisions.

    The simulated controller decides, not the operator: it measures how long a machine takes. No
    claim judges decisions here, because the operator records no load in process.
    """
    for name in ("config", "cuts", "arrivals"):
        one, other = getattr(expected, name), getattr(observed, name)
        if name == "config":
            one, other = ({**each, "decisions": ()} for each in (one, other))
        if repr(one) != repr(other):  # NaN differs from itself, but its text does not
            yield f"the {name} of the workload are {str(other)[:200]}, expected {str(one)[:200]}"


@lru_cache(maxsize=16)  # Hypothesis runs a failing example several times
def report(operator: Operator, drawn: Drawn) -> str:
    """Shrink a cluster on which an operator fails, and describe it."""

    def fails(case: SeededPlan) -> bool:
        try:
            return bool(operator.broken(drawn._replace(case=case)))
        except ValueError:
            return False  # for example a fault of a relay that is gone

    small = drawn._replace(case=smallest(drawn.case, fails, SECONDS_MAX))
    lines = [
        f"In room {operator.name}, Spark's operator does not do what the model does:",
        *operator.broken(drawn)[:SHOWN_SENTENCES],
        "",
        "The smallest cluster like it:",
        *describe(small.case),
        f"Query {small.config}, {small.case.plan.tuning or 'usual tuning'}.",
        "There:",
        *operator.broken(small)[:SHOWN_SENTENCES],
    ]
    return "\n".join(lines)


# --------------------------------------------------------------------------------- what is drawn


@st.composite
def _windowed(draw: st.DrawFn, configs: st.SearchStrategy[Any], region: str | None) -> Drawn:
    """Draw a query and its cluster; some sources send tuples that the query refuses."""
    config = draw(configs)
    scale = SCALE_OF.get(region, USUAL)
    plan, seed = draw(timings(config, region, scale))
    if region == "calm" or (region is None and draw(st.booleans())):
        first, *others = draw(arrivals(config))
        plan = replaying([first._replace(value=inf), *others], plan)
    return Drawn(config, SeededPlan(plan, seed))


@st.composite
def _troubled(draw: st.DrawFn, calm: st.SearchStrategy[Drawn], region: str | None) -> Drawn:
    """Let workers fail soon after arrivals, when they have something to lose, and fill up soon."""
    config, (plan, seed) = draw(calm)
    if region == "slow" or draw(st.sampled_from([False, True, False])):
        plan = crowded(plan, "drop")
    workers, fails = _workers(config), []
    events = simulate_arrivals(plan, seed).events
    for _ in range(draw(st.sampled_from([2] if region == "failing" else [1, 0, 2]))):
        event = events[draw(st.integers(0, 15)) * (len(events) - 1) // 15] if events else None
        worker = f"worker-{draw(st.integers(0, 15)) % workers}"
        if event is not None:
            at_us = event.arrival_us - plan.epoch_us + UNIT_US // 2
            fails.append(Fail(worker, at_us, 4 * UNIT_US))
    return Drawn(config, SeededPlan(replace(plan, faults=(*plan.faults, *fails)), seed))


def _workers(config: Any) -> int:
    """Return the number of workers of a query, which rooms call by different names."""
    for name in ("workers", "tasks", "instances"):
        if hasattr(config, name):
            return int(getattr(config, name))
    raise TypeError(type(config))


def _with_tuning(plan: Plan, default: Any, **changes: object) -> Plan:
    return replace(plan, tuning=replace(plan.tuned(default), **changes))


@st.composite
def _scripts(draw: st.DrawFn, region: str | None) -> Drawn:
    """Draw scripts with a placement that the Spark side has; many workers read some results.

    A tuple comes again after the end of its micro-batch, so workers must remember identities.
    """
    config, (plan, seed) = draw(script_cases())
    # A machine of the harness gets the arrivals of its own sensors, and hears of no silence.
    config = replace(config, idle_after_us=None)
    if region == "late" or draw(st.sampled_from([False, True])):
        config = replace(config, workflows=(*config.workflows, _read_by_all(config)), workers=4)
        plan = _with_tuning(plan, ScriptTuning(), placement="by-unit")
    elif plan.tuned(ScriptTuning()).placement not in WAYS:
        plan = _with_tuning(plan, ScriptTuning(), placement="all-split")
    if isinstance(plan.trigger, At) and plan.trigger.cuts:
        cut = draw(st.sampled_from(plan.trigger.cuts))
        again = Duplicate("source-0", max(0, cut - 1), UNIT_US // 4)
        plan = replace(plan, faults=(*plan.faults, again))
    return Drawn(config, SeededPlan(plan, seed))


def _read_by_all(config: ScriptConfig) -> Workflow:
    """Return a workflow whose sums every worker with a sensor reads."""
    first, *others = [Sensor(name) for name, _ in config.sensors]
    sums = Window("sum", first, 4, 4)
    read = [Arithmetic("+", sums, other) for other in others]
    return Workflow("read by all", tuple([Statement(f"N{n}", each) for n, each in enumerate(read)]))


def _chain(drawn: ChainCase) -> Drawn:
    """Return a short cluster with few hints, and with a flush, so that every pair is due."""
    plan, seed = drawn.plan, drawn.seed
    rarely_us, each = 4 * UNIT_US, CHAIN_EVENTS_MAX // len(plan.sources)
    control = replace(plan.tuned(ChainTuning()).control, every_us=rarely_us)
    plan = _with_tuning(plan, ChainTuning(), control=control, hint_us=rarely_us)
    sources = [
        replace(source, events=min(source.events, each))
        for source in plan.sources
        if isinstance(source, Source)
    ]
    shorter = drop_later_disturbances(replace(plan, sources=tuple(sources), flush=True), seed)
    return Drawn(drawn.config, SeededPlan(shorter, seed))


# ------------------------------------------------------------------------------- what has to occur


def _in_windows(run: TimedRun) -> dict[str, int]:
    return {
        "late pairs": len(run.trace.of(Late)),
        "rejected arrivals": len(run.trace.of(Rejected)),
        **count_scales(run.workload),
    }


def _in_grouping(run: TimedRun) -> dict[str, int]:
    return {
        "rebalances": int(run.summary["windows"]) - 1,
        "heavy keys": len(run.trace.of(Heavy)),
    }


def _in_join(run: TimedRun) -> dict[str, int]:
    return {
        "copies met": sum(step.copies for step in run.trace.of(Receive)),
        "changes of the number of workers": run.summary["resized"] != "no",
    }


SERVED_AGAIN = {"tuples served again": "served_again"}
OF_JOIN = {
    "epochs redone": "failures",
    "messages that came again": "came_again",
    "rejected arrivals": "rejected",
}
OF_SCRIPTS = {
    **SERVED_AGAIN,
    "results sent between workers": "results_sent",
    "notices": "notices",
    "late tuples": "late",
}


def _windows_of(room: WindowRoom[Any], run: Callable[..., TimedRun], configs: Any) -> Operator:
    """Return the operator of a windowed room, given a function that returns queries."""
    task = partial(Task, room)
    return Operator(room.name, partial(_windowed, configs()), run, task, SERVED_AGAIN, _in_windows)


def _chains(region: str | None) -> st.SearchStrategy[Drawn]:
    return clusters_of_chains(region).map(_chain)


def _routers(region: str | None) -> st.SearchStrategy[Drawn]:
    return grouping_cases(region).map(lambda case: Drawn(*case))


OPERATORS: Mapping[str, Operator] = {
    operator.name: operator
    for operator in (
        _windows_of(SLACK, slack.simulate, slack_configs),
        _windows_of(WATERMARK, watermark.simulate, watermark_configs),
        Operator("join", _chains, join.simulate, Chain, OF_JOIN, _in_join),
        Operator("grouping", _routers, grouping.simulate, Routers, SERVED_AGAIN, _in_grouping),
        Operator("script", _scripts, script.simulate, SparkScripts, OF_SCRIPTS),
    )
}
"""Operator of each room, by its name."""
