"""Partial aggregates and answers, against sorted lists."""

from collections import defaultdict
from random import Random

import pyarrow as pa

from spark_impl.grouping.instances import ANSWER, PARTIAL, aggregate, merge_answers

TOP = 3


def drawn(rows: int) -> pa.Table:
    random = Random(rows)
    return pa.table(
        {
            "window": pa.array([random.randrange(2) for _ in range(rows)], pa.int64()),
            "instance": pa.array([random.randrange(3) for _ in range(rows)], pa.int64()),
            "key": pa.array([random.choice("abcde") for _ in range(rows)], pa.string()),
            "value": pa.array([random.randrange(-4, 5) / 4 for _ in range(rows)], pa.float64()),
        }
    )


def test_partial_aggregates_and_answers_are_those_of_the_values() -> None:
    for rows in (0, 1, 2, 5, 300):
        table = drawn(rows)
        parts = aggregate(table, TOP)
        assert parts.schema == PARTIAL
        own: dict[tuple[int, int, str], list[float]] = defaultdict(list)
        every: dict[tuple[int, str], list[float]] = defaultdict(list)
        for row in table.to_pylist():
            own[row["window"], row["instance"], row["key"]].append(row["value"])
            every[row["window"], row["key"]].append(row["value"])
        found = {(r["window"], r["instance"], r["key"]): r for r in parts.to_pylist()}
        assert found.keys() == own.keys()
        for group, values in own.items():
            row = found[group]
            assert (row["n"], row["total"]) == (len(values), sum(values))
            assert (row["least"], row["greatest"]) == (min(values), max(values))
            assert sorted(row["values"]) == sorted(set(values))
            assert row["top"] == sorted(values, reverse=True)[:TOP]
        together = merge_answers(parts, TOP)
        assert together.schema == ANSWER
        merged = {(r["window"], r["key"]): r for r in together.to_pylist()}
        assert merged.keys() == every.keys()
        for key, values in every.items():
            row = merged[key]
            assert (row["n"], row["total"]) == (len(values), sum(values))
            assert (row["least"], row["greatest"]) == (min(values), max(values))
            assert row["distinct"] == len(set(values))
            assert row["top"] == sorted(values, reverse=True)[:TOP]
