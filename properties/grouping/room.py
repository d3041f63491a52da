"""Room ``grouping`` as the command line and the tests know it."""

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from model.checking.claims import Outcome, Verdict
from model.grouping import make_system
from model.grouping.claims import judge
from model.grouping.evidence import evidence_of
from model.grouping.scopes import EVERYDAY, HOMES, SCOPES, explore
from model.grouping.variants import VARIANTS
from model.vocabulary import GroupingConfig, System, Trace, Workload
from model.vocabulary.grouping import WORDS, Answer, Heavy, Partial, Route
from properties.data.inputs import PUBLISHED, missing_recording, recordings_by_name
from properties.data.tables import Columns, cuts_into
from properties.errors import UsageError, counted
from properties.grouping import inputs, queries
from properties.grouping.agreement import compare
from properties.grouping.balances import Spread, spread
from properties.grouping.errata import ERRATA
from properties.grouping.limits import refuse_settings, refuse_values, refuse_workload
from properties.judging.predictions import Predictor
from properties.rooms import (
    Alternatives,
    Case,
    Explorer,
    Figure,
    Figures,
    JudgedCase,
    Room,
    SkippedInput,
)
from sim.grouping import TimedRun, from_settings, side_by_side
from sim.grouping.policies import Side
from sim.grouping.room import replay
from sim.grouping.room import simulate as run_plan

GUARD = "keys were heavy, and merged"
STAYING = ("key", "dkg", "dag")
"""Policies under which a key may well stay at one instance, so that nothing is to be merged."""


def cases(args: argparse.Namespace, columns: Columns) -> Iterator[Case | SkippedInput]:
    """One case for every router on every input that the options ask for."""
    if args.room == "grouping" and args.window_us is not None:
        raise UsageError("--window is a length of time; in room grouping --set window_tuples=N")
    for name in args.input or inputs.DEFAULT:
        if not args.input and name in PUBLISHED and name not in recordings_by_name():
            yield SkippedInput(name, missing_recording(name))
            continue
        recording = inputs.load(name, args.seed, columns)
        refuse_values(recording.events, recording.label)
        tuples = len(recording.events)
        cuts = cuts_into(tuples, args.batches or queries.BATCHES)
        for config, title in queries.queries(args, name, tuples):
            workload = Workload(
                "grouping",
                recording.events,
                config.to_json(),
                cuts,
                seed=args.seed,
                name=f"{recording.name}, {title}",
            )
            yield Case(recording.name, recording.label, title, workload, in_order=False)


def spark() -> System:
    """The Spark pipeline, in the session that is running."""
    # Imported here, for it takes a second that nothing else on the command line needs.
    from spark_impl.grouping import make_system as make_pipeline

    return make_pipeline()


def in_process(workload: Workload) -> Trace:
    """The routers and instances of the Spark pipeline, without Spark."""
    from spark_impl.grouping import run_in_process

    return run_in_process(workload)


# --------------------------------------------------------------------------- figures and guards


def figures(seen: JudgedCase) -> Figures:
    """What happened in the reference, and how the system spread the tuples, if it recorded that."""
    workload, expected = seen.case.workload, seen.expected
    places = Counter((each.window, each.key) for each in expected.of(Partial))
    observed = evidence_of(workload, seen.observed)
    found = spread(observed)
    return {
        "tuples": len(workload.arrivals),
        "routes": len(expected.of(Route)) if Route in seen.step_types else 0,
        "windows": len(observed.windows),
        "heavy": len(expected.of(Heavy)),
        "answers": len(expected.of(Answer)) if Answer in seen.step_types else 0,
        "merged": sum(several > 1 for several in places.values()),
        **(found._asdict() if found else dict.fromkeys(Spread._fields)),
    }


SHOWN = (
    Figure("tuples", "tuples"),
    Figure("heavy", "heavy\nkeys"),
    Figure("rho", "rho", ".3f"),
    Figure("imbalance", "I", ".3f"),
    Figure("replication", "instances\na key", ".2f"),
    Figure("busiest_us", "busiest,\nus"),
)


