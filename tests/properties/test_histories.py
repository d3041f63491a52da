"""A history keeps every row under its number, while it is written, read and shortened.

Its writers and queries may stand still between any two steps, and queries die. No lock keeps them
apart.
"""

import json
import re
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

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

from model.vocabulary import SlackConfig
from properties.profiles import drawn
from properties.promised import Reached, promised
from spark_impl.retention import drop_before
from spark_impl.runtime.histories import Follower, append, file_of, files_of, numbers, write_parquet
from spark_impl.runtime.history_chain import note_of_next
from spark_impl.runtime.provenance import note_history
from spark_impl.runtime.sources import HistoryReader, Offset
from spark_impl.runtime.storage import InputProblem, Location, locate
from spark_impl.runtime.stores import Draft
from spark_impl.runtime.tables import TableWriter
from spark_impl.slack import SLACK
from spark_impl.windows.store import open_store

EXAMPLES, STEPS = 20, 40
SIZE_US = 9_000
WHICH, LATE_BY = st.integers(0, 5), st.sampled_from((99, 0, 0, 1))
SECOND, REPEATED, LOST = "a number that was taken", "a micro-batch again", "a file that is missing"
SHORTENED, UNREAD = "a history that was shortened", "a file that was not read"
LATE, LAST = "a file that a late pair needs", "the last file"
SENTENCES = {
    LAST: "keeps its last file",
    UNREAD: r"has read no(thing yet|\s+more of)",
    LATE: "late pairs in .* wait for a correction that reads it",
}
"""Refusals to shorten a history, by their reason."""


def rows(number: int) -> pa.Table:
    """Return the rows of a file: the first and the last moment of a window of its own."""
    times_us = [SIZE_US * number, SIZE_US * (number + 1) - 1]
    return pa.table({"seq": [2 * number, 2 * number + 1], "event_time_us": times_us})


class Query:
    """A query, with its store and Spark's checkpoint: ``following`` is the file it reads next."""

    def __init__(self, place: Path, history: Location) -> None:
        self.history = history
        self.store = open_store(place, SLACK, SlackConfig(SIZE_US, SIZE_US), ())
        self.writer = TableWriter(self.store.root, history)
        self.offsets = list[Offset]()
        self.ended = self.following = self.needed = -1
        self.start()

    def start(self) -> None:
        """Start the query, after it has died or at first."""
        self.reader = HistoryReader(self.history, self.store.control, is_mixed=False)

    def plan(self) -> list[str]:
        """Return the files of the next micro-batch, or of one that had not ended."""
        before = self.offsets[self.ended] if self.ended >= 0 else self.reader.initialOffset()
        batch = self.ended + 1
        if batch < len(self.offsets):
            return [file for (file,) in self.reader.readBetweenOffsets(before, self.offsets[batch])]
        files, after = self.reader.read(before)
        if after != before:
            self.offsets.append(after)
            text = "v1\n{}\n" + json.dumps(after)
            (self.store.checkpoint / "offsets" / str(batch)).write_bytes(text.encode())
        return [file for (file,) in files]

    def commit(self, needed: int) -> None:
        """Commit a micro-batch that has left a late pair of the window of a file, if any."""
        note_history(self.writer)
        pair = {"task": 0, "start_us": SIZE_US * needed, "key": "a", "source_id": 0, "windows": 1}
        pairs = [{**pair, "event_time_us": SIZE_US * needed}] if needed >= 0 else []
        draft = Draft(self.store, self.writer, self.ended + 1)
        draft.replace("pending", pa.Table.from_pylist(pairs, self.store.kinds["pending"]))
        if draft.is_new:
            self.needed = needed
        draft.commit()

    def end(self) -> None:
        """Note in the checkpoint that a micro-batch has ended."""
        self.ended += 1
        self.following = int(self.offsets[self.ended]["next"])
        (self.store.checkpoint / "commits" / str(self.ended)).write_bytes(b"")


