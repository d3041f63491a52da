"""Files of a history that were rewritten, swapped or brought from elsewhere are named."""

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_impl import slack
from spark_impl.retention import drop_before
from spark_impl.runtime import histories, history_chain, provenance
from spark_impl.runtime.failures import QueryProblem
from spark_impl.runtime.histories import append, file_of, numbers, read_parquet
from spark_impl.runtime.history_chain import (
    NOTE,
    note_landed,
    note_of_next,
    require_chain,
    require_landed,
)
from spark_impl.runtime.provenance import note_history, open_history
from spark_impl.runtime.sources import HistoryReader
from spark_impl.runtime.storage import InputProblem, Location, locate
from spark_impl.runtime.stores import require_view
from spark_impl.runtime.tables import TableWriter
from tests.spark_impl.rooms_under_test import FIRST, LAST, ROOMS, land
from tests.spark_impl.test_tables import make

FILES = 6


def history(folder: Path | Location, files: int = FILES, first: int = 0) -> Location:
    for number in range(first, first + files):
        append(folder, pa.table({"seq": [number], "key": ["a"]}))
    return locate(folder)


def landed(folder: Path, identity: str, files: int = FILES) -> Location:
    """Write a history as a landing does."""
    place = locate(folder)
    (place / "_landing.json").write_bytes(f'{{"landing": "{identity}"}}'.encode())
    for number in range(files):
        note = note_of_next(place, number, identity)
        rows = pa.table({"seq": [number]}).replace_schema_metadata(note)
        histories.write_parquet(rows, file_of(place, number), is_new=True)
    return place


@pytest.mark.parametrize("at", [0, FILES - 2])
def test_a_file_that_was_rewritten_is_named(tmp_path: Path, at: int) -> None:
    made = history(tmp_path / "h")
    file = file_of(made, at).path
    pq.write_table(pq.read_table(file).set_column(0, "seq", [[31]]), file)
    for asked in (range(FILES), range(at, at + 1), range(at + 1, at + 2)):
        with pytest.raises(InputProblem, match=rf"/h is not as .* another file than {at:08d}\.par"):
            require_chain(made, asked)


@pytest.mark.parametrize("at", [1, FILES - 1])
def test_a_file_that_is_not_there_is_named(tmp_path: Path, at: int) -> None:
    made = landed(tmp_path / "h", "one")
    file_of(made, at).remove()
    sentence = rf"/h/{at:08d}\.parquet is missing, but {at - 1:08d}\.parquet is there"
    with pytest.raises(InputProblem, match=sentence):
        require_chain(made, range(at, at + 1))


def test_a_file_that_is_not_whole_has_its_own_turn(tmp_path: Path) -> None:
    """Nobody has to wait for a file that is on its way, before the file itself is due."""
    made = history(tmp_path / "h", 3)
    file = file_of(made, 2)
    file.write_bytes(file.read_bytes()[:-1])
    require_chain(made, range(2))
    with pytest.raises(InputProblem, match=r"00000002\.parquet is not a Parquet file"):
        require_chain(made, range(3))


def test_a_note_has_the_digest_of_the_footer_before(tmp_path: Path) -> None:
    """Histories of other versions of Straggler have it."""
    made = history(tmp_path / "h", 2)
    content = file_of(made, 0).read_bytes()
    size = int.from_bytes(content[-8:-4], "little")
    due = {"before": hashlib.sha256(content[-8 - size : -8]).hexdigest()}
    assert json.loads(pq.read_metadata(file_of(made, 1).path).metadata[NOTE]) == due


def test_numbers_of_files_have_an_order_and_no_bound(tmp_path: Path) -> None:
    made, first = locate(tmp_path / "h"), 99_999_999
    for number in (0, 1):
        with nullcontext() if not number else pytest.raises(InputProblem, match="at most 0, beca"):
            assert drop_before(made, number, readers=()) == 0
    histories.write_parquet(pa.table({"seq": [first]}), file_of(made, first))
    history(made, 2, first=first + 1)
    assert numbers(made) == range(first, first + 3)
    assert drop_before(made, first + 1, readers=()) == first + 1


@pytest.mark.parametrize("noted", [FILES - 3, FILES - 2, None])
def test_a_landing_goes_on_behind_its_own_file_only(tmp_path: Path, noted: int | None) -> None:
    """A crash may have come before the note of the last file; others may have added some, too."""
    made, foreign = landed(tmp_path / "h", "one"), landed(tmp_path / "f", "two")
    checkpoint = locate(tmp_path / "checkpoint")
    if noted is not None:
        note_landed(checkpoint, file_of(made, noted))
    require_landed(made, checkpoint, FILES - 1)
    last = file_of(made, FILES - 1)
    last.write_bytes(file_of(foreign, FILES - 1).read_bytes())
    with pytest.raises(InputProblem, match=r"/h has a file of another history, two: 00000005\.par"):
        require_landed(made, checkpoint, FILES - 1)


