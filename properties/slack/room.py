"""Room ``slack`` as the command line and the tests know it."""

import argparse
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from model import diff
from model.claims import Outcome, Verdict
from model.diff import Difference
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
from model.windows.evidence import has_exact_sums
from properties import inputs
from properties.errors import counted
from properties.rooms import Case, Explorer, Figure, Figures, Room, Seen, Skipped
from properties.slack import queries
from properties.slack.errata import ERRATA
from properties.slack.remarks import remarks
from properties.tables import Columns, cuts_into
from properties.window_limits import refuse_settings, refuse_workload
from properties.windowed import BATCHES
from sim.slack import Run, from_settings
from sim.slack.settings import DEFAULTS

DEFAULT_INPUTS = ("flights", "umts", "iot_umts")
GUARD = "something was late"
TOLERANCE = 1e-9


def cases(args: argparse.Namespace, columns: Columns) -> Iterator[Case | Skipped]:
    """One case for every query on every input that the options ask for."""
    for name in args.input or DEFAULT_INPUTS:
        asked_for = bool(args.input)
        if not asked_for and name in inputs.PUBLISHED and name not in inputs.recordings_by_name():
            yield Skipped(name, inputs.missing_recording(name))
            continue
        recording = inputs.load(name, args.seed, columns)
        cuts = cuts_into(len(recording.events), args.batches or BATCHES)
        in_order = recording.in_order
        for config, per in queries.queries(args, name, recording):
            queries.refuse_values(recording, config)
            title = queries.describe(config, per)
            workload = Workload(
                "slack",
                recording.events,
                config.to_json(),
                cuts,
                seed=args.seed,
                name=f"{recording.name}, {title}",
            )
            yield Case(recording.name, recording.label, title, workload, in_order)


def spark() -> System:
    """The Spark pipeline, in the session that is running."""
    # Imported here, for it takes a second that nothing else on the command line needs.
    from spark_impl.slack import make_system as make_pipeline

    return make_pipeline()


def in_process(workload: Workload) -> Trace:
    """The state operator of the Spark pipeline, without Spark."""
    from spark_impl.slack.system import run_in_process

    return run_in_process(workload)


def compare(
    workload: Workload, expected: Trace, observed: Trace, words: Collection[type]
) -> Difference:
    """Exactly, except where sums of the values are not exact themselves (docs/slack.md, 3)."""
    exact = has_exact_sums([event.value for event in workload.arrivals])
    chosen = [word for word in WORDS if word in words]
    tolerance = None if exact else TOLERANCE
    return diff.compare(expected, observed, chosen, identity=IDENTITY, rel_tol=tolerance)


def figures(seen: Seen) -> Figures:
    """What happened in a run, and how many windows these kinds of steps let one compare."""
    trace, words = seen.expected, seen.words
    final = trace.of(Final)
    tuples = sum(answer.n for answer in final)
    at_first = sum(result.n_rcv for result in trace.of(Result))
    windows = len(final) if Final in words else len(trace.of(Result)) if Result in words else 0
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


def agreed(cases: Sequence[Figures]) -> str:
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


def simulate(settings: Mapping[str, str], seed: int) -> Run:
    """One timed run."""
    refuse_settings(DEFAULTS, settings)
    return from_settings(settings, seed)


def plot(run: Run, path: Path) -> None:
    """The run over time, as SVG."""
    # Imported here, for matplotlib takes a second that nothing else on the command line needs.
    from sim.figures import plot_run

    plot_run(run, path)


ROOM = Room(
    name="slack",
    words=WORDS,
    add_options=queries.add_options,
    cases=cases,
    reference=make_system,
    spark=spark,
    slots=lambda _: 2,
    in_process=in_process,
    in_process_words=(Result, Late, Judged, Rejected, Progress),
    compare=compare,
    check=judge,
    refuse=partial(refuse_workload, SlackConfig.from_json),
    figures=figures,
    shown=SHOWN,
    agreed=agreed,
    guard=guard,
    remarks=lambda seen: remarks(seen.case, seen.observed),
    explorer=EXPLORER,
    simulate=simulate,
    plot=plot,
    errata=ERRATA,
)