class Histories(RuleBasedStateMachine):
    """A history; ``files`` has the content of every file that it has, by number."""

    reached = Reached()

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        place = Path(self.folder.name)
        self.history, self.scratch = locate(place / "h"), locate(place / "scratch")
        self.files: dict[int, bytes] = {}
        self.begun, self.serial = list[tuple[Location, int]](), count()
        self.follower = Follower(self.history)
        self.queries = [Query(place / name, self.history) for name in "ab"]

    def teardown(self) -> None:
        self.folder.cleanup()

    def add(self, file: Location) -> None:
        """Note a file that the history has from now on."""
        number = int(file.stem)
        assert number not in self.files
        assert pq.read_table(file.path).equals(rows(number))
        self.files[number] = file.read_bytes()

    @rule(files=st.integers(0, 4))
    def write(self, files: int) -> None:
        """Write the next file under a name of its own, as a landing does; append some by hand."""
        number = max(self.files, default=-1) + 1
        scratch, note = self.scratch / str(next(self.serial)), note_of_next(self.history, number)
        write_parquet(rows(number).replace_schema_metadata(note), scratch)
        self.begun.append((scratch, number))
        for each in range(number, number + files):
            self.add(append(self.history, rows(each)))

    @precondition(lambda self: self.begun)
    @rule(which=WHICH)
    def publish(self, which: int) -> None:
        """Give a file its number, unless another writer was quicker."""
        scratch, number = self.begun.pop(-1 - which % len(self.begun))
        if number < min(self.files, default=0):
            return  # a landing that stands still while its number is written, read and removed
        file = file_of(self.history, number)
        if number in self.files:
            self.reached.add({SECOND: 1})
            with pytest.raises(InputProblem, match=f"^{file} is there already: another process"):
                scratch.publish(file)
        else:
            scratch.publish(file)
            self.add(file)

    @rule(which=WHICH, batches=st.integers(1, 4), steps=st.sampled_from((0, 1, 2)), late=LATE_BY)
    def read(self, which: int, batches: int, steps: int, late: int) -> None:
        """Run micro-batches of a query, which may die after some steps of the last one."""
        for left in reversed(range(batches)):
            self.run_batch(self.queries[which % 2], late, 2 if left else steps)

    def run_batch(self, query: Query, late: int, steps: int) -> None:
        """Run a micro-batch of a query, which reads the file that is due; two steps end it."""
        following = query.following if query.ended >= 0 else min(self.files, default=-1)
        due = [str(file_of(self.history, following))] if following in self.files else []
        self.reached.add({REPEATED: query.ended + 1 < len(query.offsets)})
        assert query.plan() == due
        if due and steps:
            query.commit(following - late if following - late in self.files else -1)
        if due and steps > 1:
            query.end()
        else:
            query.start()

    @precondition(lambda self: self.files)
    @rule(batches=st.sampled_from((0, 0, 1, 3)), late=LATE_BY)
    def shorten(self, batches: int, late: int) -> None:
        """Remove files that no query needs, and refuse to remove others."""
        for query in self.queries * batches:
            for steps in (1, 2):  # it dies once before its micro-batch ends
                self.run_batch(query, late, steps)
        number = max(min(each.following for each in self.queries), 0)
        for each in (max(self.files) + 1, number + 2, number + 1, number - 1, number):
            self.drop_before(each)

    def drop_before(self, number: int) -> None:
        """Remove the files below a number, or see them refused for the first reason there is."""
        below = [each for each in self.files if each < number]
        cases = {
            LAST: number > max(self.files, default=0),
            UNREAD: any(number > each.following for each in self.queries),
            LATE: any(each.needed in below for each in self.queries),
        }
        readers = [each.store.root for each in self.queries]
        if cases[LAST] or (below and any(cases.values())):
            with pytest.raises(InputProblem) as refusal:
                drop_before(self.history, number, readers=readers)
            (reason,) = (name for name in cases if re.search(SENTENCES[name], str(refusal.value)))
            assert cases[reason]
            self.reached.add({reason: 1})
        else:
            first = max(number, min(self.files))
            assert drop_before(self.history, number, readers=readers) == first
            self.files = {each: self.files[each] for each in self.files if each >= number}
            self.reached.add({SHORTENED: len(below)})

    @rule(which=WHICH)
    def follow(self, which: int) -> None:
        """Ask somebody who follows the history for its numbers; name a file that is missing."""
        assert [*self.follower.numbers()] == [*self.files]
        for number in [*self.files][1:-1][which:][:1]:
            file = file_of(self.history, number)
            file.remove()
            with pytest.raises(InputProblem, match=f"^{file} is missing, but"):
                numbers(self.history)
            file.write_bytes(self.files[number])
            self.reached.add({LOST: 1})

    @invariant()
    def nothing_is_lost_or_replaced(self) -> None:
        """Assert that every file is there as it was published, and no other one."""
        found = {int(each.stem): each.read_bytes() for each in files_of(self.history)}
        assert found == self.files


@promised(SECOND, REPEATED, LOST, SHORTENED, UNREAD, LATE, LAST)
def test_rows_stay_under_their_number(monkeypatch: pytest.MonkeyPatch, reached: Reached) -> None:
    monkeypatch.setattr(Histories, "reached", reached)
    effort = settings(max_examples=drawn(EXAMPLES, __name__), stateful_step_count=STEPS)
    run_state_machine_as_test(Histories, settings=effort)
