"""Room ``join`` as the command line and the tests know it."""

from collections.abc import Collection, Iterable, Iterator, Mapping

import straggler
from model.checking import diff
from model.checking.claims import COMPLETE, Judgement, Recording, Verdict
from model.checking.diff import Difference
from model.join.claims import judge
from model.join.control import decision_at
from model.join.oracle import make_system
from model.join.scopes import EVERYDAY, SCOPES
from model.join.variants import explore
from model.vocabulary import JoinConfig, Trace, Workload
from model.vocabulary.join import (
    ANSWERS,
    PROTOCOL,
    RESULTS,
    STREAMS,
    Forward,
    Match,
    R,
    Receive,
    Rejected,
    S,
)
from model.vocabulary.join_conditions import write_condition
from sim.join import from_settings
from sim.join.room import UNRECORDED
from straggler.errors import UsageError, counted
from straggler.inputs import tables
from straggler.inputs.columns import Columns
from straggler.options import Arguments
from straggler.rooms import Case, Explorer, Figure, Figures, JudgedCase, Room, SkippedInput
from straggler.rooms.join import inputs, limits, queries
from straggler.rooms.join.conditions import Conditions, read_conditions
from straggler.rooms.join.errata import ERRATA
from straggler.wiring import cases_of, judge_guard, make_case, spark_pipeline

GUARD = "pairs met where it is difficult"
COUNTED_MAX = 2_000
"""Most arrivals for which the pairs of every recorded step are counted again."""


def cases(args: Arguments, columns: Columns) -> Iterator[Case | SkippedInput]:
    """Yield one case for every chain on every input that the options select."""
    if (args.r is None) != (args.s is None):
        given, other = ("--r", "--s") if args.s is None else ("--s", "--r")
        raise UsageError(f"{given} is one of the two files to join: {other} is missing")
    if args.r is not None:
        if args.input:
            raise UsageError(f"--input {args.input[0]!r} and --r are two ways to name an input")
        files = inputs.open_files(args.r, args.s, columns)
        texts = args.on or queries.OF_FILES.conditions
        asked = read_conditions(texts, {stream: file.typed for stream, file in files.items()})
        yield _case(args, inputs.from_files(files, asked), queries.OF_FILES, asked)
        return
    wanted = read_conditions(args.on, {}) if args.on else None

    def read(name: str) -> Iterator[Case]:
        if reason := inputs.why_missing(name):
            raise UsageError(reason)
        streams = inputs.load(name, args.seed, columns)
        defaults = queries.BY_INPUT[name]
        conditions = wanted or read_conditions(defaults.conditions, {})
        yield _case(args, streams, defaults, conditions)

    yield from cases_of(args, inputs.NAMED, read, inputs.why_missing)


def _case(
    args: Arguments,
    streams: tables.Recording,
    defaults: queries.Defaults,
    conditions: Conditions,
) -> Case:
    config = queries.query(args, defaults, conditions, streams.events)
    queries.refuse_keyless(config, inputs.without_keys(streams.events))
    limits.refuse_pairs(streams.events, config, "--window")
    title = queries.describe(config, args.lateness_us is not None)
    return make_case("join", streams, config, title, args, batches=queries.BATCHES)


def compare(
    workload: Workload,
    expected: Trace,
    observed: Trace,
    step_types: Collection[type],
    ignore: Collection[str],
) -> Difference:
    """Compare rejections and matches, each match as often as it came, whatever its epoch."""
    chosen = [word for word in RESULTS if word in step_types]
    one, other = _untimed(expected), _untimed(observed)
    return diff.compare(one, other, chosen, identity={}, ignore=("batch", *ignore))


def _untimed(trace: Trace) -> Trace:
    # In one epoch: with its epoch ignored, a match that came in two epochs would look like one.
    matches = [match._replace(batch=0) for match in trace.of(Match)]
    return Trace(trace.producer, [*matches, *trace.of(Rejected)])


def check(workload: Workload, trace: Trace, *, recording: Recording = COMPLETE) -> Judgement:
    """Judge the claims; in large recordings the pairs of a step are not counted again."""
    return judge(workload, trace, len(workload.arrivals) <= COUNTED_MAX, recording)


