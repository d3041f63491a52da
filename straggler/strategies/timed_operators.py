"""Operators of the Spark side in simulated time, each on clusters that are drawn for it.

Rules of this file:

* A cluster is run twice: by the model's machine and by Spark's. Both are given the same plan.
* Arrivals do not depend on the machine that runs, unless full workers shed tuples; nor do the
  decisions of a chain that follows its load, unless messages take another time. In these cases the
  model is given the arrivals and the decisions of Spark's operator.
* Only what the operator records in process is compared; claims are judged on its own trace.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from hypothesis import strategies as st

from model.vocabulary import Trace, Workload
from model.vocabulary.grouping import Heavy
from model.vocabulary.join import Receive
from model.vocabulary.windows import Late, Rejected
from sim import grouping, join, script, slack, watermark
from sim.kernel.run import TimedRun
from spark_impl.slack import SLACK
from spark_impl.watermark import WATERMARK
from spark_impl.windows.room import WindowRoom
from straggler.judging.judge import broken_sentences
from straggler.judging.trial import SHOWN_SENTENCES
from straggler.rooms import find_room
from straggler.rooms.grouping.spark_machine import SparkMachine as Routers
from straggler.rooms.join.spark_machine import SparkMachine as Chain
from straggler.rooms.script.spark_machine import SparkMachine as Scripts
from straggler.rooms.windows.spark_machine import SparkMachine as Task
from straggler.strategies import grouping as routers
from straggler.strategies.scales import count_scales
from straggler.strategies.streams import configs as slack_configs
from straggler.strategies.timed_cases import TimedCase
from straggler.strategies.troubled import chains, scripts, troubled, windowed
from straggler.strategies.watermark import configs as watermark_configs


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """The part of a room's Spark side that runs in simulated time."""

    name: str
    calm: Callable[[str | None], st.SearchStrategy[TimedCase[Any]]]
    """Draws a cluster in a region, or in any, before trouble is added."""
    simulate: Callable[..., TimedRun]
    machine: Callable[..., Any]
    """Constructor of the Spark side's machine."""
    figures: Mapping[str, str]
    """Entry of a run's summary that counts an interesting case, by the name of the case."""
    counts: Callable[[TimedRun], Mapping[str, int]] = lambda _run: {}
    """Count the other interesting cases of the room in a run, by name."""

    def drawn_in(self, region: str | None) -> st.SearchStrategy[TimedCase[Any]]:
        """Draw a cluster in a region, or in any."""
        return troubled(self.calm(region), region)

    def broken(
        self, drawn: TimedCase[Any], count: Callable[[Mapping[str, int]], object] = len
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
        difference = room.compare(workload, trace, observed.trace, step_types, ())
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


def report(operator: Operator, drawn: TimedCase[Any]) -> str:
    """Describe a cluster on which an operator fails, as Python that builds it again."""
    lines = [
        f"In room {operator.name}, Spark's operator does not do what the model does:",
        *operator.broken(drawn)[:SHOWN_SENTENCES],
        f"The query is {drawn.config}, the seed {drawn.timing.seed}, and the cluster:",
        repr(drawn.timing.plan),
    ]
    return "\n".join(lines)


# ------------------------------------------------------------------------------- what has to occur


def _in_windows(run: TimedRun) -> dict[str, int]:
    return {
        "late pairs": len(run.trace.of(Late)),
        "rejected arrivals": len(run.trace.of(Rejected)),
        **count_scales(run.workload),
    }


def _in_grouping(run: TimedRun) -> dict[str, int]:
    return {"rebalances": int(run.summary["windows"]) - 1, "heavy keys": len(run.trace.of(Heavy))}


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
    return Operator(room.name, partial(windowed, configs()), run, task, SERVED_AGAIN, _in_windows)


OPERATORS: Mapping[str, Operator] = {
    operator.name: operator
    for operator in (
        _windows_of(SLACK, slack.simulate, slack_configs),
        _windows_of(WATERMARK, watermark.simulate, watermark_configs),
        Operator("join", chains, join.simulate, Chain, OF_JOIN, _in_join),
        Operator(
            "grouping", routers.timed_cases, grouping.simulate, Routers, SERVED_AGAIN, _in_grouping
        ),
        Operator("script", scripts, script.simulate, Scripts, OF_SCRIPTS),
    )
}
"""Operator of each room, by its name."""
