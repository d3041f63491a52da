"""Room ``join`` as the command line and the tests know it."""

import argparse
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path as FilePath

from model.checking import diff
from model.checking.claims import Judgement, Outcome, Verdict
from model.checking.diff import Difference
from model.checking.explorer import Path
from model.join import load_claims
from model.join.chart import chart
from model.join.claims import judge
from model.join.exploration import explore, scope_of
from model.join.oracle import make_system
from model.join.protocol import State
from model.join.recorded import CLAIM as CONFORMS
from model.join.scopes import EVERYDAY, SCOPES
from model.join.state import Action
from model.join.variants import VARIANTS
from model.vocabulary import JoinConfig, System, Trace, Workload
from model.vocabulary.join import PROTOCOL, RESULTS, Forward, Match, Receive, Rejected
from properties.data.tables import Columns, cuts_into
from properties.errors import UsageError, counted
from properties.join import inputs, limits, queries
from properties.join.errata import ERRATA
from properties.judging.predictions import Predictor
from properties.rooms import Case, Explorer, Figure, Figures, JudgedCase, Remark, Room, SkippedInput
from sim.join import ChainRun, from_settings, replay
from sim.join import simulate as run_plan

GUARD = "pairs met where it is difficult"
COUNTED_MAX = 2_000
"""Arrivals up to which the pairs of every recorded step are counted again."""


def cases(args: argparse.Namespace, columns: Columns) -> Iterator[Case | SkippedInput]:
    """One case for every chain on every input that the options ask for."""
    if (args.r is None) != (args.s is None):
        given, other = ("--r", "--s") if args.s is None else ("--s", "--r")
        raise UsageError(f"{given} is one of the two files to join: {other} is missing")
    if args.r is not None:
        if args.input:
            raise UsageError(f"--input {args.input[0]!r} and --r are two ways to name an input")
        yield from _cases(args, inputs.from_files(args.r, args.s, columns), None)
        return
    for name in args.input or inputs.NAMED:
        reason = inputs.missing(name)
        if reason is not None and not args.input:
            yield SkippedInput(name, reason)
        elif reason is not None:
            raise UsageError(reason)
        else:
            yield from _cases(args, inputs.load(name, args.seed), name)


def _cases(
    args: argparse.Namespace, streams: inputs.TwoStreams, name: str | None
) -> Iterator[Case]:
    cuts = cuts_into(len(streams.events), args.batches or queries.BATCHES)
    in_order = streams.in_order
    for config in queries.queries(args, name):
        queries.refuse_keyless(config, streams.without_keys)
        limits.refuse_pairs(streams.events, config, "--window")
        title = queries.describe(config)
        workload = Workload(
            "join",
            streams.events,
            config.to_json(),
            cuts,
            seed=args.seed,
            name=f"{streams.name}, {title}",
        )
        yield Case(streams.name, streams.label, title, workload, in_order)


def spark() -> System:
    """The Spark pipeline, in the session that is running."""
    # Imported here, for it takes a second that nothing else on the command line needs.
    from spark_impl.join import make_system as make_pipeline
    from spark_impl.runtime.session import EnvironmentProblem

    pipeline = make_pipeline()

    def run(workload: Workload, /) -> Trace:
        try:
            return pipeline(workload)
        except EnvironmentProblem as problem:
            raise UsageError(str(problem)) from problem

    return run


def in_process(workload: Workload) -> Trace:
    """The workers of the Spark pipeline, chained without Spark."""
    from spark_impl.join import run_in_process

    return run_in_process(workload)


def compare(
    workload: Workload, expected: Trace, observed: Trace, step_types: Collection[type]
) -> Difference:
    """Matches whenever they came, each as often as it came, and rejections."""
    chosen = [word for word in RESULTS if word in step_types]
    one, other = _untimed(expected), _untimed(observed)
    return diff.compare(one, other, chosen, identity={}, ignore=("batch",))


def _untimed(trace: Trace) -> Trace:
    # All in one epoch: what is left out of a comparison would otherwise hide a match that came
    # twice, in two epochs.
    matches = [match._replace(batch=0) for match in trace.of(Match)]
    return Trace(trace.producer, [*matches, *trace.of(Rejected)])


def check(workload: Workload, trace: Trace) -> Judgement:
    """The claims; of large recordings the pairs of every step are not counted again."""
    return judge(workload, trace, counts_pairs=len(workload.arrivals) <= COUNTED_MAX)


# --------------------------------------------------------------------------- figures and guards


def figures(seen: JudgedCase) -> Figures:
    """Results of the reference, and what the system recorded of its chain, if it did."""
    observed = seen.observed
    config = JoinConfig.from_json(seen.case.workload.config)
    steps = sum(len(observed.of(word)) for word in PROTOCOL)
    received = observed.of(Receive)
    ends = (0, config.workers - 1)
    recorded = {
        "steps": steps,
        "blocks": len(observed.of(Forward)),
        "copies": sum(step.copies for step in received),
        "in_the_middle": sum(step.pairs for step in received if step.worker not in ends),
    }
    return {
        "tuples": len(seen.case.workload.arrivals),
        "matches": len(seen.expected.of(Match)) if Match in seen.step_types else 0,
        "rejected": len(seen.expected.of(Rejected)),
        "across_epochs": seen.evidence.guards["results across epochs"],
        "workers": config.workers,
        **{name: number if steps else None for name, number in recorded.items()},
    }