def settings(workload: Workload) -> Mapping[str, object]:
    """Return the settings of a chain, with columns and conditions as text."""
    config = JoinConfig.from_json(workload.config)
    kinds = config.kinds()
    texts: list[str] = []
    for name, predicate in config.queries:
        text = write_condition(predicate, kinds[R], kinds[S])
        texts.append(text if text == name else f"{name}: {text}")
    columns = {
        f"{stream.lower()}_columns": _bracketed(" ".join(each) for each in config.columns(stream))
        for stream in STREAMS
        if config.columns(stream)
    }
    return {**workload.config, "queries": _bracketed(texts), **columns}


def _bracketed(texts: Iterable[str]) -> str:
    return f"[{'; '.join(texts)}]"


# --------------------------------------------------------------------------- figures and guards


def most_workers(config: JoinConfig) -> int:
    """Return the largest number of workers that a chain ever has."""
    return max([config.workers, *(each.workers for each in config.decisions)])


def figures(seen: JudgedCase) -> Figures:
    """Return the results of the reference, and counts of the recorded protocol, if there is one."""
    observed = seen.observed
    config = JoinConfig.from_json(seen.case.workload.config)
    steps = sum(len(observed.of(word)) for word in PROTOCOL)
    received = observed.of(Receive)
    recorded = {
        "steps": steps,
        "blocks": len(observed.of(Forward)),
        "copies": sum(step.copies for step in received),
        "in_the_middle": sum(
            step.pairs
            for step in received
            if 0 < step.worker < decision_at(config, step.epoch).workers - 1
        ),
    }
    return {
        "tuples": len(seen.case.workload.arrivals),
        "matches": len(seen.expected.of(Match)) if Match in seen.step_types else 0,
        "rejected": len(seen.expected.of(Rejected)) if Rejected in seen.step_types else 0,
        "across_epochs": seen.evidence.guards["results across epochs"],
        "workers": most_workers(config),
        **{name: number if steps else None for name, number in recorded.items()},
    }


SHOWN = (
    Figure("tuples", "tuples"),
    Figure("matches", "matches"),
    Figure("rejected", "rejec-\nted"),
    Figure("blocks", "blocks"),
    Figure("copies", "copies\nmet"),
)


def summarise_agreement(sums: Mapping[str, float]) -> str:
    """Return how many matches and rejections agreed, over all cases."""
    matches, rejected = sums["matches"], sums["rejected"]
    return f"{matches:,} matches, each found once, and {rejected:,} rejected arrivals"


def guard(case: Case, figures: Figures) -> Verdict:
    """Require blocks, copies and pairs across epochs: one worker alone is no test of a chain."""
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
    occurred = f"{counted(int(figures['across_epochs'] or 0), 'match')} came across epochs"
    hint = " (more tuples, or a smaller --block-size, may help)"
    return judge_guard(GUARD, case, lacking[0] if lacking else "", occurred, hint)


EXPLORER = Explorer(scopes=tuple(SCOPES), everyday=EVERYDAY, explore=explore)

ROOM = Room(
    name="join",
    position=20,
    step_types=RESULTS,
    answers=ANSWERS,
    config=JoinConfig,
    protocol_types=PROTOCOL,
    inputs=f"{', '.join(inputs.NAMED)}",
    quick="--input january --lateness 1h",
    quick_s=8,
    batches=queries.BATCHES,
    options=queries.options,
    workers=queries.WORKERS,
    cases=cases,
    reference=make_system,
    spark=spark_pipeline(lambda: straggler.join.make_system),
    # With a slot more than workers, these stay from one epoch to the next.
    slots=lambda workload: most_workers(JoinConfig.from_json(workload.config)) + 1,
    in_process=lambda: straggler.join.run_in_process,
    in_process_step_types=RESULTS,
    compare=compare,
    check=check,
    refuse_query=limits.refuse_workload,
    figures=figures,
    shown=SHOWN,
    summarise_agreement=summarise_agreement,
    guard=guard,
    settings=settings,
    explorer=EXPLORER,
    refuse_settings=limits.refuse_settings,
    run=from_settings,
    timed=UNRECORDED,  # results are what is compared
    errata=ERRATA,
)
