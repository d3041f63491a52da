"""A caller that waits for a query learns that it failed, and why: in words of the last error."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException

from spark_impl.runtime.failures import last_error, wait_for
from spark_impl.runtime.storage import locate

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
