"""Room ``watermark`` as the command line and the tests know it."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from model.checking.claims import Outcome, Verdict
from model.vocabulary import System, Trace, WatermarkConfig, Workload
from model.vocabulary.answers import Final, Late, Rejected, Result
from model.vocabulary.watermark import WORDS, Clock
from model.watermark import make_system
from model.watermark.claims import judge
from model.watermark.identity import IDENTITY
from model.watermark.scopes import SCOPES, explore
from model.watermark.variants import VARIANTS
from properties.errors import counted
from properties.rooms import Case, Explorer, Figure, Figures, JudgedCase, Room
from properties.watermark import queries
from properties.watermark.errata import ERRATA
from properties.windows.cases import PREDICTOR, Agreement, cases
from properties.windows.limits import refuse_settings
from sim.kernel.plan import Plan
from sim.watermark import DEFAULTS, TimedRun, from_settings
from sim.watermark import room as timed

GUARD = "the wait followed the disorder"
SECOND_US = 1_000_000


def spark() -> System:
    """The Spark pipeline, in the session that is running."""
    # Imported here, for it takes a second that nothing else on the command line needs.
    from spark_impl.watermark import make_system as make_pipeline

    return make_pipeline()


def in_process(workload: Workload) -> Trace:
    """The state operator of the Spark pipeline, without Spark."""
    from spark_impl.watermark import run_in_process

    return run_in_process(workload)


def figures(seen: JudgedCase) -> Figures:
    """What happened in the reference."""
    trace = seen.expected
    clocks, late = trace.of(Clock), len(trace.of(Late))
    received = sum(result.n_rcv for result in trace.of(Result))
    waits = {clock.wait_us for clock in clocks}
    waited_us = fmean(clock.t_max_us - clock.wm_us for clock in clocks) if clocks else None
    windows = len(trace.of(Final)) if Final in seen.step_types else len(trace.of(Result))
    return {
        "compared": windows,
        "clocks": len(clocks),
        "waits": len(waits),
        "late": late,
        "coverage": received / (received + late) if received + late else 1.0,
        "waited_s": None if waited_us is None else waited_us / SECOND_US,
    }


SHOWN = (
    Figure("compared", "windows"),
    Figure("clocks", "clocks"),
    Figure("late", "late\npairs"),
    Figure("coverage", "coverage", ".2%"),
    Figure("waited_s", "mean\nwait, s", ",.3f"),
)


def summarise_agreement(cases: Sequence[Figures]) -> str:
    """Windows, clocks and late pairs of all cases together."""
    windows, clocks, late = (
        sum(each[name] or 0 for each in cases) for name in ("compared", "clocks", "late")
    )
    return (
        f"{windows:,} windows and {clocks:,} clocks, and every one of {late:,} late pairs is"
        " accounted for"
    )


def guard(case: Case, figures: Figures) -> Verdict:
    """Without disorder and different waits, any watermark would do.

    The first arrival of a task makes it wait in its own way: that alone is no other wait. Where
    only the devices together are out of order, what counts is that they are kept apart.
    """
    waits, late = int(figures["waits"] or 0), int(figures["late"] or 0)
    arrivals = case.workload.arrivals
    if case.workload.config.get("reading") == "fixed":
        why = "" if late else "nothing was late"
    elif all(one.event_time_us <= other.event_time_us for one, other in pairwise(arrivals)):
        why = "everything came in order"
    else:
        why = "" if waits > 1 else "the wait was the same all the time"
    if not why:
        sentence = (
            f"waits were of {counted(waits, 'length')}, and late were {counted(late, 'pair')}"
        )
        return Verdict(GUARD, Outcome.HOLDS, sentence)
    sentence = f"{why} in {case.input}: the cases that matter never came up"
    return Verdict(GUARD, Outcome.UNDETERMINED, sentence)


# --------------------------------------------------------------------------------------- wired up


EXPLORER = Explorer(
    scopes=tuple(SCOPES),
    everyday=("small", "scaled", "redelivery"),
    variants=VARIANTS,
    explore=explore,
)


def simulate(settings: Mapping[str, str], seed: int) -> TimedRun:
    """One timed run."""
    refuse_settings(DEFAULTS, settings)
    return from_settings(settings, seed)


def simulate_plan(plan: Plan, config: Mapping[str, Any], seed: int) -> TimedRun:
    """Run a plan and the query of a workload."""
    return timed.simulate(plan, WatermarkConfig.from_json(config), seed)


def plot(run: TimedRun, path: Path) -> None:
    """The run over time, as SVG."""
    # Imported here, for matplotlib takes a second that nothing else on the command line needs.
    from sim.watermark.figures import plot_run

    plot_run(run, path)


ROOM = Room(
    name="watermark",
    step_types=WORDS,
    add_options=queries.add_options,
    cases=partial(cases, "watermark", queries.queries),
    reference=make_system,
    spark=spark,
    slots=lambda _: 2,
    in_process=in_process,
    in_process_step_types=(Clock, Result, Late, Rejected),
    compare=Agreement(WORDS, IDENTITY).compare,
    check=judge,
    refuse=queries.refuse_workload,
    figures=figures,
    shown=SHOWN,
    summarise_agreement=summarise_agreement,
    guard=guard,
    remarks=lambda _: (),
    explorer=EXPLORER,
    simulate=simulate,
    simulate_plan=simulate_plan,
    replay=timed.replay,
    predictor=PREDICTOR,
    plot=plot,
    errata=ERRATA,
)
