"""Epochs that are merged: every pair once, at every step of a merge and wherever it is killed.

The store is written by hand; the merged store of a real chain is in ``test_join_streams.py``.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pytest

from model.vocabulary import JoinConfig
from model.vocabulary.join import And
from spark_impl.join import merging
from spark_impl.join.answers import find_complete
from spark_impl.join.checkpoint import empty_state
from spark_impl.join.matching import SCHEMA, Counts
from spark_impl.join.merging import merge_epochs
from spark_impl.join.store import ADMITTED, STEPS, TABLES, ChainStore, Commit, open_store
from spark_impl.runtime import stores
from spark_impl.runtime.storage import InputProblem, Location, locate
from spark_impl.runtime.versions import read_parquet

CONFIG = JoinConfig(window_us=10, queries=(("join", And()),), workers=2)
MERGED = 3
Content: TypeAlias = dict[str, list[Any]]


@pytest.fixture(autouse=True)
def merges_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "MERGED", MERGED)


def run_epoch(store: ChainStore, epoch: int) -> None:
    """Write what an epoch writes: each worker finds a pair, a tuple of R is admitted.

    Every second epoch rejects an arrival; the first attempt at an epoch does not count.
    """
    for attempt in ("lost", "done"):
        for worker in range(CONFIG.workers):
            pair = {"query": "join", "r_id": epoch, "s_id": worker, "epoch": epoch}
            rows = pa.Table.from_pylist([pair], TABLES["matches"])
            store.write_table(epoch, attempt, f"matches-{worker}", rows)
            store.write_lines(epoch, attempt, f"{STEPS}-{worker}", [f"{epoch} {worker}"])
            store.write_state(epoch, attempt, worker, empty_state())
        if epoch % 2:
            row = rejection(epoch)
            rows = pa.Table.from_pylist([row], TABLES["rejected"])
            store.write_table(epoch, attempt, "rejected-0", rows)
        values: tuple[int, int, int, float, str] = (epoch, epoch, 0, 1.0, "")
        tuple_of_r = dict(zip(("rank", "source_id", "ts", "value", "key"), values, strict=True))
        admitted = pa.Table.from_pylist([{**tuple_of_r, "epoch": epoch}], ADMITTED)
        store.write_table(epoch, attempt, "admitted-R", admitted)
    done = Commit(
        epoch=epoch,
        attempt="done",
        flush=False,
        config=CONFIG,
        functions=(),
        history=True,
        committed_us=epoch,
        matches={"join": CONFIG.workers},
        rejected=epoch % 2,
        admitted=Counts(epoch + 1, 0),
        held=Counts(0, 0),
    )
    store.commit(done)


def run_epochs(store: ChainStore, first: int, end: int) -> ChainStore:
    """Run epochs as a chain does."""
    for epoch in range(first, end):
        merge_epochs(store)
        run_epoch(store, epoch)
    return store


def content(store: ChainStore) -> Content:
    """Return everything that readers see."""
    parts = store.parts()
    rows = {
        table: read_parquet(find_complete(store, table, parts), schema).to_pylist()
        for table, schema in TABLES.items()
    }
    lines = [line for file in store.files(STEPS, parts) for line in file.read_bytes().split()]
    return {**rows, STEPS: lines, "commits": store.commits(), "last": [store.last()]}


def content_of(epochs: int) -> Content:
    """Return what readers of a store with some epochs have to see."""
    pairs = [
        {"query": "join", "r_id": epoch, "s_id": worker, "epoch": epoch}
        for epoch in range(epochs)
        for worker in range(CONFIG.workers)
    ]
    return {
        "matches": pairs,
        "rejected": [rejection(epoch) for epoch in odd(epochs)],
    }


def rejection(epoch: int) -> dict[str, int | str]:
    values = ("R", epoch, epoch, "k", epoch, "late", epoch)
    return dict(zip(TABLES["rejected"].names, values, strict=True))


def odd(end: int) -> range:
    return range(1, end, 2)


def assert_complete(store: ChainStore, epochs: int) -> None:
    """Assert that readers see some epochs, everything of them once."""
    found = content(store)
    assert {name: found[name] for name in content_of(epochs)} == content_of(epochs)
    assert [row["source_id"] for row in found["admitted-R"]] == list(range(epochs))
    assert found["admitted-S"] == []
    assert len(found[STEPS]) == 2 * len(found["matches"])
    assert [each.epoch for each in found["commits"]] == list(range(epochs))
    assert found["last"] == found["commits"][-1:]


class Killed(BaseException):
    """The process was killed."""


@contextmanager
def each_step(before: Callable[[str, Location], None]) -> Iterator[None]:
    """Call a function before every change of a file system, with its name and its place."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("write_bytes", "stream", "remove"):
            patch.setattr(Location, name, _preceded(name, before))
        yield


def _preceded(name: str, before: Callable[[str, Location], None]) -> Callable[..., Any]:
    act = getattr(Location, name)

    def step(location: Location, *args: Any, **named: Any) -> Any:
        before(name, location)
        return act(location, *args, **named)

    return step


def kill_at(number: int) -> Callable[[str, Location], None]:
    """Return a function that kills before a step; a folder is then removed in part."""
    steps = iter(range(number, -1, -1))

    def before(name: str, place: Location) -> None:
        if next(steps) == 0:
            if name == "remove" and place.is_folder():
                file = next(each for each in Path(place.path).rglob("*") if each.is_file())
                file.unlink()
            raise Killed

    return before


