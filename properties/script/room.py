"""Room ``script`` as the command line and the tests know it."""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from math import isfinite

from model.checking.claims import Judgement, Outcome, Verdict
from model.script import make_system
from model.script.claims import judge
from model.script.closeness import deviation
from model.script.placement import components, hash_baseline, load_cap
from model.script.scopes import EVERYDAY, SCOPES, explore
from model.script.variants import VARIANTS
from model.vocabulary import ScriptConfig, System, Trace, Workload
from model.vocabulary.script import REASON_LATE, WORDS, Rejected, Result, Undefined
from properties.data.tables import Columns, cuts_into
from properties.errors import UsageError, counted
from properties.judging.predictions import Predictor
from properties.rooms import (
    Case,
    Explorer,
    Figure,
    Figures,
    JudgedCase,
    Remark,
    Room,
    SkippedInput,
)
from properties.script import inputs, limits, queries, timed
from properties.script.agreement import compare
from properties.script.errata import ERRATA
from properties.script.plan import Plan, as_float, make_plan
from properties.script.simpler import settings, simpler
from sim.script.room import replay
from sim.script.room import simulate as run_plan

GUARD = "work was shared, and tuples were late"


def cases(args: argparse.Namespace, columns: Columns) -> Iterator[Case | SkippedInput]:
    """One case for every input, with all the scripts that the options ask for."""
    if args.room == "script" and args.window_us is not None:
        raise UsageError("--window: in room script the scripts say how long windows are")
    # Scripts of somebody else are about the network that everybody has.
    usual = ("weather",) if args.scripts else tuple(inputs.NAMED)
    texts = queries.asked(args)
    for name in args.input or usual:
        reason = None if args.input else inputs.missing(name)
        if reason is not None:
            yield SkippedInput(name, reason)
            continue
        network = inputs.load(name, args.seed, columns, args.sensors)
        config, title = queries.query(args, network, texts)
        limits.refuse(config, network.events, network.label)
        workload = Workload(
            "script",
            network.events,
            config.to_json(),
            cuts_into(len(network.events), args.batches or queries.BATCHES),
            seed=args.seed,
            name=f"{network.name}, {title}",
        )
        yield Case(network.name, network.label, title, workload, in_order=False)


def spark() -> System:
    """The Spark pipeline, in the session that is running."""
    # Imported here, for it takes a second that nothing else on the command line needs.
    from spark_impl.script import make_system as make_pipeline

    return make_pipeline()


def in_process(workload: Workload) -> Trace:
    """The state operator of the Spark pipeline, without Spark."""
    from spark_impl.script import run_in_process

    return run_in_process(workload)


def check(workload: Workload, trace: Trace) -> Judgement:
    """The claims; of long inputs results are computed naively from a part of the arrivals."""
    return judge(workload, trace, limits.judged(workload))


# --------------------------------------------------------------------------- figures and guards


def figures(seen: JudgedCase) -> Figures:
    """What happened in the reference, and what its plan says of loads and of what is sent."""
    workload, expected = seen.case.workload, seen.expected
    config = ScriptConfig.from_json(workload.config)
    plan = make_plan(config)
    placed, guards = plan.placement, seen.evidence.guards
    nodes = plan.graph.nodes
    windows = Counter(node.inputs[0] for node in nodes if node.span is not None)
    _, by_hash = hash_baseline(plan.graph, config.workers)
    off = deviation(workload, expected, seen.observed)
    return {
        "tuples": len(workload.arrivals),
        "results": len(expected.of(Result)) if Result in seen.step_types else 0,
        "undefined": len(expected.of(Undefined)),
        "late": sum(each.reason == REASON_LATE for each in expected.of(Rejected)),
        "computations": len(plan.graph.computed),
        "shared": plan.graph.written - len(plan.graph.computed),
        "slices_shared": sum(several > 1 for several in windows.values()),
        "narrow_panes": guards["panes narrower than a slide"],
        "edges": guards["streams cut at edges"],
        "components": len(components(plan.graph)),
        "results_sent": as_float(placed.derived),
        "sensors_sent_twice": sum(_hosts(plan, each) > 1 for each in config.asked_for),
        "largest_load": float(max(placed.loads)),
        "load_cap": float(load_cap(plan.graph, config.workers, config.cap_percent)),
        "sent": as_float(placed.communication),
        "sent_by_hash": as_float(by_hash),
        "saved": as_float(1 - placed.communication / by_hash) if by_hash else 0.0,
        "deviation": off if isfinite(off) else None,
    }


