"""Room ``slack`` as the command line and the tests know it."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from model.checking.claims import Outcome, Verdict
from model.slack import make_system
from model.slack.claims import judge
from model.slack.identity import IDENTITY
from model.slack.scopes import SCOPES, explore
from model.slack.variants import VARIANTS
from model.vocabulary import SlackConfig, System, Trace, Workload
from model.vocabulary.slack import (
    WORDS,
    Correction,
    Final,
    Judged,
    Late,
    Progress,
    Rejected,
    Result,
)
from properties.errors import counted
from properties.rooms import Case, Explorer, Figure, Figures, JudgedCase, Room
from properties.slack import queries
from properties.slack.errata import ERRATA
from properties.slack.remarks import remarks
from properties.windows.cases import PREDICTOR, Agreement, cases
from properties.windows.limits import refuse_settings, refuse_workload
from sim.kernel.plan import Plan
from sim.slack import TimedRun, from_settings
from sim.slack import room as timed
from sim.slack.settings import DEFAULTS

GUARD = "something was late"


def spark() -> System:
    """The Spark pipeline, in the session that is running."""
    # Imported here, for it takes a second that nothing else on the command line needs.
    from spark_impl.slack import make_system as make_pipeline

    return make_pipeline()


def in_process(workload: Workload) -> Trace:
    """The state operator of the Spark pipeline, without Spark."""
    from spark_impl.slack.system import run_in_process

    return run_in_process(workload)


def figures(seen: JudgedCase) -> Figures:
    """What happened in a run, and how many windows these kinds of steps let one compare."""
    trace, step_types = seen.expected, seen.step_types
    final = trace.of(Final)
    tuples = sum(answer.n for answer in final)
    at_first = sum(result.n_rcv for result in trace.of(Result))
    windows = (
        len(final) if Final in step_types else len(trace.of(Result)) if Result in step_types else 0
    )
    return {
        "compared": windows,
        "late": len(trace.of(Late)),
        "corrections": len(trace.of(Correction)),
        "coverage_before": at_first / tuples if tuples else 1.0,
    }


SHOWN = (
    Figure("compared", "windows"),
    Figure("late", "late\npairs"),
    Figure("corrections", "correc-\ntions"),
    Figure("coverage_before", "coverage\nbefore", ".2%"),
)


def summarise_agreement(cases: Sequence[Figures]) -> str:
    """Windows and late pairs of all cases together."""
    windows, late = (sum(each[name] or 0 for each in cases) for name in ("compared", "late"))
    return f"{windows:,} windows, and every one of {late:,} late pairs is accounted for"


def guard(case: Case, figures: Figures) -> Verdict:
    """Without a late pair and a correction, nothing that matters was compared."""
    late, corrections = int(figures["late"] or 0), int(figures["corrections"] or 0)
    if late and corrections:
        made = counted(corrections, "correction")
        sentence = f"late were {counted(late, 'pair')}, and there were {made}"
        return Verdict(GUARD, Outcome.HOLDS, sentence)
    if case.in_order:
        sentence = (
            f"{case.input} is in order, so nothing can be late: that puts nothing to the test"
        )
        return Verdict(GUARD, Outcome.UNDETERMINED, sentence)
    sentence = f"nothing was late in {case.input}: the cases that matter never came up"
    return Verdict(GUARD, Outcome.UNDETERMINED, sentence)


EXPLORER = Explorer(
    scopes=tuple(SCOPES),
    everyday=("conformal", "pd", "small", "redelivery"),
    variants=VARIANTS,
    explore=explore,
)


def simulate(settings: Mapping[str, str], seed: int) -> TimedRun:
    """One timed run."""
    refuse_settings(DEFAULTS, settings)
    return from_settings(settings, seed)


def simulate_plan(plan: Plan, config: Mapping[str, Any], seed: int) -> TimedRun:
    """Run a plan and the query of a workload."""
    return timed.simulate(plan, SlackConfig.from_json(config), seed)


def plot(run: TimedRun, path: Path) -> None:
    """The run over time, as SVG."""
    # Imported here, for matplotlib takes a second that nothing else on the command line needs.
    from sim.slack.figures import plot_run

    plot_run(run, path)


ROOM = Room(
    name="slack",
    step_types=WORDS,
    add_options=queries.add_options,
    cases=partial(cases, "slack", queries.queries),
    reference=make_system,
    spark=spark,
    slots=lambda _: 2,
    in_process=in_process,
    in_process_step_types=(Result, Late, Judged, Rejected, Progress),
    compare=Agreement(WORDS, IDENTITY).compare,
    check=judge,
    refuse=partial(refuse_workload, SlackConfig.from_json),
    figures=figures,
    shown=SHOWN,
    summarise_agreement=summarise_agreement,
    guard=guard,
    remarks=lambda seen: remarks(seen.case, seen.observed),
    explorer=EXPLORER,
    simulate=simulate,
    simulate_plan=simulate_plan,
    replay=timed.replay,
    predictor=PREDICTOR,
    plot=plot,
    errata=ERRATA,
)
