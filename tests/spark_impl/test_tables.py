"""Tables of stores: who commits, what counts, what readers are told, and who else can read them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from spark_impl.runtime import tables
from spark_impl.runtime.queries import require_checkpoint
from spark_impl.runtime.storage import InputProblem, Location, locate
from spark_impl.runtime.stores import Draft, TableStore, claim, require_view
from spark_impl.runtime.tables import TableWriter, plan_of

IDENTITY = {"version": 1}
COLUMNS = {
    "result": pa.schema([("site", pa.string()), ("start_us", pa.int64()), ("value", pa.float64())]),
    "pending": pa.schema([("site", pa.string()), ("start_us", pa.int64())]),
}


@dataclass(frozen=True, slots=True)
class MadeStore(TableStore):
    """A store with two kinds of rows."""

    replaced = ("pending",)

    @property
    def kinds(self) -> Mapping[str, pa.Schema]:
        return COLUMNS


def make(root: Path | Location | str) -> MadeStore:
    store = MadeStore(locate(root))
    claim(store, IDENTITY)
    return store


def rows(first: int, count: int = 3) -> pa.Table:
    starts = range(first, first + count)
    return pa.table([["a"] * count, [*starts], [float(each) for each in starts]], COLUMNS["result"])


def draft_of(store: MadeStore, writer: TableWriter, batch: int) -> Draft:
    """Return a micro-batch whose answers begin at ten times its number."""
    draft = Draft(store, writer, batch)
    draft.write("result", rows(10 * batch))
    draft.replace("pending", rows(batch, 1).drop(["value"]))
    return draft


def starts(store: MadeStore, kind: str = "result") -> list[int]:
    return sorted(store.at().read_kind(kind).column("start_us").to_pylist())


def test_a_version_has_all_rows_of_its_micro_batches(place: Location) -> None:
    store = make(place / "s")
    writer = TableWriter(store.root)
    for batch in range(3):
        draft_of(store, writer, batch).commit()
    assert (store.at().view.last, Draft(store, writer, 2).is_new) == (2, False)
    assert starts(store) == [0, 1, 2, 10, 11, 12, 20, 21, 22]
    assert starts(store, "pending") == [2], "the others were replaced"
    view = require_view(store.root)
    assert store.at(view).read_kind("result", 1).column("start_us").to_pylist() == [10, 11, 12]
    assert [each.bounds["start_us"] for each in view.of("result", 1, 1)] == [(10, 12)]
    assert view.identity == IDENTITY


def test_of_two_writers_the_second_one_stops_with_a_sentence(place: Location) -> None:
    store = make(place / "s")
    suspended, other = TableWriter(store.root), TableWriter(store.root)
    late = draft_of(store, suspended, 0)
    draft_of(store, other, 0).commit()
    sentence = "has micro-batch 0 already: another query has written it, and nothing of this one"
    with pytest.raises(InputProblem, match=sentence):
        late.commit()
    for batch in range(1, 4):
        draft_of(store, other, batch).commit()
    assert starts(store) == [*range(3), *range(10, 13), *range(20, 23), *range(30, 33)]
    suspended.look()
    with pytest.raises(
        InputProblem, match="is at micro-batch 1, its table is at 3; another query runs on it"
    ):
        Draft(store, suspended, 1)


def test_a_micro_batch_counts_as_done_for_those_who_planned_its_rows(place: Location) -> None:
    """A copy of a checkpoint has planned other rows under the number that was committed."""
    store = make(place / "s")
    own, other = store.root / "own", store.root / "other"

    def writer_of(checkpoint: Location) -> TableWriter:
        return TableWriter(store.root, checkpoint=checkpoint)

    for batch, plans in enumerate((("0", "0"), ("1 of own", "1 of other"), ("2", "2 of other"))):
        for checkpoint, plan in zip((own, other), plans, strict=True):
            plan_of(checkpoint, batch).write_bytes(plan.encode())
    draft_of(store, writer_of(own), 0).commit()
    assert not Draft(store, writer_of(other), 0).is_new, "it was copied behind this plan"
    slow = writer_of(other)
    draft_of(store, writer_of(own), 1).commit()
    assert not Draft(store, writer_of(own), 1).is_new
    sentence = (
        r"/s\S* has micro-batch 1 already: another query has written it, with .*/other/offsets/1"
    )
    for refused in (1, 2):
        with pytest.raises(InputProblem, match=sentence):
            Draft(store, writer_of(other), refused)
    with pytest.raises(InputProblem, match=sentence):  # its own micro-batch 1 had no rows
        Draft(store, slow, 2)
    with pytest.raises(InputProblem, match=sentence):
        require_checkpoint(other, writer_of(other), 1)
    require_checkpoint(own, writer_of(own), 1)
    plan_of(own, 1).remove()  # as Spark does a hundred micro-batches later
    require_checkpoint(own, writer_of(own), 1)
    draft_of(store, writer_of(own), 2).commit()
    assert starts(store) == [0, 1, 2, 10, 11, 12, 20, 21, 22]


@pytest.mark.parametrize("is_other_quicker", [False, True])
@pytest.mark.parametrize("only_removes", [False, True])
def test_a_commit_counts_although_the_log_cannot_be_summed_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, only_removes: bool, is_other_quicker: bool
) -> None:
    """A commit does not count if another writer was quicker."""
    often = {**tables._SETTINGS, "delta.checkpointInterval": "3"}
    monkeypatch.setattr(tables, "_SETTINGS", often)
    store = make(tmp_path / "s")
    (tmp_path / "s" / "_delta_log" / f"{2:020d}.checkpoint.parquet" / "taken").mkdir(parents=True)
    writer, other, told = TableWriter(store.root), TableWriter(store.root), list[str]()
    working = tables._working

    @contextmanager
    def listen(root: Location, how: str) -> Iterator[None]:
        try:
            with working(root, how):
                yield
        except InputProblem as error:
            told.append(str(error))
            raise

    monkeypatch.setattr(tables, "_working", listen)
    draft_of(store, writer, 0).commit()
    other.look()
    drafts = [Draft(store, each, 1) for each in (other, writer)]
    for draft in drafts:
        draft.removed += draft.view.of("pending")
        if not only_removes:
            draft.write("result", rows(10))
    if is_other_quicker:
        drafts[0].commit()
        with pytest.raises(InputProblem, match="has written it, and nothing of this one counts"):
            drafts[1].commit()
    else:
        drafts[1].commit()
    assert told, "nothing has failed"
    assert starts(store) == [0, 1, 2, *(() if only_removes else (10, 11, 12))]
    assert starts(store, "pending") == []


def test_a_writer_counts_its_files_once_if_another_one_follows_a_failing_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make(tmp_path / "s")
    writer, other = TableWriter(store.root), TableWriter(store.root)
    write, read = DeltaTable.create_write_transaction, DeltaTable.history

    def write_and_fail(table: DeltaTable, *given: Any, **named: Any) -> None:
        write(table, *given, **named)
        monkeypatch.undo()
        monkeypatch.setattr(DeltaTable, "history", read_and_note)
        message = "the log cannot be summed up"
        raise DeltaError(message)

    def read_and_note(table: DeltaTable) -> list[dict[str, Any]]:
        monkeypatch.undo()
        other.note_history({"id": "x"})
        return read(table)

    monkeypatch.setattr(DeltaTable, "create_write_transaction", write_and_fail)
    draft_of(store, writer, 0).commit()
    assert writer.look() == require_view(store.root)


def test_a_writer_that_stood_still_while_the_log_was_cleaned_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    soon = {**tables._SETTINGS, "delta.logRetentionDuration": "interval 0 seconds"}
    monkeypatch.setattr(tables, "_SETTINGS", {**soon, "delta.checkpointInterval": "3"})
    store = make(tmp_path / "s")
    suspended, writer = TableWriter(store.root), TableWriter(store.root)
    late = draft_of(store, suspended, 0)
    for batch in range(10):
        draft_of(store, writer, batch).commit()
    log = tmp_path / "s" / "_delta_log"
    assert not (log / f"{1:020d}.json").exists()
    with pytest.raises(InputProblem, match="another query has written it"):
        late.commit()
    assert not (log / f"{1:020d}.json").exists()
    assert len(starts(store)) == 30


def test_a_micro_batch_without_rows_is_a_version_without_files(tmp_path: Path) -> None:
    store = make(tmp_path / "s")
    writer = TableWriter(store.root)
    for batch in range(3):
        Draft(store, writer, batch).commit()
    view = require_view(store.root)
    assert (view.last, view.version, view.files) == (2, 3, [])
    assert not Draft(store, writer, 2).is_new
    draft_of(store, writer, 3).commit()
    assert starts(store) == [30, 31, 32]


def test_a_writer_goes_on_behind_another_one(tmp_path: Path) -> None:
    """Both writers were made before one of them committed what the checkpoint says."""
    store = make(tmp_path / "s")
    later, writer = TableWriter(store.root), TableWriter(store.root)
    for batch in range(2):
        draft_of(store, writer, batch).commit()
    draft_of(store, later, 2).commit()
    assert starts(store) == [*range(3), *range(10, 13), *range(20, 23)]
    assert starts(store, "pending") == [2]


@pytest.mark.parametrize("damage", ["lose", "cut", "lengthen"])
def test_readers_miss_a_damaged_file(tmp_path: Path, damage: str) -> None:
    store = make(tmp_path / "s")
    writer = TableWriter(store.root)
    for batch in range(2):
        draft_of(store, writer, batch).commit()
    (file,) = (tmp_path / "s" / "kind=result").glob("00000001-*.parquet")
    content = file.read_bytes()
    file.unlink()
    if damage != "lose":
        file.write_bytes(content[:-9] if damage == "cut" else content + b"more")
    sentence = f"s has lost {file.name} with 3 rows of kind 'result', or a part of it"
    with pytest.raises(InputProblem, match=sentence):
        store.at().read_kind("result")
    view = require_view(store.root)
    with pytest.raises(InputProblem, match=sentence):
        store.require_whole(view.of("result"))
    assert starts(store, "pending") == [1]


def test_tidying_up_keeps_rows_and_what_recent_readers_have_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "TIDIED", 4)
    store = make(tmp_path / "s")
    writer, expected = TableWriter(store.root), list[int]()
    for batch in range(20):
        before = require_view(store.root)
        draft_of(store, writer, batch).commit()
        expected += range(10 * batch, 10 * batch + 3)
        assert starts(store) == expected
        seen, read = writer.view, require_view(store.root)
        assert replace(seen, files=sorted(seen.files)) == replace(read, files=sorted(read.files))
        assert store.at(before).read_kind("result").num_rows == len(expected) - 3
        assert len(require_view(store.root).of("result")) <= 4
    assert len(list((tmp_path / "s" / "kind=result").iterdir())) > 20


def test_tidying_up_removes_what_no_recent_version_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = {**tables._SETTINGS, "delta.deletedFileRetentionDuration": "interval 0 seconds"}
    monkeypatch.setattr(tables, "_SETTINGS", now)
    monkeypatch.setattr(tables, "TIDIED", 4)
    store = make(tmp_path / "s")
    writer = TableWriter(store.root)
    names = ("_checkpoint/offsets/0", "_control/1", "spark/offsets/0")
    kept = [tmp_path / "s" / name for name in names]
    for file in kept:
        file.parent.mkdir(parents=True)
        file.touch()
    for batch in range(20):
        draft_of(store, writer, batch).commit()
        store.write("result", batch, rows(77), f"of-a-dead-task-{batch}")
    assert len(starts(store)) == 60
    assert len(list((tmp_path / "s" / "kind=result").iterdir())) < 10
    assert all(file.exists() for file in kept)


@pytest.mark.parametrize("name", ["a%20b", r"a\b", "a\nb"])
def test_paths_that_delta_takes_for_others_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputProblem, match="cannot be a store: its path has a backslash"):
        make(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_half_made_table_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "s" / "_delta_log").mkdir(parents=True)
    (tmp_path / "s" / "_delta_log" / "_commit_4711.json.tmp").touch()
    assert make(tmp_path / "s").at().view.last == -1
