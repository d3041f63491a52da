"""Reports on a job: its verdicts, and a stream on which it fails as a table of micro-batches."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby
from typing import Any

from model.checking.claims import Outcome, Verdict, worst
from model.vocabulary.settings import JsonObject
from straggler.jobs.reference import Judged, final
from straggler.jobs.rows import EPOCH, Answer, Input, Row, text_of
from straggler.jobs.running import MicroBatch
from straggler.jobs.shapes import Shape

SHOWN = 8
"""Most answers of a kind that a report shows."""


@dataclass(frozen=True)
class JobReport:
    """The verdicts on a job."""

    job: str
    verdicts: tuple[Verdict, ...]
    seed: int
    streams: int
    """Number of streams that ran."""
    remarks: tuple[str, ...] = ()
    table: tuple[str, ...] = ()
    """The smallest failing stream, line by line."""
    guards: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    rows: JsonObject | None = None
    """The rows to which the job is wrong, as plain data that ``straggler replay`` takes."""

    @property
    def outcome(self) -> Outcome:
        """The worst of the outcomes."""
        return worst(each.outcome for each in self.verdicts)

    def __str__(self) -> str:
        """Return the report as lines of text."""
        shown = [*folded(self.verdicts)]
        width = max((len(each.claim) for each in shown), default=0)
        wide = max(map(len, Outcome))
        lines = [f"{self.job}: {self.outcome} ({self.streams} streams, seed {self.seed})"]
        lines += [
            f"  {each.claim:{width}}  {each.outcome:{wide}}  {each.sentence}".rstrip()
            for each in shown
        ]
        told = {each.sentence for each in self.verdicts}
        lines += [f"  note: {each}" for each in self.remarks if each not in told]
        return "\n".join([*lines, *([""] if self.table else []), *self.table])

    def to_json(self) -> JsonObject:
        """Return the report as plain data."""
        return {
            "job": self.job,
            "outcome": str(self.outcome),
            "seed": self.seed,
            "streams": self.streams,
            "seconds": round(self.seconds, 1),
            "verdicts": [
                {"claim": each.claim, "outcome": str(each.outcome), "sentence": each.sentence}
                for each in self.verdicts
            ],
            "remarks": list(self.remarks),
            "guards": dict(self.guards),
            "table": list(self.table),
        }


def folded(verdicts: Sequence[Verdict]) -> Iterator[Verdict]:
    """Yield verdicts, and at the end one for all claims that are undetermined for one reason."""
    doubts = Counter(e.sentence for e in verdicts if e.outcome is Outcome.UNDETERMINED)
    many = {sentence: number for sentence, number in doubts.items() if number > 1}
    alone = [e for e in verdicts if e.outcome is not Outcome.UNDETERMINED or e.sentence not in many]
    yield from alone
    for sentence, number in many.items():
        claims = f"{number} further claims" if alone else f"{number} claims"
        yield Verdict(claims, Outcome.UNDETERMINED, sentence)


def table_of(judged: Judged, shape: Shape, inputs: Sequence[Input]) -> list[str]:
    """Return a failing stream as lines: each micro-batch, its watermark, rows and answers."""
    stream, run = judged.stream, judged.run
    right, got = judged.right, final(run, shape)
    lines = [f"The smallest failing stream found has {len(stream.rows)} rows:", ""]
    cells = [("micro-batch", "watermark", "rows", "answers")]
    for data, batches in groupby(run.batches, lambda batch: batch.data):
        given = ["(rows in the far future)"]
        if data < len(stream.batches):
            given = [describe_row(row, inputs) for row in stream.batches[data]]
        for batch in batches:
            cells += _lines(batch, given)
            given = ["(no rows: the watermark moves)"]
        cells += [("", "", f"({each.kind})", "") for each in run.happened if each.batch == data]
    widths = [max(len(row[n]) for row in cells) for n in range(4)]
    for row in cells:
        lines.append(
            "  " + "  ".join(f"{c:{w}}" for c, w in zip(row, widths, strict=True)).rstrip()
        )
    lines += ["", f"  columns of answers: {', '.join(run.columns)}"]
    lines += _some("right", right)
    lines += _some("missing", right - got)
    if shape.keys or not shape.has_watermark:
        lines += _some("not right", got - right)
    return [*lines, "", judged.reason]


def _lines(batch: MicroBatch, rows: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
    answers = [", ".join(each) for each in batch.answers[:SHOWN]]
    watermark = "-" if not batch.watermark_us else describe_time(batch.watermark_us)
    for n in range(max(1, len(rows), len(answers))):
        yield (
            str(batch.number) if n == 0 else "",
            watermark if n == 0 else "",
            rows[n] if n < len(rows) else "",
            answers[n] if n < len(answers) else "",
        )


def _some(word: str, answers: Counter[Answer]) -> Iterator[str]:
    found = sorted(answers.elements())
    for answer in found[:SHOWN]:
        yield f"  {word}: {', '.join(answer)}"
    if len(found) > SHOWN:
        yield f"  {word}: {len(found) - SHOWN} more"


def describe_time(time_us: int) -> str:
    """Return an event time as people read it (UTC)."""
    return str((EPOCH + timedelta(microseconds=time_us)).replace(tzinfo=None))


def describe_row(row: Row, inputs: Sequence[Input]) -> str:
    """Return a row with the names of its columns."""
    of = inputs[row.source]
    values: list[tuple[str, Any]] = [(of.event_time, describe_time(row.time_us))]
    values += [(e.name, text_of(v)) for e, v in zip(of.others, row.values, strict=True)]
    name = f"{of.name}: " if len(inputs) > 1 else ""
    return name + " ".join(f"{column}={text}" for column, text in values)
