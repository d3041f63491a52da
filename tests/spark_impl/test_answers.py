"""The assumption named with the answers, and readers disturbed by a running query."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from model.vocabulary import SlackConfig
from model.vocabulary.settings import PlainData
from spark_impl.runtime import queries
from spark_impl.slack import SlackQuery, assumption_status, corrections, results
from spark_impl.slack.query import SLACK, assumption
from spark_impl.windows import answers
from spark_impl.windows.store import open_store
from tests.spark_impl.test_query import FIRST, history

INDEPENDENT = "values exchangeable and independent of delay"
NEARLY_NORMAL = "values exchangeable and independent of delay, missing sum nearly normal"
NOT_OF_THE_VALUE = "none for the coverage; it says nothing about the error of the value"
CONFORMAL = SlackConfig(size_us=10, slide_us=5, gamma_us=0)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, NEARLY_NORMAL),
        ({"aggregate": "avg"}, NEARLY_NORMAL),
        ({"method": "permutation"}, INDEPENDENT),
        ({"method": "rigorous"}, INDEPENDENT),
        ({"aggregate": "avg", "method": "rigorous"}, INDEPENDENT),
        ({"aggregate": "median"}, INDEPENDENT),
        ({"aggregate": "quantile", "q": 0.9}, INDEPENDENT),
        ({"aggregate": "count"}, "none"),
        ({"sampling": "adversarial"}, "none"),
        ({"aggregate": "median", "sampling": "adversarial"}, "none"),
        ({"aggregate": "min", "lambda_thr": 0.9}, NOT_OF_THE_VALUE),
        ({"control": "pd"}, "no (eps, delta) promise: only the mean of the coverage is steered"),
        ({"control": "max", "sampling": "adversarial"}, "no (eps, delta) promise"),
    ],
)
def test_assumption_names_what_first_answers_rest_on(
    settings: dict[str, PlainData], text: str
) -> None:
    assert assumption(SlackConfig(size_us=10, slide_us=5, **settings)) == text


def questions(spark: SparkSession, store: Path) -> list[Callable[[], Any]]:
    """Return functions for all questions to a store, with plain answers."""
    return [
        lambda: sorted(map(str, results(spark, store).collect())),
        lambda: assumption_status(spark, store),
        lambda: corrections(spark, store).collect(),
    ]


@pytest.mark.fails_tasks
def test_readers_whose_batch_is_begun_anew_see_the_one_before(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = SlackQuery(spark, CONFORMAL, history(tmp_path / "h", FIRST), tmp_path / "s")

    def complete(batch: int) -> None:
        query.store.begin(batch)
        figures = {"cross": batch, "delay_spread": 100, "value_spread": 400}
        rows = [{"task": 0, "key": "a", "start_us": 10 * i, **figures} for i in range(25)]
        written = {}
        for name in ("correlation", "correction"):
            schema = query.store.schema(name)
            written[name] = query.store.write(name, batch, pa.Table.from_pylist(rows, schema))
        query.store.complete(batch, query.store.schema("pending").empty_table(), written)

    query.run_available()
    complete(1)
    before = [each() for each in questions(spark, tmp_path / "s")]
    listed = queries.read_table

    def overtaken(*given: Any) -> Any:
        rows = listed(*given)
        if query.store.committed() == 2:
            query.store.begin(2)
        return rows

    monkeypatch.setattr(queries, "read_table", overtaken)
    for each, expected in zip(questions(spark, tmp_path / "s"), before, strict=True):
        complete(2)
        assert each() == expected


def test_a_reader_of_a_broken_store_gets_the_error(tmp_path: Path) -> None:
    seen: list[int] = []

    def broken(last: int) -> None:
        seen.append(last)
        raise OSError("not now")

    with pytest.raises(OSError, match="not now"):
        answers.read_undisturbed(open_store(tmp_path, SLACK, CONFORMAL, ()), broken)
    assert seen == [-1, -1]
