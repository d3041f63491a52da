"""Rows of a table are counted exactly, however Spark cuts a partition into Arrow batches."""

from collections import Counter
from itertools import chain

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.vocabulary import GroupingConfig
from spark_impl.grouping import tasks

CONFIG = GroupingConfig(4, theta=0.5)
COUNTERS = 4
"""Number of counters of a summary: two for a share of 0.5, and twice as many for its error."""
BATCHES = st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=12), max_size=4)


@given(BATCHES)
def test_batches_of_a_partition_are_counted_together(batches: list[list[str]]) -> None:
    counted = Counter(chain.from_iterable(batches))
    kept = sorted(counted.items(), key=lambda each: (-each[1], each[0]))[:COUNTERS]
    floor = kept[-1][1] if len(kept) == COUNTERS else 0
    expected = [(key, n, 0, counted.total(), floor) for key, n in kept]
    given_batches = [pa.record_batch({"key": pa.array(keys)}) for keys in batches]
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(tasks, "partition_id", lambda: 0)
        found = [
            row
            for part in tasks._count(given_batches, CONFIG, "key")
            for row in part.drop_columns("part").to_pylist()
        ]
    assert [(*row.values(),) for row in found] == expected