def summarise_agreement(cases: Sequence[Figures]) -> str:
    """Routes and answers of all cases together."""
    routes, answers = (sum(each[name] or 0 for each in cases) for name in ("routes", "answers"))
    return f"{routes:,} routes, tuple by tuple, and {answers:,} merged answers"


def guard(case: Case, figures: Figures) -> Verdict:
    """Without a heavy key, or with nothing to be merged, a router does what a hash does."""
    config = GroupingConfig.from_json(case.workload.config)
    needed = [
        ("windows", 2, "there was one window, so that nothing was rebalanced"),
        ("heavy", 1, "no key was heavy"),
    ]
    if config.policy not in STAYING:
        needed.append(("merged", 1, "no key went to several instances"))
    lacking = [sentence for name, least, sentence in needed if (figures[name] or 0) < least]
    if lacking:
        sentence = (
            f"{lacking[0]} in {case.input}: the cases that matter never came up (a smaller theta or"
            " window_tuples may help)"
        )
        return Verdict(GUARD, Outcome.UNDETERMINED, sentence)
    heavy, merged = int(figures["heavy"] or 0), int(figures["merged"] or 0)
    sentence = f"heavy were {counted(heavy, 'key')}, and merged were {counted(merged, 'key')}"
    return Verdict(GUARD, Outcome.HOLDS, sentence)


# --------------------------------------------------------------------------------------- wired up


EXPLORER = Explorer(
    scopes=tuple(SCOPES), everyday=EVERYDAY, variants=VARIANTS, explore=explore, homes=HOMES
)


def simulate(settings: Mapping[str, str], seed: int) -> TimedRun:
    """One timed run."""
    refuse_settings(settings)
    return from_settings(settings, seed)


SIDES = (
    "policy",
    "tuples/s",
    "of ideal",
    "latency, ms",
    "99%, ms",
    "rho",
    "I",
    "instances\na key",
)


def alternatives(run: TimedRun, settings: Mapping[str, str], seed: int) -> Alternatives | None:
    """All policies side by side, where there are two windows to tell them apart by."""
    sides = side_by_side(settings, seed) if "mean_rho" in run.summary else ()
    if not sides:
        return None
    remark = (
        "tuples/s: what a backlog is worked off with; latency: at the load of the run, in the"
        " second half of it, - where the policy cannot keep up; rho, I, instances a key: means over"
        " windows, without the first one for rho and I."
    )
    data = tuple(side._asdict() for side in sides)
    return Alternatives(SIDES, tuple(_side(side) for side in sides), data, remark)


def _side(side: Side) -> tuple[str, ...]:
    latencies = [
        "-" if us is None else f"{us / 1e3:,.1f}"
        for us in (side.mean_latency_us, side.p99_latency_us)
    ]
    return (
        side.policy,
        f"{side.throughput_hz:,.0f}",
        f"{side.share_of_ideal:.0%}",
        *latencies,
        f"{side.mean_rho:.3f}",
        f"{side.mean_imbalance:.3f}",
        f"{side.instances_a_key:.2f}",
    )


def plot(run: TimedRun, path: Path) -> None:
    """The run over time, as SVG."""
    # Imported here, for matplotlib takes a second that nothing else on the command line needs.
    from sim.grouping.figures import plot_run

    plot_run(run, path)


ROOM = Room(
    name="grouping",
    step_types=WORDS,
    add_options=queries.add_options,
    cases=cases,
    reference=make_system,
    spark=spark,
    slots=lambda _: 2,
    in_process=in_process,
    in_process_step_types=WORDS,
    compare=compare,
    check=judge,
    refuse=refuse_workload,
    figures=figures,
    shown=SHOWN,
    summarise_agreement=summarise_agreement,
    guard=guard,
    remarks=lambda _: (),
    explorer=EXPLORER,
    simulate=simulate,
    simulate_plan=lambda plan, config, seed: run_plan(plan, GroupingConfig.from_json(config), seed),
    replay=replay,
    predictor=Predictor(
        "median_latency_us",
        "p99_latency_us",
        "from the arrival of a tuple to the end of its service",
        ("busiest",),
        "as fast as times_us says at first (exponential)",
    ),
    plot=plot,
    alternatives=alternatives,
    errata=ERRATA,
)
