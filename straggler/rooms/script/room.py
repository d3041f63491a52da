"""Room ``script`` as the command line and the tests know it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from math import isfinite

import straggler
from model.checking import diff
from model.checking.claims import Verdict
from model.checking.diff import Difference
from model.script import make_system
from model.script.claims import judge
from model.script.evidence import align, deviation
from model.vocabulary import ScriptConfig, Trace, Workload
from model.vocabulary.script.config import (
    ANSWERS,
    CLUSTER,
    REASON_LATE,
    WORDS,
    Hosted,
    Rejected,
    Result,
    Undefined,
)
from model.vocabulary.script.placement import hash_baseline
from model.vocabulary.script.plan import compile_plan
from model.vocabulary.script.tree import Name, Statement, Workflow, walk
from sim.kernel.plan import Plan as TimedPlan
from sim.script import from_settings
from sim.script.host import ScriptTuning
from sim.script.placements import PLAN
from sim.script.room import TIMED_ROOM
from straggler.errors import counted
from straggler.inputs.columns import Columns
from straggler.options import Arguments
from straggler.rooms import Case, Figure, Figures, JudgedCase, Room, SkippedInput
from straggler.rooms.script import inputs, limits, queries
from straggler.rooms.script.errata import ERRATA
from straggler.rooms.script.formatter import unparse
from straggler.rooms.script.plan import as_float
from straggler.wiring import cases_of, judge_guard, make_case, spark_pipeline

GUARD = "work was shared, and tuples were late"
IDENTITY = {
    "result": ("workflow", "name", "ts_us"),
    "rejected": ("seq",),
}
"""Identifying fields, by kind of step; all other fields are compared."""


def cases(args: Arguments, columns: Columns) -> Iterator[Case | SkippedInput]:
    """Yield one case for every input, with all the scripts that the options select."""
    # A user's scripts name the sensors of the input that needs no recording.
    usual = ("weather",) if args.scripts else tuple(inputs.NAMED)
    texts = queries.load_scripts(args)

    def read(name: str) -> Iterator[Case]:
        network = inputs.load(name, args.seed, columns, args.sensors)
        config, title = queries.query(args, network, texts)
        limits.refuse(config, network.sent.events, network.sent.label)
        yield make_case("script", network.sent, config, title, args, batches=queries.BATCHES)

    return cases_of(args, usual, read)


def compare(
    workload: Workload,
    expected: Trace,
    observed: Trace,
    step_types: Collection[type],
    ignore: Collection[str],
) -> Difference:
    """Compare steps exactly (promise 6 of docs/script.md), and inexact results closely.

    A result is inexact if float64 rounds the sums of its values.
    """
    chosen = [word for word in WORDS if word in step_types]
    near = align(workload, expected, observed)
    return diff.compare(expected, near, chosen, identity=IDENTITY, ignore=ignore)


# --------------------------------------------------------------------------- figures and guards


def figures(seen: JudgedCase) -> Figures:
    """Return what happened in the reference, and what its plan sends."""
    workload, expected = seen.case.workload, seen.expected
    config = ScriptConfig.from_json(workload.config)
    plan = compile_plan(config)
    graph, sent = plan.graph, plan.placement.communication
    _, by_hash = hash_baseline(graph, config.workers)
    off = deviation(workload, expected, seen.observed)
    return {
        "tuples": len(workload.arrivals),
        "results": len(expected.of(Result)) if Result in seen.step_types else 0,
        "undefined": len(expected.of(Undefined)),
        "late": sum(each.reason == REASON_LATE for each in expected.of(Rejected)),
        "shared": graph.written - len(graph.computed),
        "slices_shared": sum(len(numbers) > 1 for numbers in graph.windows.values()),
        "sent": as_float(sent),
        "saved": as_float(1 - sent / by_hash) if by_hash else 0.0,
        "deviation": off if isfinite(off) else None,
    }


SHOWN = (
    Figure("tuples", "tuples"),
    Figure("results", "results"),
    Figure("shared", "shared"),
    Figure("late", "late"),
    Figure("sent", "sent\nan hour", ",.0f"),
    Figure("saved", "less than\nby hash", ".0%"),
    Figure("deviation", "off by", ".1g"),
)


def summarise_agreement(sums: Mapping[str, float]) -> str:
    """Return how many results and late arrivals agreed, over all cases."""
    results, undefined = sums["results"], counted(int(sums["undefined"]), "time")
    return f"{results:,} results, {undefined} without one, and {sums['late']:,} late arrivals"


def guard(case: Case, figures: Figures) -> Verdict:
    """Require shared work and late tuples: otherwise any way to compute would do."""
    config = ScriptConfig.from_json(case.workload.config)
    results, shared, slices, late = (
        int(figures[name] or 0) for name in ("results", "shared", "slices_shared", "late")
    )
    if not results:
        lacking = "nothing was computed"
    elif not shared + slices:
        lacking = "no computation and no slice was shared"
    else:
        lacking = "" if late or config.lateness_us is None else "nothing was late"
    shares = counted(shared, "computation"), counted(slices, "stream"), counted(late, "tuple")
    occurred = f"{shares[0]} and the slices of {shares[1]} were shared, and {shares[2]} came late"
    return judge_guard(GUARD, case, lacking, occurred)


# ------------------------------------------------------------------------------------ timed runs


def undetermined_steps(plan: TimedPlan) -> tuple[type, ...]:
    """Return the kind of step that names hosts, if the placement is not that of docs/script.md."""
    return () if plan.tuned(ScriptTuning()).placement == PLAN else (Hosted,)


# ------------------------------------------------------------- counterexamples that people read


def simpler(workload: Workload) -> Iterator[Workload]:
    """Yield workloads with the same arrivals and less to compute.

    They have fewer scripts or statements, one worker, a fixed watermark, or fewer sensors.
    """
    config = ScriptConfig.from_json(workload.config)
    flows = config.workflows
    found: list[tuple[Workflow, ...]] = [(flow,) for flow in flows] if len(flows) > 1 else []
    found += [(*flows[:n], *flows[n + 1 :]) for n in range(len(flows)) if len(flows) > 2]
    for n, flow in enumerate(flows):
        found += [(*flows[:n], each, *flows[n + 1 :]) for each in _shorter(flow)]
    configs = [replace(config, workflows=each) for each in found]
    if config.workers > 1:
        configs.append(replace(config, workers=1))
    if config.watermark != "fixed":
        configs.append(replace(config, watermark="fixed", cluster=CLUSTER))
    used = {*queries.sensors_of(flows), *[event.key for event in workload.arrivals]}
    kept = tuple(pair for pair in config.sensors if pair[0] in used)
    if len(kept) < len(config.sensors):
        configs.append(replace(config, sensors=kept))
    for each in configs:
        yield workload.with_(config=each.to_json())


def _shorter(flow: Workflow) -> Iterator[Workflow]:
    """Yield the workflow without one of the statements that no other one needs."""
    for statement in reversed(flow.statements):
        others = tuple(each for each in flow.statements if each is not statement)
        if others and statement.name not in _names(others):
            yield Workflow(flow.name, others)


def _names(statements: Sequence[Statement]) -> set[str]:
    nodes = (node for each in statements for node, _ in walk(each.expression))
    return {node.name for node in nodes if isinstance(node, Name)}


def settings(workload: Workload) -> Mapping[str, object]:
    """Return the scripts as text, and the settings with which they run."""
    config = ScriptConfig.from_json(workload.config)
    scripts = {
        f"the script {flow.name}": f"[{'; '.join(unparse(flow).splitlines())}]"
        for flow in config.workflows
    }
    names = ["workers", "lateness_us", "cap_percent"]
    if config.watermark != "fixed":
        names += ["watermark", "cluster"]
    if config.idle_after_us is not None:
        names.append("idle_after_us")
    return {**{name: getattr(config, name) for name in names}, **scripts}


ROOM = Room(
    name="script",
    position=50,
    step_types=WORDS,
    answers=ANSWERS,
    config=ScriptConfig,
    inputs=f"{', '.join(inputs.NAMED)}, or a file",
    quick="--input weather",
    quick_s=12,
    batches=queries.BATCHES,
    options=queries.options,
    workers=queries.WORKERS,
    cases=cases,
    reference=make_system,
    spark=spark_pipeline(lambda: straggler.script.make_system),
    in_process=lambda: straggler.script.run_in_process,
    in_process_step_types=WORDS,
    compare=compare,
    check=judge,
    refuse_query=limits.refuse_workload,
    figures=figures,
    shown=SHOWN,
    summarise_agreement=summarise_agreement,
    guard=guard,
    refuse_settings=limits.refuse_settings,
    run=from_settings,
    timed=TIMED_ROOM,
    undetermined_steps=undetermined_steps,
    simpler=simpler,
    settings=settings,
    errata=ERRATA,
)
