"""States at instances survive micro-batches without work."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_impl.grouping.instances import MicroBatch, finish_work
from spark_impl.grouping.store import GroupingStore, Worked
from spark_impl.runtime.storage import Location, locate

INSTANCES = 2


class _Reports:
    """Reports of tasks that run here."""

    def __init__(self) -> None:
        self.is_work_expected = False
        self.told: dict[int, tuple[Location, int]] = {}

    def files(self, _kind: str, _store: Location) -> dict[int, tuple[Location, int]]:
        return self.told


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
    held, before = None, dict[int, Location]()
    for number, tuples in enumerate(batches):
        reports = _Reports()
        batch = MicroBatch(number, 0, store, before, reports)  # type: ignore[arg-type]  # it stands in for Spark's
        spent = [(0, 0)] * INSTANCES
        if tuples is not None:
            reports.is_work_expected = True
            held = pa.table({"sum": [number, tuples]})
            for instance in range(INSTANCES):
                file = store.write_worked(number, instance, Worked(tuples, 7, held))
                reports.told[instance] = (file, tuples)
            spent = [(tuples, 7)] * INSTANCES
        found, files = finish_work(batch, INSTANCES, INSTANCES * (tuples or 0))
        assert found == spent
        assert len(files) == (0 if held is None else INSTANCES)
        before = dict(enumerate(files))
        assert [store.spent(each) for each in files] == spent[: len(files)]
        assert all(store.load_worked(each).state == held for each in files)
