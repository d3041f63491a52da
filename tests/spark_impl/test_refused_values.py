"""Rows that no sum can take, and identities that come again with other content."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import straggler
from model.vocabulary import stable_hash
from spark_impl.landed import LandedQuery
from spark_impl.over import Stream
from spark_impl.slack import progress, rejected

T = 1_714_521_600  # 2024-05-01 00:00 UTC
BAD = ("NaN", "inf", "abc", "")
TWIN = str(stable_hash("07"))
"""Text of an identity that has the number of the identity 07."""
FIRST = f"07,k,{T + 1},100"


def stream(spark: SparkSession, folder: Path, *lines: str) -> Stream:
    """Begin a query over a file of lines."""
    (folder / "in").mkdir()
    (folder / "in" / "1.csv").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    rows = spark.readStream.schema("device string, at string, v string").csv(str(folder / "in"))
    return straggler.over(rows, event_time="at", key="device", time_unit="s")


def flushed(spark: SparkSession, folder: Path, *lines: str) -> LandedQuery:
    query = stream(spark, folder, *lines).window("10 seconds").sum("v").store_in(folder / "kept")
    query.flush()
    return query


def test_a_window_lists_the_rows_that_it_lacks(spark: SparkSession, tmp_path: Path) -> None:
    """A refund is part of the sum, a text is not."""
    good = [f"back,{T + 1},100", f"back,{T + 2},-40", f"only,{T + 3},-2.5"]
    bad = [f"refund,{T + 3 + n},{text}" for n, text in enumerate(BAD)]
    others = [f"bad,{T},x", f"late,{T},1", "lost,?,1"]
    query = flushed(spark, tmp_path, *good, f"refund,{T + 1},100", *bad, *others)
    found = {
        row.key: (row.value, row.n, row.n_rcv, row.revision, row.n_refused, row.state)
        for row in query.results().collect()
    }
    assert found == {
        "back": (60.0, 2, 2, 0, 0, "exact"),
        "only": (-2.5, 1, 1, 0, 0, "exact"),
        "refund": (100.0, 1, 1, 0, len(BAD), "incomplete"),
        "bad": (None, 0, 0, None, 1, "incomplete"),
        "late": (1.0, 1, 1, 0, 0, "exact"),
    }
    listed = query.rejected().collect()
    assert {(row.stage, row.key, row.column, row.text) for row in listed} == {
        ("query", "refund", "v", "NaN"),
        ("query", "refund", "v", "Infinity"),
        ("query", "refund", "v", "abc"),
        ("query", "refund", "v", None),
        ("query", "bad", "v", "x"),
        ("landing", None, "at", "?"),
    }
    assert len(listed) == 6
    assert all(row.reason for row in listed)
    lost = next(row for row in listed if row.stage == "landing")
    assert json.loads(lost.row) == {"device": "lost", "at": "?", "v": "1"}
    assert lost.seq is None
    store = query.query.store.root
    assert rejected(spark, store).count() == progress(store).rejected == 5
    assert query.progress().rejected == 6, "a query knows nothing of the landing"


@pytest.mark.parametrize("kind", ["boolean", "array<double>"])
def test_what_no_aggregate_can_take_is_refused_before_anything_is_written(
    kind: str, spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    rows = spark.readStream.schema(f"at string, v {kind}").json(str(tmp_path / "in"))
    begun = straggler.over(rows, event_time="at").window("10 seconds").sum("v")
    with pytest.raises(straggler.InputProblem, match=r"^column 'v' holds [^\n]+, not a number$"):
        begun.store_in(tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


# --------------------------------------------------------------------- other content


def landed(spark: SparkSession, folder: Path, *batches: str, **settings: object) -> LandedQuery:
    """Run a query over files, each of them a micro-batch of its own."""
    (folder / "in").mkdir()
    rows = spark.readStream.schema("id string, device string, at string, v string")
    stream = straggler.over(
        rows.csv(str(folder / "in")), event_time="at", key="device", source_id="id", time_unit="s"
    )
    query = stream.window("10 seconds", **settings).sum("v").store_in(folder / "kept")
    for number, lines in enumerate(batches):
        (folder / "in" / f"{number}.csv").write_text(lines.replace(" ", "\n"), encoding="utf-8")
        query.run_available()
    query.flush()
    return query


def answers(query: LandedQuery) -> dict[tuple[str, int], tuple[object, ...]]:
    """Return the answers by key and start of the window, in seconds behind T."""
    return {
        (row.key, row.start_us // 1_000_000 - T): (row.value, row.n, row.n_refused, row.state)
        for row in query.results().collect()
    }


KINDS = [
    (f"01,a,{T + 1},100", f"01,a,{T + 3},999", "comes again with another event time"),
    (f"02,b,{T + 1},100", f"02,b,{T + 13},100", "comes again with another event time"),
    (f"03,c,{T + 1},100", f"03,d,{T + 1},100", "comes again with another key"),
    (f"04,e,{T + 1},100", f"04,e,{T + 1},999", "comes again with another value"),
    (FIRST, f"{TWIN},k,{T + 1},100", "has the number of another identity, 07"),
]
"""A delivery, another one with other content, and the reason for which that is refused."""


@pytest.mark.parametrize(
    ("is_together", "settings"),
    [(True, {}), pytest.param(False, {"max_wait": "20 seconds"}, marks=pytest.mark.long)],
)
def test_other_content_of_a_known_identity_is_refused(
    is_together: bool, settings: dict[str, object], spark: SparkSession, tmp_path: Path
) -> None:
    batches = [" ".join(each[at] for each in KINDS) for at in (0, 1)]
    query = landed(spark, tmp_path, *([" ".join(batches)] if is_together else batches), **settings)
    bad, lost = (100.0, 1, 1, "incomplete"), (None, 0, 1, "incomplete")
    good = (100.0, 1, 0, "exact")
    assert answers(query) == {
        ("a", 0): bad,
        ("e", 0): bad,
        ("k", 0): bad,
        ("b", 0): good,
        ("b", 10): lost,
        ("c", 0): good,
        ("d", 0): lost,
    }
    listed = {row.seq: row for row in query.rejected().collect()}
    assert sorted(listed) == [5, 6, 7, 8, 9]
    for number, (_, again, reason) in enumerate(KINDS):
        row, (identity, key, *_) = listed[5 + number], again.split(",")
        found = (row.stage, row.reason, row.column, row.text, row.key)
        assert found == ("query", reason, "id", identity, key)


@pytest.mark.long
def test_a_redelivery_is_no_other_content(spark: SparkSession, tmp_path: Path) -> None:
    refused = f"08,k,{T + 2},NaN"
    query = landed(spark, tmp_path, f"{FIRST} {refused}", f"{FIRST} 08,k,{T + 2},5 {FIRST}")
    assert answers(query) == {("k", 0): (105.0, 2, 1, "incomplete")}
    (bad,) = query.rejected().collect()
    assert (bad.text, bad.column, bad.seq) == ("NaN", "v", 1)
