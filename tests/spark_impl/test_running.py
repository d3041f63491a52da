"""Queries that start again because a worker was too slow."""

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import cast

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from spark_impl.runtime.queries import STARTS, TOO_SLOW, QueryProblem, QueryRunner, log
from spark_impl.runtime.storage import locate

SLOW = f"[STREAM_FAILED] Query [id = 1] terminated with exception: {TOO_SLOW}. SQLSTATE: XXKST"
OTHERWISE = "ValueError: something else"


class Ended:
    """A query that has ended, with or without an error."""

    def __init__(self, said: str | None) -> None:
        self._said = said

    def awaitTermination(self) -> None:  # noqa: N802 (Spark's name for it)
        if self._said is not None:
            raise StreamingQueryException(self._said)

    def stop(self) -> None:
        pass


def starts(root: Path, ends: Iterable[str | None]) -> tuple[int, str]:
    """Return how often a query with these endings was started, and its error message."""
    queries, begun, runner = [*map(Ended, ends)], list[Ended](), QueryRunner()

    def begin() -> StreamingQuery:
        begun.append(queries[len(begun)])
        return cast(StreamingQuery, begun[-1])

    told = ""
    try:
        runner.run_to_end(locate(root), begin)
    except QueryProblem as problem:
        told = str(problem)
    assert runner.restarts == len(begun) - 1
    return len(begun), told


@pytest.mark.parametrize("slow", range(STARTS))
def test_query_whose_worker_was_too_slow_is_begun_again(
    tmp_path: Path, slow: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, log.name)
    assert starts(tmp_path, [SLOW] * slow + [None]) == (slow + 1, "")
    assert [f"starts again: {TOO_SLOW}" in said for said in caplog.messages] == [True] * slow


def test_query_whose_worker_is_always_too_slow_fails(tmp_path: Path) -> None:
    assert starts(tmp_path, [SLOW] * STARTS) == (STARTS, f"{TOO_SLOW}.")


def test_query_that_fails_otherwise_is_not_begun_again(tmp_path: Path) -> None:
    count, told = starts(tmp_path, [SLOW, OTHERWISE])
    assert count == 2
    assert told == "something else"
