"""Writers of one history lose and double nothing, although no lock keeps them apart.

Every writer does what a landing does with a micro-batch: it reads how far the history is, writes a
scratch file, and publishes. Between any two of these steps it may stand still while others go on.
"""

import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from spark_impl.runtime.histories import append, file_of, files_of, numbers, write_parquet
from spark_impl.runtime.storage import InputProblem, Location, locate

WRITERS = 3
STEPS = 30
TAKEN, FIRST, HAND = "another writer had the name", "a writer was first", "a file was added by hand"
MET: Counter[str] = Counter()


class Publishing(RuleBasedStateMachine):
    """A history and its writers, each with a scratch file and the name that it is to get."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="straggler-publishing-"))
        self.history = locate(self.folder / "history")
        self.plans: dict[int, tuple[Location, Location]] = {}
        self.published: dict[str, bytes] = {}
        self.rows = self.scratch = 0

    def teardown(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.folder)

    @rule(who=st.integers(0, WRITERS - 1), rows=st.integers(1, 3))
    def begin(self, who: int, rows: int) -> None:
        """Begin a micro-batch of a writer; an earlier one is given up, as by a crash."""
        self.scratch += 1
        file = self.history / "_scratch" / f"{self.scratch}" / "landed.parquet"
        write_parquet(self.table(rows), file)
        self.plans[who] = file, file_of(self.history, numbers(self.history).stop)

    def table(self, rows: int) -> pa.Table:
        """Return the next rows of a history, by what is in it now."""
        first = sum(pq.read_metadata(each.path).num_rows for each in files_of(self.history))
        return pa.table({"seq": [*range(first, first + rows)]})

    @precondition(lambda self: self.plans)
    @rule(data=st.data())
    def publish(self, data: st.DataObject) -> None:
        """End a micro-batch, perhaps after others have gone on."""
        file, target = self.plans.pop(data.draw(st.sampled_from(sorted(self.plans))))
        if target.name in self.published:
            MET[TAKEN] += 1
            with pytest.raises(InputProblem, match=f"^{target} is there already: another"):
                file.publish(target)
        else:
            MET[FIRST] += 1
            file.publish(target)
            self.note(target)

    @rule(rows=st.integers(1, 2))
    def add(self, rows: int) -> None:
        """Add a file by hand."""
        MET[HAND] += 1
        self.note(append(self.history, self.table(rows)))

    def note(self, file: Location) -> None:
        """Note a file that was published."""
        assert file.name not in self.published
        self.published[file.name] = file.read_bytes()
        self.rows += pq.read_metadata(file.path).num_rows

    @invariant()
    def nothing_is_lost_or_doubled(self) -> None:
        """Assert that every published file is as it was, and that rows are numbered through."""
        files = files_of(self.history)
        assert {each.name: each.read_bytes() for each in files} == self.published
        seqs = [seq for each in files for seq in pq.read_table(each.path)["seq"].to_pylist()]
        assert seqs == [*range(self.rows)]


def test_writers_of_a_history_lose_and_double_nothing() -> None:
    MET.clear()
    run_state_machine_as_test(Publishing, settings=settings(stateful_step_count=STEPS))
    assert MET.keys() == {TAKEN, FIRST, HAND}, f"undetermined: {dict(MET)}"
