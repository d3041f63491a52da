"""What is right: the job as a batch over the rows that count, and which answers fit to it."""

import threading
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import reduce
from itertools import combinations
from operator import or_
from typing import NamedTuple

from straggler.jobs import APPEND, COMPLETE, UPDATE
from straggler.jobs.rows import Answer, Row
from straggler.jobs.running import JobProblem, Run, Runner
from straggler.jobs.streams import LATE_MAX, Stream, split, total

RIGHT, WRONG, UNDECIDED = "right", "wrong", "undecided"
AGGREGATES = ("stateStoreSave", "sessionWindowStateStoreSaveExec")
UNLIMITED = ("globalLimit", "localLimit")
"""Operators whose state is a few numbers."""
Answers = Counter[Answer]


class Rules(NamedTuple):
    """How the answers of a job are compared."""

    mode: str = APPEND
    keys: tuple[str, ...] | None = ()
    """Columns whose last answer counts in update mode, and ``None`` if they are not known."""
    lateness_us: tuple[int | None, ...] = (0,)
    has_watermark: bool = True
    reach_us: int = 0
    """Time after a row that the last watermark has to pass: the longest window."""
    divides: bool = False
    """Whether a late row may count in some of its answers, and not in others."""
    is_chain: bool = False
    """Whether further answers are made of such answers, or sessions, which late rows split."""

    @property
    def is_flushed(self) -> bool:
        """Whether rows in the far future have to move a watermark on."""
        return self.has_watermark and self.mode != COMPLETE

    @property
    def is_weak(self) -> bool:
        """Whether nobody knows which answer replaces which, so that none can be too many."""
        return self.mode == UPDATE and self.keys is None


class Judged(NamedTuple):
    """A stream, what the job answered, and whether it was right."""

    stream: Stream
    run: Run
    outcome: str
    reason: str
    right: Answers
    """Answers of the batch over the rows in time."""
    guards: Mapping[str, int]


class Twin:
    """Answers of the job to rows without disorder, each multiset of rows asked once."""

    def __init__(
        self, runner: Runner, rules: Rules, flush: Sequence[Row], *, is_batch: bool
    ) -> None:
        """Answer by a batch, or by a stream of one sorted micro-batch before a flush."""
        self._runner, self._rules = runner, rules
        self.is_batch, self._flush = is_batch, flush if rules.is_flushed else ()
        self._known: dict[str, Answers | JobProblem] = {}
        self._lock = threading.Lock()

    def with_flush(self, flush: Sequence[Row]) -> "Twin":
        """Return a twin with other rows in the far future."""
        return Twin(self._runner, self._rules, flush, is_batch=self.is_batch)

    def answers(self, rows: Sequence[Row]) -> Answers:
        """Return the answers; raise :class:`JobProblem` if the job fails."""
        key = total(rows)
        with self._lock:
            found = self._known.get(key)
        if found is None:
            try:
                found = self._ask(rows)
            except JobProblem as problem:
                found = problem
            with self._lock:
                self._known[key] = found
        if isinstance(found, JobProblem):
            raise found
        return found

    def _ask(self, rows: Sequence[Row]) -> Answers:
        if self.is_batch:
            return Counter(self._runner.batch(rows))
        ordered = sorted(rows, key=lambda row: (row.time_us, row.text))
        run = self._runner.run(Stream((tuple(ordered),)), self._flush)
        if run.problem:
            raise JobProblem(run.problem)
        return final(run, self._rules)


def subsets(rows: Sequence[Row]) -> Iterator[tuple[Row, ...]]:
    """Yield the choices of late rows that may be in the answers: none and all of them first."""
    yield ()
    if rows:
        yield tuple(rows)
    for size in range(1, len(rows)):
        yield from combinations(rows, size)


def final(run: Run, rules: Rules, data: int | None = None) -> Answers:
    """Return the answers that stand after a data micro-batch, or in the end."""
    if run.read is not None:
        return Counter(run.read)
    if rules.mode == COMPLETE:
        kept = [each for each in run.batches if data is None or each.data <= data]
        return Counter(kept[-1].answers if kept else ())
    answers = run.answers(data)
    if rules.mode == UPDATE and rules.keys is not None:
        at = [run.columns.index(name) for name in rules.keys]
        return Counter({tuple(a[n] for n in at): a for a in answers}.values())
    return Counter(answers)


def fits(low: Answers, got: Answers, high: Answers, *, is_weak: bool = False) -> bool:
    """Return whether answers have all that is right, and nothing beyond what may be there.

    A weak comparison asks that each right answer was given at some time.
    """
    if is_weak:
        return set(low) <= set(got)
    return low <= got and got <= high


