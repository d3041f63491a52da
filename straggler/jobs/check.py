"""The check of a job, stage by stage: plan, shuffled batches, probes, drawn streams."""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from model.vocabulary import stable_hash
from straggler.errors import UsageError
from straggler.jobs import APPEND, COMPLETE, UPDATE
from straggler.jobs.plans import EXACT, ORDER, STATE, Remark, remarks
from straggler.jobs.reference import (
    UNDECIDED,
    WRONG,
    Judged,
    Rules,
    Twin,
    growth_of,
    judge_stream,
)
from straggler.jobs.rows import Input, Row, recorded_rows, special
from straggler.jobs.running import Job, JobProblem, Runner
from straggler.jobs.shapes import Shape, shape_of
from straggler.jobs.shrinking import shrink
from straggler.jobs.streams import (
    BASE_US,
    Recorded,
    Stream,
    Values,
    copied,
    growing,
    probes,
    streams,
    without,
)
from straggler.jobs.threads import map_in_order
from straggler.jobs.unfit import Unfit, find_unfit, fitted, fitted_stream
from straggler.strategies.examples import collect, collect_run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

THREADS = 3
LIMIT_S = 150.0
"""Longest time in which a stream may make no progress."""
POOL = 12
"""Number of drawn values that probes use."""
FAR = 3
"""Number of rows of each input that move the watermark on."""
SHUFFLES = 12
RUN = 6
UNSUPPORTED = (
    "AnalysisException",
    "PySparkNotImplementedError",
    "UnsupportedOperationException",
)
"""Errors of a job that runs as no batch."""
LATE = "late rows are accounted for"
RESTARTS = "restarts do not matter"
ACCOUNTED = "every row is accounted for"
REDELIVERY = "redelivery does not matter"


