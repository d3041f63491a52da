"""Contracts of a query of every room: resumption, replays, its sink, its history, one writer.

A store lives through a first plan that Spark could not write, an empty history, a redelivered file,
a sink that fails and a lost commit.
Each contract is asked of that one life, or of a copy of its folder that is damaged: of one or
two rooms by day, and of all at night. By day the promise that every row is accounted for hands rows
to queries of all rooms, which are opened again and repeat a micro-batch.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_impl.retention import drop_before
from spark_impl.runtime.histories import numbers
from spark_impl.runtime.storage import InputProblem, Location, locate
from spark_impl.runtime.stores import CHECKPOINT
from spark_impl.runtime.systems import lose_commit
from spark_impl.runtime.tables import DataFile, TableWriter, plan_of
from tests.spark_impl.rooms_under_test import (
    AGAIN,
    FIRST,
    LAST,
    LATER,
    PROBLEMS,
    ROOMS,
    Room,
    Rows,
    Sink,
    land,
)

READINGS = (*FIRST, *AGAIN, *LAST)


class Kept:
    """Rows that a sink was given, by micro-batch; it fails when it is told to."""

    def __init__(self) -> None:
        self.rows: dict[int, Rows] = {}
        self.calls: list[int] = []
        self.fails = False

    def __call__(self, rows: DataFrame, batch: int) -> None:
        found = sorted(rows.toArrow().to_pylist(), key=repr)
        assert repr(self.rows.get(batch, found)) == repr(found), "another content"
        self.rows[batch] = found
        self.calls.append(batch)
        if self.fails:
            self.fails = False
            raise OSError("the sink is full")


class Life(NamedTuple):
    """A store and its history, when everything has happened."""

    name: str
    room: Room
    folder: Path
    """Folder of ``history`` and ``store``."""
    kept: Kept
    first_call: int
    """Number of the micro-batch that the sink was given first, behind an empty history."""

    def copy(self, to: Path) -> tuple[Path, Path]:
        """Copy history and store, to damage them."""
        for name in ("history", "store"):
            shutil.copytree(self.folder / name, to / name)
        return to / "history", to / "store"


def leave_torn_plan(checkpoint: Path) -> None:
    """Leave scratch files, as Spark does when it fails while it writes its first plan."""
    plans = checkpoint / "offsets"
    plans.mkdir(parents=True)
    (plans / ".0.1d77352c.tmp").touch()
    (plans / "..0.1d77352c.tmp.crc").touch()


@pytest.fixture(scope="module", params=ROOMS)
def life(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Life:
    """Let a store live: every run is a query of its own, opened anew."""
    name: str = request.param
    folder = tmp_path_factory.mktemp(name)
    history, store, kept = folder / "history", folder / "store", Kept()
    history.mkdir()

    def run(sink: Sink = kept) -> None:
        ROOMS[name].open(spark, history, store, sink=sink).run_available()

    query = ROOMS[name].open(spark, history, store, sink=kept)
    leave_torn_plan(store / "_checkpoint")
    query.run_available()
    assert not any(kept.rows.values()), "there was nothing to hand on"
    kept.calls.clear()
    land(history, FIRST)
    run()
    land(history, AGAIN)
    kept.fails = True
    with pytest.raises(PROBLEMS, match=r"^the sink is full$"):
        run()
    land(history, LAST)
    run()
    lose_commit(store / CHECKPOINT)
    ROOMS[name].open(spark, history, store, sink=kept).flush()
    return Life(name, ROOMS[name], folder, kept, kept.calls[0])


@pytest.fixture(params=ROOMS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def nothing(rows: DataFrame, batch: int) -> None:
    """Read the rows as a sink does, and keep none."""
    rows.collect()


def content(folder: Path) -> dict[str, bytes]:
    """Return what is in a folder."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


# ------------------------------------------------------------------------------ answers


def test_answers_are_those_of_a_loop_whatever_has_happened(spark: SparkSession, life: Life) -> None:
    expected = life.room.expected(READINGS)
    assert life.room.fold(life.kept.rows) == expected
    if life.name != "grouping":
        assert life.room.found(spark, life.folder / "store") == expected


def test_a_sink_is_called_again_for_what_failed_or_was_not_committed(life: Life) -> None:
    """The sink itself asserts that a micro-batch has the same rows every time."""
    first, again, last = (life.first_call + n for n in range(3))
    calls = [first, again, again, last, last]
    assert life.kept.calls[: len(calls)] == calls
    assert life.kept.calls[len(calls) :] in ([], [last + 1]), "the flush at most"


# ----------------------------------------------------------------------------- refusals


def test_a_store_of_other_settings_is_refused(spark: SparkSession, life: Life) -> None:
    store = life.folder / "store"
    before = content(store)
    for name, value in life.room.other.items():
        with pytest.raises(InputProblem, match=f"belongs to another .*{name}.*, not .*{value}"):
            life.room.open(spark, life.folder / "history", store, sink=nothing, **{name: value})
    assert content(store) == before