def test_a_store_notes_the_history_that_appears_while_it_waits(tmp_path: Path) -> None:
    store, made = make(tmp_path / "s"), locate(tmp_path / "h")
    made.make()
    writer = TableWriter(store.root, made)
    note_history(writer)
    assert writer.view.history is None, "an empty folder has no id"
    history(made, 1)
    note_history(writer)
    found = json.loads((made / "_history.json").read_bytes())["history"]
    assert require_view(store.root).history == {"id": found, "address": str(made)}
    (made / "_history.json").remove()
    note_history(writer)  # which asks once
    with pytest.raises(
        InputProblem, match=r"is a history without _history\.json and _landing\.json"
    ):
        note_history(TableWriter(store.root, made))


@pytest.mark.parametrize("is_noted", [False, True])
def test_a_store_checks_a_history_until_it_has_an_id(tmp_path: Path, is_noted: bool) -> None:
    """Requests may be worked off while the folder is empty."""
    store, made = make(tmp_path / "s"), locate(tmp_path / "h")
    if is_noted:
        note_history(TableWriter(store.root, history(tmp_path / "first", 1)))
    made.make()
    writer = TableWriter(store.root, made)
    for _ in range(2):
        note_history(writer)
    landed(tmp_path / "h", "other", files=0)
    with pytest.raises(InputProblem, match="/s belongs to") if is_noted else nullcontext():
        note_history(writer)
    noted = require_view(store.root).history
    assert noted is not None
    assert (noted["id"] == "other") != is_noted


def test_one_of_many_writers_creates_a_number(place: Location) -> None:
    ends = Counter[str]()
    together = threading.Barrier(4)

    def write(name: str) -> None:
        scratch = place / f"_scratch-{name}"
        scratch.write_bytes(name.encode())
        together.wait()
        try:
            scratch.publish(file_of(place, 0))
            ends[name] += 1
        except InputProblem:
            ends["stops"] += 1

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert ends["stops"] == 3
    assert ends[file_of(place, 0).read_bytes().decode()] == 1