@pytest.mark.parametrize("epochs", [MERGED + 1, 2 * MERGED + 1, 3 * MERGED + 1])
def test_a_merge_that_is_killed_loses_and_doubles_nothing(tmp_path: Path, epochs: int) -> None:
    kept = run_epochs(open_store(tmp_path / "kept", CONFIG), 0, epochs)
    number = 0
    while True:
        shutil.copytree(tmp_path / "kept", tmp_path / "store")
        store = open_store(tmp_path / "store", CONFIG)
        try:
            with each_step(kill_at(number)):
                merge_epochs(store)
            break
        except Killed:
            number += 1
        assert_complete(store, epochs)
        run_epochs(store, epochs, epochs + 2 * MERGED)
        assert_complete(store, epochs + 2 * MERGED)
        assert_few_files(store, epochs + 2 * MERGED)
        shutil.rmtree(tmp_path / "store")
    assert number >= MERGED, "there were steps to be killed at"
    assert_complete(kept, epochs)


def test_readers_see_everything_once_at_every_step_of_a_merge(place: Location) -> None:
    store = run_epochs(open_store(place, CONFIG), 0, 2 * MERGED + 1)
    listed = store.files("matches", store.parts())
    steps: list[str] = []

    def look(name: str, _: Location) -> None:
        steps.append(name)
        assert_complete(store, 2 * MERGED + 1)

    with each_step(look):
        merge_epochs(store)
    assert {"write_bytes", "stream", "remove"} <= {*steps}
    assert_complete(store, 2 * MERGED + 1)
    assert len(listed) == 1 + (MERGED + 1) * CONFIG.workers
    assert read_parquet(listed, TABLES["matches"]).to_pylist() == content(store)["matches"]


def test_the_number_of_files_grows_slowly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(tmp_path, CONFIG)
    entries, seen = Location.entries, list[int]()

    def count(location: Location, *args: Any, **chosen: Any) -> Any:
        found = entries(location, *args, **chosen)
        seen.append(len(found))
        return found

    for epoch in range(40):
        run_epochs(store, epoch, epoch + 1)
        assert_few_files(store, epoch + 1)
    assert_complete(store, 40)
    monkeypatch.setattr(Location, "entries", count)
    assert ChainStore(store.root).last() == store.commit_of(39)
    assert sum(seen[: len(seen) // 2]) <= 40 / MERGED + 2 * MERGED + 1, "what a start lists"


def assert_few_files(store: ChainStore, epochs: int) -> None:
    """Assert that files that are not merged are those of the last few epochs."""
    files = [each for each in Path(store.root.path).rglob("*") if each.is_file()]
    merged = [each for each in files if "merged" in each.parts]
    assert len(merged) <= (len(TABLES) + 2) * epochs // MERGED
    apart = {each.relative_to(store.root.path).parts[1] for each in files if "epochs" in each.parts}
    assert len(apart) <= 2 * MERGED + 1
    assert len(store.numbers("commits")) <= 2 * MERGED + 1


def test_of_epochs_with_many_rows_only_the_commits_are_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path, CONFIG)
    with monkeypatch.context() as patch:
        patch.setattr(merging, "_ROWS_MERGED", 3)
        run_epochs(store, 0, 2 * MERGED + 2)
        assert_complete(store, 2 * MERGED + 2)
    run_epochs(store, 2 * MERGED + 2, 30)
    assert_complete(store, 30)
    assert len(store.numbers("commits")) <= 2 * MERGED + 1
    assert not (tmp_path / "merged" / "matches" / "00000000-00000002.parquet").exists()
    assert (tmp_path / "merged" / "matches" / "00000006-00000008.parquet").exists()


def test_rows_that_are_missing_are_not_merged(tmp_path: Path) -> None:
    store = run_epochs(open_store(tmp_path, CONFIG), 0, MERGED + 1)
    (tmp_path / "epochs" / "1" / "done" / "matches-0.parquet").unlink()
    sentence = r"has 5 of the 6 rows that were written to 'matches' in epochs 0 to 2: the driver"
    with pytest.raises(InputProblem, match=sentence):
        merge_epochs(store)
    with pytest.raises(InputProblem, match="has 7 of the 8 rows that were written to 'matches'"):
        content(store)
    assert store.listed() == ([], range(MERGED + 1))


@pytest.mark.parametrize("lost", ["merged/commits/00000000-00000002.json", "commits/6.json"])
def test_a_commit_that_is_missing_is_named(tmp_path: Path, lost: str) -> None:
    store = run_epochs(open_store(tmp_path, CONFIG), 0, 2 * MERGED + 2)
    (tmp_path / lost).unlink()
    missing = lost.removeprefix("merged/").replace("00000000-00000002", "0")
    with pytest.raises(InputProblem, match=f"/{missing} is missing, but epoch [37] is there$"):
        store.last()


def test_tuples_of_epochs_without_a_history_are_not_counted(tmp_path: Path) -> None:
    store = run_epochs(open_store(tmp_path, CONFIG), 0, MERGED)
    commits = [each._replace(history=each.epoch != 1) for each in store.commits()]
    assert store.rows_written("admitted-R", commits) == MERGED - 1
    assert SCHEMA.names == ADMITTED.names[:-1]
    assert locate(tmp_path) == store.root