@dataclass
class Check:
    """A job on trial, and what was found about it so far."""

    runner: Runner
    job: Job
    shape: Shape
    rules: Rules
    values: Values
    flush: tuple[Row, ...]
    twin: Twin
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
    growth: str | None = None
    """Sentence on state that stays; empty if none does, ``None`` if it was not asked."""
    rows: list[list[Row]] = field(default_factory=list)
    """Two orders of the same rows that the job answers differently."""

    # --------------------------------------------------------------------------------- streams

    def judge(self, stream: Stream) -> Judged:
        """Judge one stream."""
        judged = judge_stream(self.runner, self.twin, self.rules, stream, self.flush)
        if judged.outcome == UNDECIDED and "watermark did not pass" in judged.reason:
            # A filter of the job may have kept the usual rows from moving the watermark.
            far = self.shape.times.far_us
            copies = {repr((r.source, r.values)): r._replace(time_us=far) for r in stream.rows}
            flush = (*self.flush, *copies.values())
            judged = judge_stream(self.runner, self.twin, self.rules, stream, flush)
        return judged

    def judge_all(self, chosen: Sequence[Stream]) -> Iterable[Judged]:
        """Judge streams side by side, in order."""
        return map_in_order(self.judge, chosen, threads=THREADS, limit_s=LIMIT_S)

    def try_streams(self, chosen: Sequence[Stream]) -> None:
        """Judge streams until one fails."""
        for judged in self.judge_all(chosen):
            self.note(judged)
            if judged.outcome == WRONG:
                self.fail(judged)
                return

    def note(self, judged: Judged) -> None:
        """Count what a stream had."""
        self.streams += 1
        if judged.outcome == UNDECIDED:
            self.doubts.append(judged.reason)
            return
        self.guards += Counter(judged.guards)
        self.guards["special"] += any(special(row) for row in judged.stream.rows)

    def fail(self, judged: Judged) -> None:
        """Shrink a failing stream, and find the claim that it breaks."""
        again = self.judge(judged.stream)
        self.streams += 1
        if again.outcome != WRONG:
            self.doubts.append("the job answers the same stream differently from run to run")
            return

        def first_failing(chosen: Sequence[Stream]) -> int | None:
            for number, each in enumerate(self.judge_all(chosen)):
                self.streams += 1
                if each.outcome == WRONG:
                    return number
            return None

        small = shrink(judged.stream, first_failing, THREADS)
        found = self.judge(small)
        self.failed = found if found.outcome == WRONG else again
        self.claim = self.claim_of(self.failed)

    def is_wrong(self, stream: Stream) -> bool:
        """Return whether the job fails on a stream."""
        self.streams += 1
        return self.judge(stream).outcome == WRONG

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
        ordered = sorted(stream.rows, key=lambda row: row.time_us)
        if self.is_wrong(Stream((tuple(ordered),))):
            return EXACT
        is_behind = failed.guards.get("almost late") or failed.guards.get("late")
        return LATE if is_behind else ORDER

    # ------------------------------------------------------------------------------------ values

    def choose_twin(self) -> None:
        """Take a stream of a sorted micro-batch for the twin if the job runs as no batch."""
        if not self.twin.is_batch:  # timers of event time make no sense in a batch
            return
        try:
            self.runner.batch(self.flush)
        except JobProblem as error:
            if type(error.__cause__).__name__ in UNSUPPORTED:
                self.twin = Twin(self.runner, self.rules, self.flush, is_batch=False)

    def leave_out_unfit(self, streams: Sequence[Stream]) -> tuple[list[Stream], str]:
        """Return streams without values on which the job fails; or why it fails on others too."""
        inputs = self.job.inputs
        rows = [*self.flush, *(row for stream in streams for row in stream.rows)]
        self.unfit, problem = find_unfit(inputs, rows, self.failure)
        if self.unfit:
            self.values = self.values.map(lambda row: fitted(row, self.unfit))
            self.flush = flush_of(self.values, self.shape)
            self.twin = self.twin.with_flush(self.flush)
        return [fitted_stream(each, self.unfit, inputs) for each in streams], problem

    def failure(self, rows: Sequence[Row]) -> str:
        """Return why the job fails on rows without disorder; an empty text if it does not."""
        try:
            self.twin.answers(rows)
        except JobProblem as problem:
            return str(problem)
        return ""

    # ---------------------------------------------------------------------------------- batches

    def try_shuffles(self) -> None:
        """Ask the batch for the same rows in other orders."""
        if not self.twin.is_batch:
            return
        draws = random.Random(self.seed)
        number = len(self.job.inputs)
        lists = []
        for nth in range(SHUFFLES):
            times = [
                BASE_US + draws.choice((0, 0, 1, 2)) * self.shape.times.window_us // 2
                for _ in range(6)
            ]
            rows = [
                self.values.row(s, us, (nth + n) % POOL)
                for n, us in enumerate(times)
                for s in range(number)
            ]
            lists.append(rows)

        def differs(rows: list[Row]) -> list[Row] | None:
            rng = random.Random(len(rows))
            for _ in range(2):
                other = rng.sample(rows, len(rows))
                if Counter(self.runner.batch(rows)) != Counter(self.runner.batch(other)):
                    return other
            return None

        for rows, other in zip(
            lists,
            map_in_order(differs, lists, threads=THREADS, limit_s=LIMIT_S),
            strict=True,
        ):
            if other is not None:
                self.rows = self._shrunk(rows, other)
                self.claim = ORDER
                return

    def _shrunk(self, rows: list[Row], other: list[Row]) -> list[list[Row]]:
        """Return the fewest rows found whose two orders have different answers."""
        at = 0
        while at < len(rows) and len(rows) > 2:
            fewer = rows[:at] + rows[at + 1 :]
            rest = list(other)
            rest.remove(rows[at])
            if Counter(self.runner.batch(fewer)) != Counter(self.runner.batch(rest)):
                rows, other = fewer, rest
            else:
                at += 1
        return [rows, other]

    # ------------------------------------------------------------------------------------ state

    def try_growth(self) -> None:
        """Ask whether state stays although the watermark has passed its rows."""
        stream = growing(self.shape.times, self.values)
        (judged,) = self.judge_all([stream])
        self.note(judged)
        if judged.outcome == WRONG and self.failed is None:
            self.fail(judged)
        if judged.outcome != UNDECIDED:  # else the watermark may not have passed the rows
            self.growth = growth_of(judged.run, len(stream.batches))


# ------------------------------------------------------------------------------------ the check


