"""Room ``watermark`` as the command line and the tests know it."""

import argparse
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean

from model import diff
from model.claims import Outcome, Verdict
from model.diff import Difference
from model.vocabulary import System, Trace, WatermarkConfig, Workload
from model.vocabulary.answers import Final, Late, Rejected, Result
from model.vocabulary.watermark import WORDS, Clock
from model.watermark import make_system
from model.watermark.claims import judge
from model.watermark.identity import IDENTITY
from model.watermark.scopes import SCOPES, explore
from model.watermark.variants import VARIANTS
from model.windows.evidence import has_exact_sums
from properties import inputs
from properties.errors import counted
from properties.rooms import Case, Explorer, Figure, Figures, Room, Seen, Skipped
from properties.tables import Columns, cuts_into
from properties.watermark import queries
from properties.watermark.errata import ERRATA
from properties.window_limits import refuse_settings, refuse_workload
from properties.windowed import BATCHES
from sim.watermark import DEFAULTS, Run, from_settings

DEFAULT_INPUTS = ("flights", "umts", "iot_umts")
GUARD = "the wait followed the disorder"
TOLERANCE = 1e-9
SECOND_US = 1_000_000


def cases(args: argparse.Namespace, columns: Columns) -> Iterator[Case | Skipped]:
    """One case for every query on every input that the options ask for."""
    for name in args.input or DEFAULT_INPUTS:
        if not args.input and name in inputs.PUBLISHED and name not in inputs.recordings_by_name():
            yield Skipped(name, inputs.missing_recording(name))
            continue
        recording = inputs.load(name, args.seed, columns)
        cuts = cuts_into(len(recording.events), args.batches or BATCHES)
        for config, per in queries.queries(args, name, recording):
            title = queries.describe(config, per)
            workload = Workload(
                "watermark",
                recording.events,
                config.to_json(),
                cuts,
                seed=args.seed,
                name=f"{recording.name}, {title}",
            )
            yield Case(recording.name, recording.label, title, workload, recording.in_order)


def spark() -> System:
    """The Spark pipeline, in the session that is running."""
    # Imported here, for it takes a second that nothing else on the command line needs.
    from spark_impl.watermark import make_system as make_pipeline

    return make_pipeline()


def in_process(workload: Workload) -> Trace:
    """The state operator of the Spark pipeline, without Spark."""
    from spark_impl.watermark import run_in_process

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
    """What happened in the reference."""
    trace = seen.expected
    clocks, late = trace.of(Clock), len(trace.of(Late))
    received = sum(result.n_rcv for result in trace.of(Result))
    waits = {clock.wait_us for clock in clocks}
    waited_us = fmean(clock.t_max_us - clock.wm_us for clock in clocks) if clocks else None
    windows = len(trace.of(Final)) if Final in seen.words else len(trace.of(Result))
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


def agreed(cases: Sequence[Figures]) -> str:
    """Windows, clocks and late pairs of all cases together."""
    windows, clocks, late = (
        sum(each[name] or 0 for each in cases) for name in ("compared", "clocks", "late")
    )
    return (
        f"{windows:,} windows and {clocks:,} clocks, and every one of {late:,} late pairs is"
        " accounted for"
    )


def guard(case: Case, figures: Figures) -> Verdict:
    """Without different waits, any watermark would do."""
    waits, late = int(figures["waits"] or 0), int(figures["late"] or 0)
    is_fixed = case.workload.config.get("reading") == "fixed"
    if waits > 1 or (is_fixed and late):
        sentence = (
            f"waits were of {counted(waits, 'length')}, and late were {counted(late, 'pair')}"
        )
        return Verdict(GUARD, Outcome.HOLDS, sentence)
    why = "nothing was late" if is_fixed else "the wait was the same all the time"
    sentence = f"{why} in {case.input}: the cases that matter never came up"
    return Verdict(GUARD, Outcome.UNDETERMINED, sentence)


# --------------------------------------------------------------------------------------- wired up


EXPLORER = Explorer(
    scopes=tuple(SCOPES),
    everyday=("small", "scaled", "redelivery"),
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
    from sim.watermark.figures import plot_run

    plot_run(run, path)


ROOM = Room(
    name="watermark",
    words=WORDS,
    add_options=queries.add_options,
    cases=cases,
    reference=make_system,
    spark=spark,
    slots=lambda _: 2,
    in_process=in_process,
    in_process_words=(Clock, Result, Late, Rejected),
    compare=compare,
    check=judge,
    refuse=partial(refuse_workload, WatermarkConfig.from_json),
    figures=figures,
    shown=SHOWN,
    agreed=agreed,
    guard=guard,
    remarks=lambda _: (),
    explorer=EXPLORER,
    simulate=simulate,
    plot=plot,
    errata=ERRATA,
)