SHOWN = (
    Figure("tuples", "tuples"),
    Figure("matches", "matches"),
    Figure("rejected", "rejec-\nted"),
    Figure("blocks", "blocks"),
    Figure("copies", "copies\nmet"),
)


def summarise_agreement(cases: Sequence[Figures]) -> str:
    """Matches and rejections of all cases together."""
    matches, rejected = (sum(each[name] or 0 for each in cases) for name in ("matches", "rejected"))
    return f"{matches:,} matches, each found once, and in {rejected:,} rejected arrivals"


def guard(case: Case, figures: Figures) -> Verdict:
    """Pairs in one epoch of one worker are no test of a chain."""
    several = int(figures["workers"] or 0)
    needed = [("matches", "nothing matched")]
    if len(list(case.workload.batches())) > 1:
        needed.append(("across_epochs", "no pair matched across two epochs"))
    if figures["steps"] and several > 1:
        needed.append(("blocks", "no block was sent from worker to worker"))
        needed.append(("copies", "no block met a copy of a block that was on its way"))
    if figures["steps"] and several > 2:
        needed.append(("in_the_middle", "no pair was found in the middle of the chain"))
    lacking = [sentence for name, sentence in needed if not figures[name]]
    if lacking:
        sentence = (
            f"{lacking[0]} in {case.input}: the cases that matter never came up (more tuples, or a"
            " smaller --block-size, may help)"
        )
        return Verdict(GUARD, Outcome.UNDETERMINED, sentence)
    sentence = f"{counted(int(figures['across_epochs'] or 0), 'match')} came across epochs"
    return Verdict(GUARD, Outcome.HOLDS, sentence)


def remarks(seen: JudgedCase) -> tuple[Remark, ...]:
    """Whether what the chain recorded is a behaviour of the protocol."""
    config = JoinConfig.from_json(seen.case.workload.config)
    steps = sum(len(seen.observed.of(word)) for word in PROTOCOL)
    found = [each for each in seen.evidence.verdicts if each.claim == CONFORMS]
    data = {"steps": steps, "workers": config.workers}
    if not found:
        sentence = "no step of the protocol was recorded, so results alone were compared"
        return (Remark("recording", sentence, {**data, "outcome": str(Outcome.UNDETERMINED)}),)
    workers = counted(config.workers, "worker")
    sentence = f"{counted(steps, 'step')} of {workers} are a behaviour of the protocol"
    if len(seen.case.workload.arrivals) > COUNTED_MAX:
        sentence += f" (above {COUNTED_MAX:,} tuples, pairs of a step are not counted again)"
    if found[0].outcome is not Outcome.HOLDS:
        sentence = found[0].sentence.removesuffix(".")
    return (Remark("recording", sentence, {**data, "outcome": str(found[0].outcome)}),)


# --------------------------------------------------------------------------------------- wired up


def simulate(settings: Mapping[str, str], seed: int) -> ChainRun:
    """One timed run."""
    limits.refuse_settings(settings)
    return from_settings(settings, seed)


def timed_remarks(run: ChainRun) -> tuple[Remark, ...]:
    """Moments in which a worker was fuller than section 8 of docs/join.md says, if there are any.

    The other statements are about shedding and scaling, which a run need not have switched on.
    """
    verdicts = load_claims.judge(run.moments, run.rule).verdicts
    return tuple(
        Remark(
            "load",
            f"not kept in every moment: {each.claim}. {each.sentence} No verdict, for it takes"
            " fresh sizes and a window that is full",
            {"claim": each.claim, "outcome": str(each.outcome), "witness": list(each.witness)},
        )
        for each in verdicts
        if each.claim == load_claims.NO_FALSE_SHEDDING and each.outcome is Outcome.BROKEN
    )


def plot(run: ChainRun, path: FilePath) -> None:
    """The run over time, as SVG."""
    # Imported here, for matplotlib takes a second that nothing else on the command line needs.
    from sim.join.figures import plot_run

    plot_run(run, path)


def _drawn(scope: str, variant: str, path: Path[State, Action]) -> tuple[str, ...]:
    return chart(scope_of(scope, variant), path)


EXPLORER = Explorer(
    scopes=tuple(SCOPES),
    everyday=EVERYDAY,
    variants=VARIANTS,
    explore=explore,
    homes={name: variant.home for name, variant in VARIANTS.items()},
    chart=_drawn,
)

ROOM = Room(
    name="join",
    step_types=RESULTS,
    add_options=queries.add_options,
    cases=cases,
    reference=make_system,
    spark=spark,
    slots=lambda workload: JoinConfig.from_json(workload.config).workers,
    in_process=in_process,
    in_process_step_types=RESULTS,
    compare=compare,
    check=check,
    refuse=limits.refuse_workload,
    figures=figures,
    shown=SHOWN,
    summarise_agreement=summarise_agreement,
    guard=guard,
    remarks=remarks,
    explorer=EXPLORER,
    simulate=simulate,
    simulate_plan=lambda plan, config, seed: run_plan(plan, JoinConfig.from_json(config), seed),
    replay=partial(replay, record=False),  # results are what is compared
    predictor=Predictor(
        "median_latency_us",
        "p99_latency_us",
        "from the arrival of the later tuple of a pair to the pair",
        ("busy_",),
    ),
    plot=plot,
    timed_remarks=timed_remarks,
    errata=ERRATA,
    in_process_max=30_000,
)