def test_a_store_is_refused_over_another_history(
    spark: SparkSession, life: Life, tmp_path: Path
) -> None:
    store = life.folder / "store"
    before = content(store)
    land(tmp_path, FIRST)
    sentence = f"^{store} belongs to the history .* at {life.folder}/history, not to {tmp_path}"
    with pytest.raises(InputProblem, match=sentence):
        life.room.open(spark, tmp_path, store, sink=nothing)
    land(tmp_path, LAST)
    with pytest.raises(InputProblem, match=sentence):
        drop_before(tmp_path, 1, readers=[store])
    assert content(store) == before


def test_a_second_writer_is_refused(
    spark: SparkSession, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver stands still before it commits, and another one commits the same micro-batch.

    The other one has a copy of the checkpoint, and goes on.
    """
    room = ROOMS[name]
    history, store, kept = begun(spark, room, tmp_path)
    land(history, AGAIN)
    commit, plans = TableWriter.commit, list[Location]()

    def commit_second(
        writer: TableWriter,
        batch: int,
        written: Sequence[DataFile],
        removed: Sequence[DataFile],
    ) -> None:
        copies = [
            each._replace(file=each.file.parent / f"its-{each.file.name}") for each in written
        ]
        for each, its in zip(written, copies, strict=True):
            its.file.write_bytes(each.file.read_bytes())
        other = TableWriter(locate(store), checkpoint=locate(tmp_path / "copy"))
        for plan in writer.checkpoint, other.checkpoint:
            assert plan is not None
            plans.append(plan_of(plan, batch))
        planned = plans[0].read_bytes()
        plans[1].write_bytes(planned.replace(b'"batchTimestampMs":', b'"batchTimestampMs": '))
        commit(other, batch, copies, removed)
        commit(writer, batch, written, removed)

    monkeypatch.setattr(TableWriter, "commit", commit_second)
    sentence = r"has micro-batch \d+ already: another query has written it"
    with pytest.raises(PROBLEMS, match=f"{sentence}, and nothing of this one counts"):
        room.open(spark, history, store, sink=kept).run_available()
    monkeypatch.undo()
    land(history, LAST)
    with pytest.raises(InputProblem, match=f"{sentence}, with other rows than .*/offsets/"):
        room.open(spark, history, store, sink=kept).run_available()
    plan, other = plans
    (plan.parent / f".{plan.name}.crc").remove()
    other.move(plan)  # now it is the checkpoint of the other one
    room.open(spark, history, store, sink=kept).flush()
    assert room.fold(kept.rows) == room.expected(READINGS)


def test_a_checkpoint_that_was_lost_is_missed(
    spark: SparkSession, life: Life, tmp_path: Path
) -> None:
    history, store = life.copy(tmp_path)
    shutil.rmtree(store / "_checkpoint")
    with pytest.raises(InputProblem, match=r"store/_checkpoint is not the checkpoint of .*/store"):
        life.room.open(spark, history, store, sink=nothing).run_available()


# --------------------------------------------------------------------------- the history


def begun(spark: SparkSession, room: Room, tmp_path: Path) -> tuple[Path, Path, Kept]:
    """Return a store that has not been flushed, its history, and a sink with all that it kept."""
    history, store, kept = tmp_path / "history", tmp_path / "store", Kept()
    land(history, FIRST)
    room.open(spark, history, store, sink=kept).run_available()
    return history, store, kept


@pytest.mark.fails_tasks
def test_files_that_are_lost_torn_or_dropped(
    spark: SparkSession, name: str, tmp_path: Path
) -> None:
    """A history that lacks its next file, or has half of it, stops a query; then it goes on.

    What every reader has read may be removed, and nothing else.
    """
    room = ROOMS[name]
    history, store, kept = begun(spark, room, tmp_path)

    def run() -> None:
        room.open(spark, history, store, sink=kept).run_available()

    for readings in (AGAIN, LAST):
        land(history, readings)
    following = history / "00000001.parquet"
    whole = following.read_bytes()
    following.unlink()
    with pytest.raises(PROBLEMS, match=r"00000001.parquet is missing, but 00000002.parquet is"):
        run()
    following.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(PROBLEMS, match=r"00000001.parquet is not a Parquet file, or it is not com"):
        run()
    assert len(kept.calls) == 1
    following.write_bytes(whole)
    with pytest.raises(InputProblem, match=rf"^number is 2; it can be at most 1, because {store}"):
        drop_before(history, 2, readers=[store])
    assert drop_before(history, 1, readers=[store]) == 1
    run()
    if name in ("slack", "watermark"):  # a late reading waits for a correction
        with pytest.raises(InputProblem, match=r"cannot be removed: late pairs in .* wait for "):
            drop_before(history, 2, readers=[store])
    land(history, LATER)
    room.open(spark, history, store, sink=kept).flush()
    assert drop_before(history, 3, readers=[store]) == 3
    assert numbers(locate(history)) == range(3, 4)
    assert room.fold(kept.rows) == room.expected((*READINGS, *LATER))