def begin(
    spark: "SparkSession",
    job: Job,
    *,
    seed: int,
    lateness_us: int | None,
    upsert: Sequence[str] | None,
    rows: Any = None,
) -> Check:
    """Read the plan of a job; raise :class:`JobProblem` if it fails."""
    frame = Runner(spark, job).streaming()
    shape = shape_of(frame, job.inputs, lateness_us)
    inputs = tuple(
        each
        if each.identity
        else replace(
            each,
            identity=tuple([name for name in shape.duplicates if name in each.schema.names]),
        )
        for each in job.inputs
    )
    job = replace(job, inputs=inputs)
    runner = Runner(spark, job)
    recorded, left_out = recorded_rows(spark, inputs, rows)
    if recorded:
        latest_us = max(row.time_us for each in recorded for row in each)
        shape = replace(shape, times=shape.times._replace(latest_us=latest_us))
    drawn = [
        [row.values for row in recorded[s][:POOL]] if recorded else plain_values(each, seed)
        for s, each in enumerate(inputs)
    ]
    values = Values(inputs, drawn)
    flush = flush_of(values, shape)
    rules = Rules(
        *_keys(job, frame, shape, upsert),
        shape.times.lateness_us,
        shape.has_watermark,
        shape.times.reach_us,
        shape.divides,
        shape.is_chain,
    )
    return Check(
        runner, job, shape, rules, values, flush,
        Twin(runner, rules, flush, is_batch=not shape.needs_rocks),
        seed, (*remarks(frame, mode=job.mode), *[Remark(e, False) for e in left_out]), recorded,
    )  # fmt: skip


def flush_of(values: Values, shape: Shape) -> tuple[Row, ...]:
    """Return rows in the far future, which move the watermark on."""
    far_us = shape.times.far_us
    return tuple([values.row(s, far_us, n) for s in range(len(values.inputs)) for n in range(FAR)])


def _keys(
    job: Job, frame: "DataFrame", shape: Shape, upsert: Sequence[str] | None
) -> tuple[str, tuple[str, ...] | None]:
    """Return how answers stay, as a mode, and the columns by which later ones replace them."""
    if job.mode != UPDATE:
        return job.mode, ()
    for name in upsert or ():
        if name not in frame.columns:
            raise UsageError(f"upsert names {name!r}, which is no column of the answers")
    if upsert or shape.replaces:
        return UPDATE, tuple(upsert) if upsert else shape.groups
    return APPEND, ()


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
    check.choose_twin()
    edges = [copied(each, check.job.inputs) for each in probes(check.shape.times, check.values)]
    streams, problem = check.leave_out_unfit([*edges, *drawn_streams(check, number)])
    if problem:
        problem = f"{problem}; give columns= if such rows cannot occur"
    elif check.twin.is_batch:
        rows = [row for stream in streams[:3] for row in stream.rows]
        if check.twin.answers(rows) != Counter(check.runner.batch(rows)):
            problem = "the job answers the same rows differently each time"
    return streams[: len(edges)], streams[len(edges) :], problem


def run_stages(
    check: Check, edges: Sequence[Stream], drawn: Sequence[Stream], *, keeps_state: bool
) -> None:
    """Run the stages of a check until one finds a failure."""
    check.try_shuffles()
    if keeps_state:
        check.remarks = tuple([e for e in check.remarks if not (e.is_broken and e.claim == STATE)])
    if check.claim:
        return
    check.try_streams(edges)
    asks_state = check.job.mode != COMPLETE and check.shape.has_state and not keeps_state
    if check.failed is None and asks_state:
        check.try_growth()
    if check.failed is None and not check.growth and not any(r.is_broken for r in check.remarks):
        check.try_streams(drawn)


def drawn_streams(check: Check, number: int) -> list[Stream]:
    """Return streams that Hypothesis draws, the same ones for the same seed.

    The first of a run is always the simplest, and the others tend to repeat each other.
    """
    strategy = streams(check.job.inputs, check.shape.times, check.recorded)
    found: list[Stream] = []
    for run in range(-(-number // RUN)):
        drawn = collect_run(strategy, RUN + 1, stable_hash(f"{check.seed} {run}"))[1:]
        found += [each for each in drawn if each.batches]
    return found[:number]
