"""States at instances survive micro-batches without work."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
