"""The check of a job, stage by stage: plan, probes, drawn streams."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from model.checking.claims import Outcome
from model.vocabulary import stable_hash
from straggler.jobs import COMPLETE
from straggler.jobs.plans import EXACT, ORDER, STATE, Remark, remarks
from straggler.jobs.reference import Judged, Reference, judge_growth
from straggler.jobs.rows import Input, Row, recorded_rows, special, strata_of
from straggler.jobs.running import Job, JobProblem, Runner
from straggler.jobs.shapes import Shape, shape_of
from straggler.jobs.shrinking import shrink
from straggler.jobs.streams import (
    Recorded,
    Stream,
    Values,
    copied,
    growing,
    in_order,
    probes,
    streams,
    without,
)
from straggler.jobs.threads import map_in_order
from straggler.jobs.unfit import Unfit, find_unfit, fitted, fitted_stream
from straggler.strategies.examples import collect, collect_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

THREADS = 3
LIMIT_S = 150.0
"""Longest time in which a stream may make no progress."""
POOL = 12
"""Number of drawn values that probes use."""
FAR = 3
"""Number of rows of each input that move the watermark on."""
FEW = "the values of the columns that identify rows are too few to see whether state stays"
GROWING = (3, 1)
"""Numbers of rows in whose state growth is looked for; the fewest with any are shown."""
RUN = 6
UNSUPPORTED = (
    "AnalysisException",
    "PySparkNotImplementedError",
    "UnsupportedOperationException",
)
"""Errors of a job that runs as no batch."""
PROBED = (
    "probes of windows and lateness have the values of recorded rows at other event times, around"
    " 2026-01-01"
)
LATE = "late rows are accounted for"
RESTARTS = "restarts do not matter"
ACCOUNTED = "every row is accounted for"
REDELIVERY = "redelivery does not matter"


@dataclass
class Check:
    """A job on trial, and what was found about it so far."""

    job: Job
    shape: Shape
    reference: Reference
    values: Values
    seed: int
    remarks: tuple[Remark, ...] = ()
    recorded: Recorded = ()
    doubts: list[str] = field(default_factory=list)
    guards: Counter[str] = field(default_factory=Counter)
    streams: int = 0
    unfit: tuple[Unfit, ...] = ()
    """Values on which the job fails, which no stream has."""
    failed: Judged | None = None
    claim: str = ""
    """Name of the claim that the failing stream breaks."""
    knows_growth: bool = False
    """True if a stream of the same rows twice has shown if state stays."""

    # --------------------------------------------------------------------------------- streams

    def judge_all(self, chosen: Sequence[Stream]) -> Iterable[Judged]:
        """Judge streams side by side, in order."""
        return map_in_order(self.reference.judge, chosen, threads=THREADS, limit_s=LIMIT_S)

    def judge(self, stream: Stream) -> Judged:
        """Judge one stream; raise :class:`straggler.jobs.threads.HangsError` if it hangs."""
        (judged,) = self.judge_all([stream])
        return judged

    def try_streams(self, chosen: Sequence[Stream]) -> None:
        """Judge streams until one fails."""
        for judged in self.judge_all(chosen):
            self.note(judged)
            if judged.outcome is Outcome.BROKEN:
                self.fail(judged)
                return

    def note(self, judged: Judged) -> None:
        """Count what a stream had."""
        self.streams += 1
        if judged.outcome is Outcome.UNDETERMINED:
            self.doubts.append(judged.reason)
            return
        self.guards += Counter(judged.guards)
        self.guards["special"] += any(special(row) for row in judged.stream.rows)

    def fail(self, judged: Judged) -> None:
        """Shrink a failing stream, and find the claim that it breaks."""
        again = self.judge(judged.stream)
        self.streams += 1
        if again.outcome is not Outcome.BROKEN:
            self.doubts.append("the job answers the same stream differently from run to run")
            return
        self.failed, self.claim = again, EXACT  # what is known if the job hangs in what follows

        def first_failing(chosen: Sequence[Stream]) -> int | None:
            for number, each in enumerate(self.judge_all(chosen)):
                self.streams += 1
                if each.outcome is Outcome.BROKEN:
                    return number
            return None

        def is_possible(smaller: Stream) -> bool:
            return copied(smaller, self.job.inputs) == smaller

        small = shrink(judged.stream, first_failing, is_possible=is_possible)
        found = self.judge(small)
        self.failed = found if found.outcome is Outcome.BROKEN else again
        self.claim = self.claim_of(self.failed)

    def is_wrong(self, stream: Stream) -> bool:
        """Return whether the job fails on a stream."""
        self.streams += 1
        return self.judge(stream).outcome is Outcome.BROKEN

    def claim_of(self, failed: Judged) -> str:
        """Return the claim that a small failing stream breaks."""
        stream = failed.stream
        if failed.run.differing or (
            failed.run.happened and not self.is_wrong(stream._replace(faults=()))
        ):
            return RESTARTS
        plain = self.values
        tidy = stream.map(lambda r: plain.row(r.source, r.time_us) if special(r) else r)
        is_tidy = tidy != stream and not any(map(special, tidy.rows))
        if is_tidy and not self.is_wrong(tidy._replace(faults=())):
            return ACCOUNTED
        texts = [row.text for row in stream.rows]
        again = [n for n, text in enumerate(texts) if text in texts[:n]]
        is_asked = again and any(each.identity for each in self.job.inputs)
        if is_asked and not self.is_wrong(without(stream, again)):
            return REDELIVERY
        if self.is_wrong(Stream((tuple(in_order(stream.rows)),))):
            return EXACT
        is_behind = failed.guards.get("almost late") or failed.guards.get("late")
        return LATE if is_behind else ORDER

    # ------------------------------------------------------------------------------------ values

    def choose_reference(self) -> None:
        """Take a stream of a sorted micro-batch as reference if the job runs as no batch."""
        if not self.reference.is_batch:  # timers of event time make no sense in a batch
            return
        try:
            self.reference.ask(self.reference.flush)
        except JobProblem as error:
            if type(error.__cause__).__name__ in UNSUPPORTED:
                self.reference.is_batch = False

    def set_flush(self, flush: Sequence[Row]) -> None:
        """Let other rows in the far future move the watermark on."""
        old = self.reference
        self.reference = Reference(old.runner, self.shape, flush, is_batch=old.is_batch)

    def leave_out_unfit(self, streams: Sequence[Stream]) -> tuple[list[Stream], str]:
        """Return streams without values on which the job fails; or why it fails on others too."""
        inputs = self.job.inputs
        rows = [*self.reference.flush, *(row for stream in streams for row in stream.rows)]
        self.unfit, problem = find_unfit(inputs, rows, self.failure)
        if self.unfit:
            self.values = self.values.map(lambda row: fitted(row, self.unfit))
            self.set_flush(flush_of(self.values, self.shape))
        return [fitted_stream(each, self.unfit, inputs) for each in streams], problem

    def failure(self, rows: Sequence[Row]) -> str:
        """Return why the job fails on rows without disorder; an empty text if it does not."""
        try:
            self.reference.answers(rows)
        except JobProblem as problem:
            return str(problem)
        return ""

    # ------------------------------------------------------------------------------------ state

    def try_growth(self) -> None:
        """Ask whether state stays although the watermark has passed its rows."""
        for number in GROWING:
            stream = growing(self.shape.times, self.values, number)
            if copied(stream, self.job.inputs) != stream:
                self.remarks += (Remark(FEW, False, STATE),)
                return
            usual = self.reference
            if number < FAR:  # what stays is compared with as many rows in the far future
                self.set_flush(flush_of(self.values, self.shape, number))
            judged = self.judge(stream)
            if self.failed is None:
                self.note(judged)
                if judged.outcome is Outcome.BROKEN:
                    self.fail(judged)
                    return
            grown = judge_growth(judged)
            if grown.outcome is not Outcome.BROKEN or judged.outcome is Outcome.BROKEN:
                self.reference = usual
                break
            self.failed, self.claim = grown, STATE
        else:
            self._begin_with_one_input(stream)
        # Otherwise the watermark may not have passed the rows.
        self.knows_growth = judged.outcome is not Outcome.UNDETERMINED

    def _begin_with_one_input(self, stream: Stream) -> None:
        """Show a stream whose first micro-batch has rows of one input alone, if state stays in it.

        Later ones need rows of all inputs, which move the watermark on.
        """
        for source in range(len(self.job.inputs)):
            others = [n for n, row in enumerate(stream.batches[0]) if row.source != source]
            grown = judge_growth(self.judge(without(stream, others))) if others else None
            if grown is not None and grown.outcome is Outcome.BROKEN:
                self.failed = grown
                return


# ------------------------------------------------------------------------------------ the check


def begin(
    spark: "SparkSession",
    job: Job,
    seed: int = 0,
    lateness_us: int | None = None,
    upsert: Sequence[str] | None = None,
    rows: Any = None,
) -> Check:
    """Read the plan of a job; raise :class:`JobProblem` if it fails."""
    frame = Runner(spark, job).streaming()
    shape = shape_of(frame, job.inputs, job.mode, lateness_us=lateness_us, upsert=upsert or ())
    inputs, told = assume_identity(job.inputs, shape)
    job = replace(job, inputs=inputs)
    recorded, left_out = recorded_rows(spark, inputs, rows)
    if recorded:
        latest_us = max(row.time_us for each in recorded for row in each)
        shape = replace(shape, times=shape.times._replace(latest_us=latest_us))
        told.append(PROBED)
    drawn = [
        [row.values for row in recorded[s][:POOL]] if recorded else plain_values(each, seed)
        for s, each in enumerate(inputs)
    ]
    values = Values(inputs, drawn)
    flush, is_batch = flush_of(values, shape), not shape.needs_rocks
    reference = Reference(Runner(spark, job), shape, flush, is_batch=is_batch)
    told += left_out
    found = (*remarks(frame, mode=job.mode), *[Remark(each, False) for each in told])
    return Check(job, shape, reference, values, seed, found, recorded)


def assume_identity(inputs: Iterable[Input], shape: Shape) -> tuple[tuple[Input, ...], list[str]]:
    """Return inputs whose rows something identifies, and sentences on what was assumed for that."""
    found, told, duplicates = [], [], shape.duplicates
    for of in inputs:
        names = of.identity or tuple([name for name in duplicates if name in of.schema.names])
        if names != of.identity and len(names) < len(of.schema.names):
            told.append(
                f"the job drops duplicates by {', '.join(names)}: rows of {of.name} that agree in "
                "these are copies, unless redelivered= names what else identifies a row"
            )
        found.append(replace(of, identity=names, is_united=shape.is_united))
    if duplicates and not any(each.identity for each in found):
        told.append(
            f"the job drops duplicates by {', '.join(duplicates)}, which no input has: "
            "name the columns that identify a row with redelivered="
        )
    return tuple(found), told


def flush_of(values: Values, shape: Shape, number: int = FAR) -> tuple[Row, ...]:
    """Return this number of rows of each input in the far future, which move the watermark on."""
    far_us, sources = shape.times.far_us, range(len(values.inputs))
    return tuple([values.row(s, far_us, n) for s in sources for n in range(number)])


def plain_values(of: Input, seed: int) -> list[tuple[object, ...]]:
    """Return drawn values for probes, without nulls and the like as far as possible."""
    strategy = of.values()
    drawn = collect(strategy, 4 * POOL, seed)
    plain = [each for each in drawn if not special(Row(0, 0, each))]
    return (plain + drawn)[:POOL]


def calibrate(check: Check, number: int) -> tuple[list[Stream], list[Stream], str]:
    """Return probes, a number of drawn streams, and why the job cannot be judged, if so.

    Find out whether it runs as a batch, and on which values it fails.
    """
    check.choose_reference()
    edges = [copied(each, check.job.inputs) for each in probes(check.shape.times, check.values)]
    streams, problem = check.leave_out_unfit([*edges, *drawn_streams(check, number)])
    if problem:
        problem = f"{problem}; give columns= if such rows cannot occur"
    elif check.reference.is_batch:
        rows = [row for stream in streams[:3] for row in stream.rows]
        answers = check.reference.ask(rows)
        if answers != check.reference.ask(rows):
            problem = "the job answers the same rows differently each time"
        elif check.job.sink:
            check.reference.compare_sink(rows, answers)
    return streams[: len(edges)], streams[len(edges) :], problem


def run_stages(
    check: Check, edges: Sequence[Stream], drawn: Sequence[Stream], *, keeps_state: bool
) -> None:
    """Run the stages of a check until one finds a failure."""
    if keeps_state:
        check.remarks = tuple([e for e in check.remarks if not (e.is_broken and e.claim == STATE)])
    check.try_streams(edges)
    asks_state = check.guards["state"] and check.job.mode != COMPLETE and not keeps_state
    if check.failed is None and asks_state:
        check.try_growth()
    if check.failed is None and not any(r.is_broken for r in check.remarks):
        check.try_streams(drawn)


def drawn_streams(check: Check, number: int) -> list[Stream]:
    """Return streams that Hypothesis draws, the same ones for the same seed.

    The first of a run is always the simplest, and the others tend to repeat each other. Recorded
    rows begin at special ones in the first run, at equal times in the next, then anywhere.
    """
    strata = [strata_of(rows) for rows in check.recorded]
    found: list[Stream] = []
    for run in range(-(-number // RUN)):
        places = [each[run % len(each)] for each in strata]
        strategy = streams(check.job.inputs, check.shape.times, check.recorded, places)
        drawn = collect_run(strategy, RUN + 1, stable_hash(f"{check.seed} {run}"))[1:]
        found += [each for each in drawn if each.batches]
    return found[:number]
