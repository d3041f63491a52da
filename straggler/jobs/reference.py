"""Right answers: those of the job as a batch over the rows that count, and what fits to them."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import reduce
from itertools import combinations
from operator import or_
from typing import NamedTuple

from model.checking.claims import Outcome
from straggler.jobs import COMPLETE, UPDATE
from straggler.jobs.rows import Answer, Row
from straggler.jobs.running import JobProblem, Run, Runner
from straggler.jobs.shapes import Shape
from straggler.jobs.streams import LATE_MAX, Stream, in_order, split

AGGREGATES = ("stateStoreSave", "sessionWindowStateStoreSaveExec")
UNLIMITED = ("globalLimit", "localLimit")
"""Operators whose state is a few numbers."""
LAGS = "the last watermark did not pass all rows"
Answers = Counter[Answer]


class Judged(NamedTuple):
    """A stream, what the job answered, and whether it was right."""

    stream: Stream
    run: Run
    outcome: Outcome
    reason: str
    right: Answers
    """Answers of the batch over the rows in time."""
    guards: Mapping[str, int]

    @property
    def is_refused(self) -> bool:
        """Return whether the job fails without any row, so that there is no stream to show."""
        return bool(self.run.problem) and not self.stream.rows


class Reference:
    """The job without disorder, by which streams are judged; each multiset of rows asked once."""

    def __init__(
        self, runner: Runner, shape: Shape, flush: Sequence[Row], *, is_batch: bool
    ) -> None:
        """Answer by a batch, or by a stream of one sorted micro-batch before a flush.

        The rows of the flush move a watermark on after a stream.
        """
        self.runner, self.shape, self.is_batch = runner, shape, is_batch
        self.flush = tuple(flush)
        self._known: dict[str, Answers] = {}

    def answers(self, rows: Sequence[Row]) -> Answers:
        """Return the answers; raise :class:`JobProblem` if the job fails."""
        ordered = in_order(rows)
        key = "\n".join(row.text for row in ordered)
        if key not in self._known:
            self._known[key] = self.ask(ordered)
        return self._known[key]

    def ask(self, ordered: Sequence[Row]) -> Answers:
        """Return the answers to rows in their order, even if they are known."""
        if self.is_batch:
            return Counter(self.runner.batch(ordered))
        flush = self.flush if self.shape.is_flushed else ()
        run = self.runner.run(Stream((tuple(ordered),)), flush)
        if run.problem:
            raise JobProblem(run.problem)
        return final(run, self.shape)

    def compare_sink(self, rows: Sequence[Row], given: Answers) -> None:
        """Answer by the sink from now on if it has other rows than it is ``given`` all at once.

        The rows should be plain ones: a sink that loses what is special is no selection. Nor is one
        that fails: streams show what comes of it.
        """
        self.runner.is_selection = True
        try:
            self.runner.is_selection = self.ask(rows) != given
        except JobProblem:
            self.runner.is_selection = False
        self._known.clear()

    def judge(self, stream: Stream) -> Judged:
        """Run a stream, and say whether the answers are right for some choice of late rows."""
        judged = self._judge(stream, self.flush)
        if judged.reason == LAGS:
            # A filter of the job may have kept the usual rows from moving the watermark.
            far = self.shape.times.far_us
            copies = {repr((r.source, r.values)): r._replace(time_us=far) for r in stream.rows}
            judged = self._judge(stream, (*self.flush, *copies.values()))
        return judged

    def _judge(self, stream: Stream, flush: Sequence[Row]) -> Judged:
        flush = flush if self.shape.is_flushed else ()
        run = self.runner.run(stream, flush)
        in_time, late, positions = split(stream, self.shape.times)
        guards = guards_of(stream, run, set(positions), is_filtered=self.shape.is_filtered)

        def verdict(outcome: Outcome, reason: str, right: Answers | None = None) -> Judged:
            guards["answers"] = int(bool(right))
            for n, sides in enumerate(self.shape.matches):
                guards[f"matches {n}"] = sum(is_match(answer, sides) for answer in right or ())
            return Judged(stream, run, outcome, reason, right or Counter(), guards)

        try:
            right = self.answers(in_time)
        except JobProblem as problem:
            sentence = f"{problem}; give columns= if such rows cannot occur"
            return verdict(Outcome.UNDETERMINED, sentence)
        if run.problem or run.differing:
            return verdict(Outcome.BROKEN, run.problem or run.differing[0], right)
        if len(late) > LATE_MAX:
            sentence = f"a stream has more than {LATE_MAX} late rows"
            return verdict(Outcome.UNDETERMINED, sentence)
        choices = ([*in_time, *chosen] for chosen in subsets(late))
        if any(self._is_right(run, rows, stream, flush) for rows in choices):
            return verdict(Outcome.HOLDS, "", right)
        if late and self.shape.divides and self.is_right_in_parts(run, stream, flush):
            if self.shape.is_chain:
                guards["late, counted only"] = guards.pop("late")
            return verdict(Outcome.HOLDS, "", right)
        if reason := self._doubt(run, in_time, flush):
            return verdict(Outcome.UNDETERMINED, reason, right)
        what = "answers" if run.read is None else "rows in the sink"
        more = ", with any choice of late rows" if late else ""
        sentence = f"the {what} differ from those to the rows that came in time{more}"
        return verdict(Outcome.BROKEN, sentence, right)

    def _is_right(
        self, run: Run, rows: Sequence[Row], stream: Stream, flush: Sequence[Row]
    ) -> bool:
        """Return whether answers are those to certain rows, before or after the flush."""
        low, is_weak = self.answers(rows), self.shape.is_weak
        if run.read is None or not flush:
            before = final(run, self.shape, len(stream.batches) - 1)
            if fits(low, before, low, is_weak=is_weak):
                return True
        if not flush:
            return False
        got = final(run, self.shape)
        if not self.is_batch:  # the reference has the answers of the flush
            return fits(low, got, low, is_weak=is_weak)
        if fits(low, got, low + self.answers(flush), is_weak=is_weak):
            return True
        high = self.answers([*rows, *flush])
        return low <= high and fits(low, got, high, is_weak=is_weak)

    def is_right_in_parts(self, run: Run, stream: Stream, flush: Sequence[Row]) -> bool:
        """Return whether each answer is right for some choice of late rows.

        A right answer may be missing if another one stands for it, which counts late rows. Nobody
        knows the answers that a chain makes of windows some of which count a late row; their number
        is known.
        """
        in_time, late, _ = split(stream, self.shape.times)
        each = [self.answers([*in_time, *chosen]) for chosen in subsets(late)]
        low, some = each[0], reduce(or_, each)
        far = self.answers(flush) if flush and self.is_batch else Counter()

        def is_explained(got: Answers) -> bool:
            if self.shape.is_chain:
                is_possible = got.total() <= (some + far).total() + len(late)
                instead = got - low
            else:
                is_possible, instead = got <= some + far, (got - low) & (some - low)
            return is_possible and (low - got).total() <= instead.total()

        before = final(run, self.shape, len(stream.batches) - 1)
        return is_explained(final(run, self.shape)) or (run.read is None and is_explained(before))

    def _doubt(self, run: Run, rows: Sequence[Row], flush: Sequence[Row]) -> str:
        """Return why wrong answers prove nothing; an empty string if they do."""
        if not (flush and rows):
            return ""
        latest_us = max(row.time_us for row in rows) + self.shape.times.reach_us
        if run.watermark_us is None or run.watermark_us < latest_us:
            return LAGS
        if self.is_batch and not self.answers(rows) <= self.answers([*rows, *flush]):
            return "rows in the far future change the answers of earlier ones"
        return ""


def subsets(rows: Sequence[Row]) -> Iterator[tuple[Row, ...]]:
    """Yield the choices of late rows that may be in the answers: none and all of them first."""
    yield ()
    if rows:
        yield tuple(rows)
    for size in range(1, len(rows)):
        yield from combinations(rows, size)


def final(run: Run, shape: Shape, data: int | None = None) -> Answers:
    """Return the answers that stand after a data micro-batch, or in the end."""
    if run.read is not None:
        return Counter(run.read)
    if shape.mode == COMPLETE:
        kept = [each for each in run.batches if data is None or each.data <= data]
        return Counter(kept[-1].answers if kept else ())
    answers = run.answers(data)
    if shape.mode == UPDATE and shape.keys is not None:
        at = [run.columns.index(name) for name in shape.keys]
        return Counter({tuple(a[n] for n in at): a for a in answers}.values())
    return Counter(answers)


def is_match(answer: Answer, sides: Sequence[Sequence[int]]) -> bool:
    """Return whether an answer of an outer join has values of each side that may be missing."""
    return all(any(answer[place] != "null" for place in side) for side in sides)


def fits(low: Answers, got: Answers, high: Answers, *, is_weak: bool = False) -> bool:
    """Return whether answers have all that is right, and nothing beyond what may be there.

    A weak comparison asks that each right answer was given at some time.
    """
    if is_weak:
        return set(low) <= set(got)
    return low <= got and got <= high


def guards_of(
    stream: Stream, run: Run, late: Collection[int], *, is_filtered: bool = False
) -> Counter[str]:
    """Return how often each interesting case occurred in a stream.

    If a filter decides which rows move the watermark, a row counts as late only if the watermark of
    the query had reached it, and as almost late only if there was one.
    """
    found: Counter[str] = Counter()
    latest: dict[int, int] = {}
    seen: set[str] = set()
    at = -1
    for number, batch in enumerate(stream.batches):
        before = dict(latest)
        own = (each.watermark_us or 0 for each in run.batches if each.data == number)
        mark_us = next(own, 0)
        for row in batch:
            at += 1
            found["again"] += row.text in seen
            seen.add(row.text)
            found["disorder"] += row.time_us < latest.get(row.source, row.time_us)
            found["equal times"] += row.time_us == latest.get(row.source)
            is_behind = row.time_us < before.get(row.source, row.time_us)
            found["late"] += at in late and (not is_filtered or row.time_us <= mark_us)
            is_almost = is_behind and at not in late
            found["almost late"] += is_almost and (not is_filtered or mark_us > 0)
            latest[row.source] = max(latest.get(row.source, row.time_us), row.time_us)
    found["cuts"] = len(stream.batches) - 1
    found["restarts"] = len(run.happened)
    for fault in run.happened:
        states = [state for n in range(fault.batch + 1) for state in run.states(n)]
        found["restarts with state"] += any(state.rows for state in states)
    found["state"] = sum(state.rows for batch in run.batches for state in batch.states)
    return found


def judge_growth(judged: Judged) -> Judged:
    """Return the judgement of a stream of the same rows twice, which is broken if state stays."""
    sentence = _growth(judged.run, len(judged.stream.batches))
    if judged.outcome is Outcome.HOLDS and sentence:
        return judged._replace(outcome=Outcome.BROKEN, reason=sentence)
    return judged


def _growth(run: Run, batches: int) -> str:
    """Return a sentence on state that stays in a stream of the same rows twice, if any does."""
    first = run.states(1)
    last = run.states(batches) or run.states(batches - 1)
    for number, (before, after) in enumerate(zip(first, last, strict=False)):
        if after.operator in UNLIMITED or not after.rows:
            continue
        if after.rows > before.rows:
            return (
                f"operator {after.operator} keeps {after.rows} rows of state after a second round"
                f" of rows, {before.rows} after the first, although the watermark has passed them"
            )
        removed = sum(
            each.states[number].removed for each in run.batches if number < len(each.states)
        )
        if after.operator not in AGGREGATES and not removed:
            return f"operator {after.operator} never removes one of its {after.rows} rows of state"
    return ""