def test_an_append_that_comes_second_changes_nothing(
    place: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer takes the number after this one has looked for it."""

    def note(history: Location, number: int) -> Mapping[bytes, str]:
        monkeypatch.undo()
        append(history, pa.table({"seq": [0]}))
        return note_of_next(history, number)

    monkeypatch.setattr(history_chain, "note_of_next", note)
    with pytest.raises(InputProblem, match="is there already: another process has written it"):
        append(place, pa.table({"seq": [5]}))
    schema = pa.schema([("seq", pa.int64())])
    assert read_parquet([file_of(place, 0)], schema)["seq"].to_pylist() == [0]


def test_files_without_notes_are_followed(tmp_path: Path) -> None:
    made = locate(tmp_path / "h")
    for number in range(2):
        histories.write_parquet(pa.table({"seq": [number]}), file_of(made, number))
    history(made, 2, first=2)
    require_chain(made, range(4))
    histories.write_parquet(pa.table({"seq": [31]}), file_of(made, 0))
    require_chain(made, range(4))
    histories.write_parquet(pa.table({"seq": [31]}), file_of(made, 1))
    with pytest.raises(InputProblem, match=r"another file than 00000001\.parquet"):
        require_chain(made, range(4))


def test_a_reader_knows_the_last_file_that_it_has_read(tmp_path: Path) -> None:
    """Files behind another file than it has read are refused, though they follow that one."""
    made = history(tmp_path / "h", 2)
    reader = HistoryReader(made, made / "requests", is_mixed=False)
    start = reader.initialOffset()
    _files, first = reader.read(start)
    _files, offset = reader.read(first)
    both = [(str(file_of(made, number)),) for number in range(2)]
    assert [*reader.readBetweenOffsets(start, offset)] == both
    assert [*reader.readBetweenOffsets({**start, "next": -1}, first)] == both[:1]
    last = file_of(made, 1)
    content = last.read_bytes()
    last.remove()
    append(made, pa.table({"seq": [31], "key": ["a"]}))
    append(made, pa.table({"seq": [2], "key": ["a"]}))
    require_chain(made, numbers(made))
    sentence = r"/h is not as it was written: 00000001\.parquet is not the file that was read"
    with pytest.raises(InputProblem, match=sentence):
        reader.read(offset)
    with pytest.raises(InputProblem, match=sentence):  # Spark repeats the last micro-batch
        reader.readBetweenOffsets({**offset, "next": 1}, offset)
    for number in (2, 1):
        file_of(made, number).remove()
    last.write_bytes(content)
    append(made, pa.table({"seq": [2], "key": ["a"]}))
    assert [*reader.read(offset)[0]] == [(str(file_of(made, 2)),)]
    for number in (0, 1):  # nobody has to keep what was read
        file_of(made, number).remove()
    assert [*reader.read(offset)[0]] == [(str(file_of(made, 2)),)]


def test_a_run_ends_where_the_history_ended_when_it_began(tmp_path: Path) -> None:
    made = history(tmp_path / "h", 1)
    reader = HistoryReader(made, made / "requests", is_mixed=False)
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    history(made, 1, first=1)
    files, offset = reader.read(start)
    assert [*files] == [(str(file_of(made, 0)),)]
    assert reader.read(offset)[1] == offset
    file_of(made, 0).remove()  # it is due if the first micro-batch was never planned
    with pytest.raises(InputProblem, match=r"00000000\.parquet is to be read next and is missing"):
        reader.read(start)


@pytest.mark.parametrize("is_mixed", [False, True])
def test_a_request_follows_the_files_before_it_and_is_kept_for_a_repetition(
    tmp_path: Path, is_mixed: bool
) -> None:
    made, name = history(tmp_path / "h", 2), "00000001-ab.parquet"
    reader = HistoryReader(made, made / "requests", is_mixed=is_mixed)
    (made / "requests" / name).write_bytes(b"")
    offset, found = reader.initialOffset(), []
    for _ in range(4):
        files, offset = reader.read(offset)
        found.append([locate(file).name for (file,) in files])
        found[-1] += ["kept"] * (made / "requests" / name).exists()
    first, second = (f"{number:08d}.parquet" for number in range(2))
    both = [[second, name, "kept"], ["kept"]] if is_mixed else [[name, "kept"], [second, "kept"]]
    assert found == [[first, "kept"], *both, ["kept"] * is_mixed]


def test_two_queries_find_one_id_for_a_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one gives it an id after the first one has looked for it."""
    made, one, other = history(tmp_path / "h", 1), make(tmp_path / "one"), make(tmp_path / "other")

    def look_late(folder: Location) -> range:
        monkeypatch.undo()
        note_history(TableWriter(other.root, made))
        return numbers(folder)

    monkeypatch.setattr(provenance, "numbers", look_late)
    note_history(TableWriter(one.root, made))
    assert require_view(one.root).history == require_view(other.root).history


def test_of_two_landings_that_begin_a_history_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have looked before one of them writes, and stands still until the other one has."""
    made, one, other = (locate(tmp_path / name) for name in ("h", "one", "other"))

    def look_late(folder: Location) -> range:
        monkeypatch.undo()
        open_history(made, other, {}, is_planned=False)
        return numbers(folder)

    monkeypatch.setattr(provenance, "numbers", look_late)
    with pytest.raises(InputProblem, match=r"/h/_landing\.json is there already"):
        open_history(made, one, {}, is_planned=False)
    with pytest.raises(InputProblem, match=r"/h was not landed with the checkpoint .*/one$"):
        open_history(made, one, {}, is_planned=False)
    open_history(made, other, {}, is_planned=True)


@pytest.mark.long
def test_a_correction_names_a_file_that_was_rewritten(spark: SparkSession, tmp_path: Path) -> None:
    """The file was read when it was another one; its windows are computed again."""
    made, store = tmp_path / "history", tmp_path / "store"
    land(made, FIRST)
    land(made, LAST)
    query = ROOMS["slack"].open(spark, made, store, sink=lambda rows, batch: rows.collect())
    query.run_available()
    assert slack.progress(store).pending_pairs
    file = file_of(locate(made), 0).path
    content = Path(file).read_bytes()
    rows = pq.read_table(file)
    value = pa.array([31.0] * rows.num_rows)
    pq.write_table(rows.set_column(rows.column_names.index("value"), "value", value), file)
    with pytest.raises(QueryProblem, match=r"^.*/history is not as it was written: 00000001\.parq"):
        query.flush()
    Path(file).write_bytes(content)
    query.flush()
    assert ROOMS["slack"].found(spark, store) == ROOMS["slack"].expected((*FIRST, *LAST))