def _hosts(plan: Plan, sensor: str) -> int:
    """Workers that are sent it."""
    nodes = plan.graph.nodes
    return sum(any(nodes[each].sensor == sensor for each in at) for at in plan.placement.hosts)


SHOWN = (
    Figure("tuples", "tuples"),
    Figure("results", "results"),
    Figure("shared", "shared"),
    Figure("late", "late"),
    Figure("sent", "sent\nan hour", ",.0f"),
    Figure("saved", "less than\nby hash", ".0%"),
    Figure("deviation", "off by", ".1g"),
)


def summarise_agreement(cases: Sequence[Figures]) -> str:
    """Results of all cases together."""
    results, undefined, late = (
        sum(each[name] or 0 for each in cases) for name in ("results", "undefined", "late")
    )
    return (
        f"{results:,} results, {counted(int(undefined), 'time')} without one, and {late:,} late"
        " arrivals"
    )


def guard(case: Case, figures: Figures) -> Verdict:
    """Without anything shared or late, any way to compute would do."""
    config = ScriptConfig.from_json(case.workload.config)
    results, shared, slices, late = (
        int(figures[name] or 0) for name in ("results", "shared", "slices_shared", "late")
    )
    may_be_late = config.lateness_us is not None
    lacking = (
        "nothing was computed"
        if not results
        else "no computation and no slice was shared"
        if not shared + slices
        else "nothing was late"
    )
    if not (results and shared + slices and (late or not may_be_late)):
        sentence = f"{lacking} in {case.input}: the cases that matter never came up"
        return Verdict(GUARD, Outcome.UNDETERMINED, sentence)
    told = counted(shared, "computation"), counted(slices, "stream"), counted(late, "tuple")
    sentence = f"shared were {told[0]} and the slices of {told[1]}, and late were {told[2]}"
    return Verdict(GUARD, Outcome.HOLDS, sentence)


def remarks(seen: JudgedCase) -> tuple[Remark, ...]:
    """What is computed, and who is sent how much of what."""
    plan = make_plan(ScriptConfig.from_json(seen.case.workload.config))
    told = [sentence.removesuffix(".") for sentence in plan.sentences()]
    return (Remark("plan", "; ".join(told), plan.to_json()),)


# --------------------------------------------------------------------------------------- wired up


EXPLORER = Explorer(scopes=tuple(SCOPES), everyday=EVERYDAY, variants=VARIANTS, explore=explore)

ROOM = Room(
    name="script",
    step_types=WORDS,
    add_options=queries.add_options,
    cases=cases,
    reference=make_system,
    spark=spark,
    slots=lambda _: 2,
    in_process=in_process,
    in_process_step_types=WORDS,
    compare=compare,
    check=check,
    refuse=limits.refuse_workload,
    figures=figures,
    shown=SHOWN,
    summarise_agreement=summarise_agreement,
    guard=guard,
    remarks=remarks,
    explorer=EXPLORER,
    simulate=timed.simulate,
    simulate_plan=lambda plan, config, seed: run_plan(plan, ScriptConfig.from_json(config), seed),
    replay=replay,
    predictor=Predictor(
        "p50_result_latency_us",
        "p99_result_latency_us",
        "from the stamp of a result, by the sensors' clock, to the result",
        ("busiest",),
    ),
    plot=timed.plot,
    timed_remarks=timed.remarks,
    alternatives=timed.alternatives,
    undetermined_steps=timed.undetermined_steps,
    simpler=simpler,
    settings=settings,
    errata=ERRATA,
)