def judge_stream(
    runner: Runner, twin: Twin, rules: Rules, stream: Stream, flush: Sequence[Row]
) -> Judged:
    """Run a stream, and say whether the answers are right for some choice of late rows."""
    flush = flush if rules.is_flushed else ()
    run = runner.run(stream, flush)
    in_time, late, positions = split(stream, rules.lateness_us)
    guards = guards_of(stream, run, set(positions))

    def verdict(outcome: str, reason: str, right: Answers | None = None) -> Judged:
        guards["answers"] = int(bool(right))
        return Judged(stream, run, outcome, reason, right or Counter(), guards)

    try:
        right = twin.answers(in_time)
    except JobProblem as problem:
        return verdict(UNDECIDED, f"{problem}; give columns= if such rows cannot occur")
    if run.problem:
        return verdict(WRONG, run.problem, right)
    if run.differing:
        return verdict(WRONG, run.differing[0], right)
    if len(late) > LATE_MAX:
        return verdict(UNDECIDED, f"a stream has more than {LATE_MAX} late rows")
    choices = ([*in_time, *chosen] for chosen in subsets(late))
    if any(is_right(run, twin, rules, rows, stream, flush) for rows in choices):
        return verdict(RIGHT, "", right)
    if late and rules.divides and is_right_in_parts(run, twin, rules, stream, flush):
        if rules.is_chain:
            guards["late, counted only"] = guards.pop("late")
        return verdict(RIGHT, "", right)
    if reason := doubt(run, twin, rules, in_time, flush):
        return verdict(UNDECIDED, reason, right)
    what = "answers are" if run.read is None else "rows in the sink are"
    more = ", with any choice of late rows" if late else ""
    return verdict(WRONG, f"the {what} not those to the rows in time{more}", right)


def is_right(
    run: Run, twin: Twin, rules: Rules, rows: Sequence[Row], stream: Stream, flush: Sequence[Row]
) -> bool:
    """Return whether answers are those to certain rows, before or after the flush."""
    low = twin.answers(rows)
    if not (flush or twin.is_batch):
        return fits(low, final(run, rules), low, is_weak=rules.is_weak)
    if run.read is None or not flush:
        before = final(run, rules, len(stream.batches) - 1)
        if fits(low, before, low, is_weak=rules.is_weak):
            return True
    if not flush:
        return False
    got = final(run, rules)
    if not twin.is_batch:  # the twin has the answers of the flush
        return fits(low, got, low, is_weak=rules.is_weak)
    if fits(low, got, low + twin.answers(flush), is_weak=rules.is_weak):
        return True
    high = twin.answers([*rows, *flush])
    return low <= high and fits(low, got, high, is_weak=rules.is_weak)


def is_right_in_parts(
    run: Run, twin: Twin, rules: Rules, stream: Stream, flush: Sequence[Row]
) -> bool:
    """Return whether each answer is right for some choice of late rows, not all for the same one.

    A right answer may be missing if another one stands for it, which counts late rows. Nobody knows
    the answers that a chain makes of windows some of which count a late row; their number is known.
    """
    in_time, late, _ = split(stream, rules.lateness_us)
    each = [twin.answers([*in_time, *chosen]) for chosen in subsets(late)]
    low, some = each[0], reduce(or_, each)
    far = twin.answers(flush) if flush and twin.is_batch else Counter()

    def is_explained(got: Answers) -> bool:
        if rules.is_chain:
            is_possible = got.total() <= (some + far).total() + len(late)
            instead = got - low
        else:
            is_possible, instead = got <= some + far, (got - low) & (some - low)
        return is_possible and (low - got).total() <= instead.total()

    before = final(run, rules, len(stream.batches) - 1)
    return is_explained(final(run, rules)) or (run.read is None and is_explained(before))


def doubt(run: Run, twin: Twin, rules: Rules, rows: Sequence[Row], flush: Sequence[Row]) -> str:
    """Return why wrong answers prove nothing; an empty string if they do."""
    times = [row.time_us for row in rows]
    if flush and times:
        if run.watermark_us is None or run.watermark_us < max(times) + rules.reach_us:
            return "the last watermark did not pass all rows"
        if twin.is_batch:
            low = twin.answers(rows)
            if not low <= twin.answers([*rows, *flush]):
                return "rows in the far future change the answers of earlier ones"
    return ""


def guards_of(stream: Stream, run: Run, late: Collection[int]) -> Counter[str]:
    """Return how often each interesting case occurred in a stream."""
    found: Counter[str] = Counter()
    latest: dict[int, int] = {}
    seen: set[str] = set()
    at = -1
    for batch in stream.batches:
        before = dict(latest)
        for row in batch:
            at += 1
            found["again"] += row.text in seen
            seen.add(row.text)
            found["disorder"] += row.time_us < latest.get(row.source, row.time_us)
            found["equal times"] += row.time_us == latest.get(row.source)
            is_behind = row.time_us < before.get(row.source, row.time_us)
            found["almost late"] += is_behind and at not in late
            latest[row.source] = max(latest.get(row.source, row.time_us), row.time_us)
    found["cuts"] = len(stream.batches) - 1
    found["late"] = len(late)
    found["restarts"] = len(run.happened)
    for fault in run.happened:
        states = [state for n in range(fault.batch + 1) for state in run.states(n)]
        found["restarts with state"] += any(state.rows for state in states)
    found["state"] = sum(state.rows for batch in run.batches for state in batch.states)
    return found


def growth_of(run: Run, batches: int) -> str:
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
