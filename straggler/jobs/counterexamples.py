"""Rows to which a job has wrong answers, as small files that ``straggler replay`` runs again.

Rules of this file:

* A file is data: rows as Spark writes them in JSON, faults, and what was asked of the job. It names
  the job, and whoever replays it says whether that is loaded.
* Rows are stored only if reading the file gives the same rows again.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from model.checking.claims import Outcome
from model.vocabulary import stable_hash
from model.vocabulary.durations import duration_us, write_duration
from model.vocabulary.settings import JsonObject, PlainData
from model.vocabulary.trace import refuse_long_integers
from straggler.errors import UsageError
from straggler.inputs.text_files import write_output
from straggler.jobs.check import Check
from straggler.jobs.plans import STATE
from straggler.jobs.reference import judge_growth
from straggler.jobs.report import JobReport, table_of
from straggler.jobs.rows import Frames, Row, answers_of, rows_of
from straggler.jobs.schemas import quoted
from straggler.jobs.streams import KILLED, LOST_COMMIT, RESTART, Fault, Stream
from straggler.judging.counterexamples import JOB, layout, slug

ASKED: Mapping[str, Any] = {
    "schema": str | dict,
    "event_time": str | dict,
    "mode": str,
    "keys": list,
    "lateness": str | None,
    "upsert": list | None,
    "redelivered": list,
}
"""Arguments of ``judge_job`` that a file holds, and their types."""
OPTIONS = {
    "ignoreNullFields": "false",
    "mode": "FAILFAST",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


class Failing(NamedTuple):
    """Rows to which a job has wrong answers."""

    claim: str
    stream: Stream
    flush: tuple[Row, ...]
    """Rows that move the watermark on after the stream."""


def replay(check: Check, failing: Failing) -> tuple[Outcome, list[str]]:
    """Ask again whether a job is wrong to stored rows; return what is to be shown as well."""
    far_us = check.shape.times.far_us
    check.set_flush([r._replace(time_us=max(far_us, r.time_us)) for r in failing.flush])
    check.choose_reference()
    judged = check.reference.judge(failing.stream)
    if failing.claim == STATE:
        judged = judge_growth(judged)
    if judged.outcome is not Outcome.BROKEN:
        return judged.outcome, [judged.reason] * bool(judged.reason)
    return Outcome.BROKEN, table_of(judged, check.shape, check.job.inputs)


def plain_rows(frames: Frames, failing: Failing) -> JsonObject | None:
    """Return failing rows as plain data; ``None`` if reading it would not give them again."""
    try:
        batches = [_to_plain(frames, batch) for batch in (*failing.stream.batches, failing.flush)]
        faults = [[*fault] for fault in failing.stream.faults]
        found = {"micro-batches": batches[:-1], "faults": faults, "flush": batches[-1:]}
        written = json.loads(layout({"claim": failing.claim, **found}))
        refuse_long_integers(written)
        again = read_rows(frames, written)
        is_same = _texts(frames, again) == _texts(frames, failing)
    except Exception:  # a type that Spark does not write
        return None
    return {"claim": failing.claim, **found} if is_same else None


def _to_plain(frames: Frames, batch: Sequence[Row]) -> list[Any]:
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own habit)
    from pyspark.sql import types as sql

    found = []
    for row in batch:
        of, frame = frames.inputs[row.source], frames.frame(row.source, [row])
        # Decimals are texts, because numbers of JSON are not exact.
        texts = re.sub(r'(?<=ype":)"decimal\(\d+,\d+\)"', '"string"', of.schema.json())
        columns = [
            F.col(quoted(each.name)).cast(each.dataType).alias(each.name)
            if each != of.schema[each.name]
            else F.col(quoted(each.name))
            for each in sql.StructType.fromJson(json.loads(texts))
        ]
        written = frame.select(F.to_json(F.struct(*columns), OPTIONS)).collect()
        cells = json.loads(written[0][0])
        found.append(cells if frames.is_single else {of.name: cells})
    return found


def _texts(frames: Frames, failing: Failing) -> list[object]:
    rows = [*failing.stream.rows, *failing.flush]
    cells = [answers_of(frames.frame(row.source, [row]).collect()) for row in rows]
    return [failing.stream.faults, list(map(len, failing.stream.batches)), cells]


def read_rows(frames: Frames, record: JsonObject) -> Failing:
    """Return the rows of a file; raise ``ValueError``, or what Spark raises, for any other data."""
    batches = [tuple([_row(frames, each) for each in batch]) for batch in record["micro-batches"]]
    (flush,) = record["flush"]
    faults = tuple([Fault(str(kind), int(at), int(skips)) for kind, at, skips in record["faults"]])
    for fault in faults:
        if fault.kind not in (RESTART, LOST_COMMIT, KILLED):
            msg = f"there is no fault {fault.kind!r}"
            raise ValueError(msg)
    if not (batches and flush):
        msg = "there is no micro-batch" if not batches else "the flush has no rows"
        raise ValueError(msg)
    stream = Stream(tuple(batches), faults)
    return Failing(str(record["claim"]), stream, tuple([_row(frames, each) for each in flush]))


def _row(frames: Frames, cells: JsonObject) -> Row:
    from pyspark.sql import functions as F  # noqa: N812

    names = [each.name for each in frames.inputs]
    name, cells = next(iter(cells.items())) if len(names) > 1 else (names[0], cells)
    of = frames.inputs[names.index(name)]
    text = frames.spark.createDataFrame([(json.dumps(cells),)], "cells string")
    frame = text.select(F.from_json("cells", of.schema, OPTIONS).alias("row")).select("row.*")
    if cells.get(of.event_time) is None:
        msg = f"a row of {name} has no {of.event_time}"
        raise ValueError(msg)
    (row,) = rows_of(frame, of, names.index(name))
    return row


def store(folder: Path, job: str, asked: JsonObject, broken: str, rows: JsonObject) -> Path:
    """Write a counterexample into a folder, and return its path, which ends with a digest."""
    head = {"counterexample": JOB, "job": job, "asked": dict(asked), "broken": [broken]}
    text = layout({**head, **rows}) + "\n"
    words = f"job-{slug(job)}-{slug(broken.partition(':')[0])}"
    path = folder / f"{words}-{stable_hash(text) & 0xFFFFFFFF:08x}.json"
    write_output(path, text)
    return path


def store_report(folder: Path, job: str, asked: JsonObject, report: JobReport) -> Path:
    """Store the rows of a report on a broken job, with what :func:`read_asked` takes of ``asked``.

    ``job`` is its ``MODULE:JOB``. Raise :class:`UsageError` if they cannot be written.
    """
    assert report.rows is not None
    broken = next(each for each in report.verdicts if each.claim == report.rows["claim"])
    kept = {key: _plain(asked[key]) for key in ASKED if key in asked}
    return store(folder, job, kept, f"{broken.claim}: {broken.sentence}", report.rows)


def _plain(value: Any) -> PlainData:
    """Return an argument of ``judge_job`` as a file holds it: schemas and times are texts."""
    if isinstance(value, timedelta):
        return write_duration(duration_us("lateness", value))
    if hasattr(value, "fields"):  # the session of Spark that writes DDL may have ended
        return _columns(value, " ")
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str) else value


def _columns(kind: Any, between: str) -> str:
    """Return the fields of a type of Spark as DDL."""
    needed = ["" if each.nullable else " NOT NULL" for each in kind]
    names = [f"{quoted(each.name)}{between}{_type(each.dataType)}" for each in kind]
    return ", ".join(map("".join, zip(names, needed, strict=True)))


def _type(kind: Any) -> str:
    """Return a type of Spark as DDL, whatever the names in it are."""
    if hasattr(kind, "fields"):
        return f"struct<{_columns(kind, ': ')}>"
    if hasattr(kind, "elementType"):
        return f"array<{_type(kind.elementType)}>"
    if hasattr(kind, "keyType"):
        return f"map<{_type(kind.keyType)}, {_type(kind.valueType)}>"
    return str(kind.simpleString())


def read_asked(name: str, record: JsonObject) -> tuple[str, dict[str, Any]]:
    """Return the name of the job and what was asked of it; refuse anything but plain words."""
    job, asked = record.get("job"), record.get("asked")
    if not isinstance(job, str) or not isinstance(asked, dict):
        raise UsageError(f"{name} is not a counterexample: it has no job, or nothing is asked")
    for key, value in asked.items():
        if key not in ASKED or not isinstance(value, ASKED[key]):
            raise UsageError(f"{name} is not a counterexample: it asks {key}={value!r} of the job")
    for key in ("schema", "event_time"):
        if key not in asked:
            raise UsageError(f"{name} is not a counterexample: it has no {key}")
    return job, asked
