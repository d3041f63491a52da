"""Names of files say what is read and where a query resumes; errors say why it failed."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException

from spark_impl.runtime.failures import last_error, wait_for
from spark_impl.runtime.queries import last_logged, require_checkpoint, tidy
from spark_impl.runtime.storage import InputProblem, locate

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
    for scheme in ("s3", "s3a"):
        assert str(locate(f"{scheme}://bucket{given_path}{query}")) == f"s3://bucket{path}{query}"
    for prefix in ("", "file://"):
        assert str(locate(f"{prefix}{given_path}")) == (path or "/")
    for address in (f"s3://bucket{given_path}{query}", given_path):
        place = locate(address)
        assert locate(str(place)) == locate(place) == place
        assert locate(str(place / "more")) == place / "more"
        assert (place / "more").parent == place
    for scheme in ("gs", "http", "dbfs", "hdfs"):
        with pytest.raises(InputProblem, match=f"^{scheme}://bucket.* is not on a supported file"):
            locate(f"{scheme}://bucket{given_path}")


NUMBERS = st.sets(st.integers(0, 120), max_size=4)
NOT_LOGGED = st.sets(st.sampled_from([".7.crc", "8.tmp", ".9.a1.tmp", "notes", "12x"]), max_size=3)


@given(NUMBERS, NOT_LOGGED, st.integers(-1, 120))
def test_a_checkpoint_that_was_lost_or_rolled_back_is_noticed(
    tmp_path_factory: pytest.TempPathFactory, logged: set[int], others: set[str], last: int
) -> None:
    folder = tmp_path_factory.mktemp("checkpoint")
    (folder / "offsets").mkdir()
    for name in {*map(str, logged), *others}:
        (folder / "offsets" / name).touch()
    checkpoint = locate(folder)
    store: Any = SimpleNamespace(root=locate("store"), require_plan=lambda plan: None)
    assert last_logged(checkpoint, "offsets") == max(logged, default=-1)
    assert last_logged(checkpoint, "commits") == -1
    if last > max(logged, default=-1):  # Spark would plan a micro-batch anew
        with pytest.raises(InputProblem, match=f"whose tables are at micro-batch {last}$"):
            require_checkpoint(checkpoint, store, last)
    else:
        require_checkpoint(checkpoint, store, last)
    tidy(checkpoint)
    left = {path.name for path in (folder / "offsets").iterdir()} - {*map(str, logged)}
    assert left == (others if logged else others - {".9.a1.tmp"})


# ------------------------------------------------------------------------- queries that fail


ERRORS = st.lists(
    st.tuples(
        st.sampled_from(["InputProblem", "ValueError", "NeighbourLost", "org.a.b.SparkException"]),
        st.sampled_from(["the file x is missing", "worker 1: lost", "a b: c"]),
    ),
    min_size=1,
    max_size=4,
)
"""Errors in the order in which they are printed: each led to the one before or behind it."""


def text_of(errors: list[tuple[str, str]]) -> str:
    """Return errors as Spark prints them, with lines of stacks in between."""
    lines = [f'{name}: {said}\n  File "task.py", line 3, in run' for name, said in errors]
    return "Job aborted\n" + "\n".join(lines)


@given(ERRORS)
def test_the_last_error_is_the_one_that_counts(errors: list[tuple[str, str]]) -> None:
    name, said = errors[-1]
    found = last_error(PySparkException(text_of(errors)))
    assert found == (name.rpartition(".")[2], said)


class QueryError(Exception):
    """The problem that a caller wants to get."""


@given(ERRORS, st.sampled_from(["ends", "fails", "dies"]))
def test_a_query_that_fails_is_no_query_that_has_ended(
    errors: list[tuple[str, str]], outcome: str
) -> None:
    stopped: list[int] = []
    failure = {"fails": PySparkException(text_of(errors)), "dies": OSError("no answer")}

    def wait() -> None:
        if outcome != "ends":
            raise failure[outcome]

    query: Any = SimpleNamespace(awaitTermination=wait, stop=lambda: stopped.append(1))
    if outcome == "ends":
        wait_for(query, QueryError, locate("store"))
        return
    with pytest.raises(QueryError) as raised:
        wait_for(query, QueryError, locate("store"))
    assert raised.value.__cause__ is failure[outcome]
    assert not stopped, "a call to a query that has failed may wait for ever"
    sentence = str(raised.value)
    assert "\n" not in sentence
    if outcome == "fails" and not errors[-1][0].endswith("Exception"):
        assert sentence == errors[-1][1]
