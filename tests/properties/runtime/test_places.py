"""Addresses and names of files say what is read, and where a query resumes."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.vocabulary import SlackConfig
from spark_impl.runtime.cells import UNITS_US
from spark_impl.runtime.queries import last_logged, require_checkpoint, tidy
from spark_impl.runtime.storage import InputProblem, locate
from spark_impl.slack.query import SLACK
from spark_impl.windows.store import open_store

PARTS = st.lists(st.sampled_from(["a", "b c", "..", ".", "", "#1", "x=1"]), max_size=4)
QUERIES = st.sampled_from(["", "?region=x", "?user=a&b=c"])


def folder_of(parts: list[str]) -> str:
    """Return the absolute path of a folder without detours."""
    found: list[str] = []
    for part in parts:
        if part == "..":
            found = found[:-1]
        elif part not in ("", "."):
            found.append(part)
    return "".join(f"/{part}" for part in found)


@given(PARTS, QUERIES)
def test_addresses_of_one_folder_name_one_place(parts: list[str], query: str) -> None:
    given_path, path = "/" + "/".join(parts), folder_of(parts)
    host = f"hdfs://host:1{given_path}{query}"
    assert str(locate(host)) == f"hdfs://host:1{path or '/'}{query}"
    for scheme in ("s3", "s3a"):
        assert str(locate(f"{scheme}://bucket{given_path}{query}")) == f"s3://bucket{path}{query}"
    for prefix in ("", "file://"):
        assert str(locate(f"{prefix}{given_path}")) == (path or "/")
    for address in (host, f"s3://bucket{given_path}{query}", given_path):
        place = locate(address)
        assert locate(str(place)) == locate(place) == place
        assert locate(str(place / "more")) == place / "more"
        assert (place / "more").parent == place
    for scheme in ("gs", "http", "dbfs"):
        with pytest.raises(InputProblem, match=f"^{scheme}://bucket.* is not on a supported file"):
            locate(f"{scheme}://bucket{given_path}")


NUMBERS = st.sets(st.integers(0, 120), max_size=4)
NOT_LOGGED = st.sets(st.sampled_from([".7.crc", "8.tmp", ".9.a1.tmp", "notes", "12x"]), max_size=3)


@given(NUMBERS, NOT_LOGGED, st.integers(-1, 3))
def test_a_checkpoint_that_was_lost_is_noticed(
    tmp_path_factory: pytest.TempPathFactory, logged: set[int], others: set[str], last: int
) -> None:
    folder = tmp_path_factory.mktemp("checkpoint")
    (folder / "offsets").mkdir()
    for name in {*map(str, logged), *others}:
        (folder / "offsets" / name).touch()
    checkpoint, store = locate(folder), locate("store")
    assert last_logged(checkpoint, "offsets") == max(logged, default=-1)
    assert last_logged(checkpoint, "commits") == -1
    if last >= 0 and not logged:
        with pytest.raises(InputProblem, match=f"whose tables are at micro-batch {last}$"):
            require_checkpoint(checkpoint, store, last)
    else:
        require_checkpoint(checkpoint, store, last)
    tidy(checkpoint)
    left = {path.name for path in (folder / "offsets").iterdir()} - {*map(str, logged)}
    assert left == (others if logged else others - {".9.a1.tmp"})


FOREIGN = st.sets(st.sampled_from(["thesis.txt", "query.json.bak", "part-0.parquet", ".q"]))


@given(st.booleans(), FOREIGN)
def test_a_store_takes_no_folder_of_something_else(
    tmp_path_factory: pytest.TempPathFactory, is_begun: bool, foreign: set[str]
) -> None:
    folder = tmp_path_factory.mktemp("store")
    if is_begun:  # by a driver that was killed
        (folder / "_delta_log").mkdir()
    for name in foreign:
        (folder / name).write_bytes(b"old")
    if foreign:
        with pytest.raises(InputProblem, match="is neither an empty folder nor the store of a"):
            open_store(folder, SLACK, SlackConfig(4, 2), ())
    else:
        for _ in ("made", "opened"):
            open_store(folder, SLACK, SlackConfig(4, 2), ())
    left = {"_delta_log"} if is_begun or not foreign else set()
    assert {path.name for path in folder.iterdir()} == foreign | left


def test_a_file_is_no_empty_store(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputProblem, match="is neither an empty folder nor the store of a query"):
        open_store(tmp_path / "file", SLACK, SlackConfig(4, 2), ())


@given(st.integers(-(10**9), 10**9))
def test_units_of_times_are_those_of_the_calendar(number: int) -> None:
    units = {
        "us": timedelta(microseconds=number),
        "ms": timedelta(milliseconds=number),
        "s": timedelta(seconds=number),
    }
    begin = datetime(1970, 1, 1, tzinfo=UTC)
    for unit, passed in units.items():
        at_us = round(((begin + passed) - begin) / timedelta(microseconds=1))
        assert number * UNITS_US[unit] == at_us
    assert UNITS_US.keys() == units.keys()
