"""States at instances survive micro-batches without work; rows are counted as they come."""

from collections import Counter
from itertools import chain

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.vocabulary import GroupingConfig
from spark_impl.grouping import tasks
from spark_impl.grouping.instances import MicroBatch, finish_work
from spark_impl.grouping.store import GroupingStore, Worked
from spark_impl.runtime.storage import locate

INSTANCES = 2


class _Reports:
    """Reports of tasks that run here."""

    def __init__(self) -> None:
        self.is_work_expected = False
        self._tuples: dict[object, int] = {}

    def tell(self, file: object, tuples: int) -> None:
        self._tuples[file] = tuples

    def tuples_of(self, file: object) -> int | None:
        return self._tuples.get(file)


@given(
    st.lists(st.none() | st.integers(0, 5), min_size=2, max_size=6).filter(
        lambda each: None in each
    )
)
def test_a_state_survives_micro_batches_without_work(
    tmp_path_factory: pytest.TempPathFactory, batches: list[int | None]
) -> None:
    """``batches`` are the tuples of each instance in a micro-batch, ``None`` without any work."""
    store = GroupingStore(locate(tmp_path_factory.mktemp("stream")))
    held, has_states = None, False
    for number, tuples in enumerate(batches):
        reports = _Reports()
        batch = MicroBatch(number, 0, store, has_states, reports)  # type: ignore[arg-type]  # it stands in for Spark's
        spent = [(0, 0)] * INSTANCES
        if tuples is not None:
            reports.is_work_expected = True
            held = pa.table({"sum": [number, tuples]})
            for instance in range(INSTANCES):
                store.write_worked(number, instance, Worked(tuples, 7, held))
                reports.tell(store.instance_file(number, instance), tuples)
            spent, has_states = [(tuples, 7)] * INSTANCES, True
        assert finish_work(batch, INSTANCES, INSTANCES * (tuples or 0)) == spent
        if has_states:
            assert [store.spent(number, each) for each in range(INSTANCES)] == spent
            assert [store.load_worked(number, each).state for each in range(INSTANCES)] == [
                held
            ] * 2


# ------------------------------------------------------------------------------- bounded rows

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
