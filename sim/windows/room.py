"""Timed runs of windowed rooms: a plan, a query and a seed in; workload, trace and figures out."""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from model.vocabulary.windows import WindowQuery
from model.windows.machine import Upstream
from sim.kernel.plan import Plan
from sim.kernel.recorder import Series, Summary
from sim.kernel.run import TimedRun, run
from sim.timed_figures import Panel, PanelLine, RunPlot
from sim.timed_room import workload_of
from sim.windows.cluster import WindowCluster
from sim.windows.figures import series_of, summary_of
from sim.windows.machine import MachineOf
from sim.windows.observations import FinishedRun, Observations, observe

QueryT = TypeVar("QueryT", bound=WindowQuery)


class WindowWords(NamedTuple, Generic[QueryT]):
    """Names and figures in which windowed rooms differ."""

    room: str
    wait: str
    """Name of the tasks' wait in series and summary."""
    share: str
    """Name of the share of the longest wait in series."""
    describe: Callable[[QueryT], Summary]
    """Returns the summary's figures of the query."""
    more_series: Callable[[Observations], Series] = lambda _: {}
    more_figures: Callable[[Observations], Summary] = lambda _: {}


def simulate_windows(
    words: WindowWords[QueryT],
    plan: Plan,
    config: QueryT,
    seed: int,
    machine: MachineOf[QueryT],
    upstream: Upstream | None = None,
) -> TimedRun:
    """Run a plan through a windowed room until everything is over.

    Arrivals and the work of each tuple depend on the plan and the seed and not on ``config``: two
    queries meet the same. ``machine`` makes the machine of each task; ``upstream`` is the operators
    before the windows, if there are any. The same seed gives the same run. Raises ``ValueError``
    with one sentence that names the offending value.
    """
    machines = [machine(config, number) for number in range(config.tasks)]
    cluster, arrived = run(
        plan,
        seed,
        lambda env, seeds: WindowCluster[QueryT](env, seeds, plan, config, machines, upstream),
    )
    observed = observe(FinishedRun(cluster, arrived))
    head: Summary = {"input": plan.name, "seed": seed, **words.describe(config)}
    return TimedRun(
        plan,
        workload_of(words.room, plan, config, seed, arrived, cluster.kills()),
        cluster.trace(),
        {**series_of(observed, words.wait, words.share), **words.more_series(observed)},
        {**head, **summary_of(observed, words.wait), **words.more_figures(observed)},
    )


ERRORS = Panel(
    "Error, mean over all windows answered so far",
    "relative error (%)",
    (
        PanelLine("first_error", "first answers", 0.01),
        PanelLine("current_error", "current answers,\ncorrected from history", 0.01),
    ),
)


def window_plot(
    wait: str, label: str, describe: Callable[[Summary], str], *panels: Panel
) -> RunPlot:
    """Return how runs of a windowed room are drawn; ``describe`` returns the title's second line.

    ``wait`` is the name of the tasks' wait, and ``label`` that of its line.
    """

    def title(timed: TimedRun) -> str:
        summary = timed.summary
        tasks = "1 task" if summary["tasks"] == 1 else f"{summary['tasks']} tasks"
        return f"{summary['input']}\n{describe(summary)}, {tasks}, seed {summary['seed']}"

    latency = {
        "latency_us": "tuple's arrival\nto first answer",
        "window_latency_us": "window's end\nto first answer",
    }
    return RunPlot(title, (*panels, ERRORS), latency, {"watermark_lag_us": "lag", wait: label})
