"""Drivers and readers of one store, interleaved: every micro-batch counts once, as planned.

A driver plans a micro-batch, drafts it, commits it, and notes in its checkpoint that it has ended.
Between any two of these steps it may stand still or die, or somebody may copy its checkpoint.
"""

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from properties.profiles import drawn
from properties.promised import Reached, promised
from spark_impl.runtime import tables
from spark_impl.runtime.queries import require_checkpoint
from spark_impl.runtime.storage import InputProblem, locate
from spark_impl.runtime.stores import Draft, require_view
from spark_impl.runtime.tables import TableWriter, View
from tests.spark_impl.test_tables import make, rows

EXAMPLES, STEPS = 20, 40
READERS = 6
WHO = st.integers(0, READERS - 1)
DRAFT, START = "a draft refused for its ", "a start refused for its "
REFUSALS = (DRAFT + "plan", DRAFT + "number", START + "plan", START + "number")
SECOND, AGAIN, LOST, STOOD = (
    "a second commit",
    "a micro-batch that comes again",
    "a lost draft",
    "a driver that stood still",
)
MERGED, UNSUMMED = "a reader of files that were merged", "a log that cannot be summed up"


@dataclass(eq=False)
class Driver:
    """A driver, with what its checkpoint has planned, and the last micro-batch that has ended."""

    checkpoint: Path
    writer: TableWriter = field(init=False)
    plans: dict[int, int] = field(default_factory=dict)
    """Plans by micro-batch: the values of its rows begin at ten times this number."""
    ended: int = -1
    draft: Draft | None = None

    def note(self, log: str, number: int, text: str) -> None:
        (locate(self.checkpoint) / log / str(number)).write_bytes(text.encode())


class Tables(RuleBasedStateMachine):
    """A store; ``committed`` are the plans whose rows it has, in the order of micro-batches."""

    reached = Reached()

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.place = Path(self.folder.name)
        self.store = make(self.place / "s")
        self.serial, self.committed = 0, list[int]()
        self.readers = list[tuple[View, list[tuple[int, int]]]]()
        self.drivers = [Driver(self.place / name) for name in "abc"]
        for driver in self.drivers:
            self.open(driver)

    def teardown(self) -> None:
        self.folder.cleanup()

    def open(self, driver: Driver) -> None:
        """Begin a run of a driver, with a writer of its own."""
        self.reached.add({LOST: driver.draft is not None})
        driver.draft = None
        driver.writer = TableWriter(self.store.root, checkpoint=locate(driver.checkpoint))

    def fits(self, driver: Driver) -> bool:
        """Return whether the table has what a driver has planned, and nothing else."""
        has = all(driver.plans.get(batch) == plan for batch, plan in enumerate(self.committed))
        return has and driver.ended < len(self.committed)

    def refuse(self, driver: Driver, case: str, problem: InputProblem) -> None:
        """Begin a driver that was rightly refused anew, with a copy of a checkpoint that fits."""
        assert not self.fits(driver)
        said = str(problem)
        assert " at micro-batch " in said or "has written it, with other rows than" in said
        self.reached.add({case + ("plan" if "with other rows" in said else "number"): 1})
        first = next(each for each in self.drivers if self.fits(each))
        self.serial += 1
        driver.checkpoint = self.place / str(self.serial)
        driver.plans, driver.ended = {**first.plans}, first.ended
        if first.plans:
            shutil.copytree(first.checkpoint, driver.checkpoint)
        self.open(driver)

    def check_and_start(self, driver: Driver) -> None:
        """Begin a run of a driver as a query does, which checks its checkpoint first."""
        self.open(driver)
        try:
            require_checkpoint(locate(driver.checkpoint), driver.writer, driver.writer.view.last)
        except InputProblem as problem:
            self.refuse(driver, START, problem)
        else:
            assert self.fits(driver)

    def make_draft(self, driver: Driver) -> bool:
        """Draft the next micro-batch; plan it first, unless it comes again."""
        batch, stood = driver.ended + 1, driver.writer.view.last + 1 < len(self.committed)
        if batch not in driver.plans:
            self.serial += 1
            driver.plans[batch] = self.serial
            driver.note("offsets", batch, str(self.serial))
        try:
            draft = Draft(self.store, driver.writer, batch)
        except InputProblem as problem:
            if stood and "cannot be read: " in str(problem):  # the log was cleaned meanwhile
                self.open(driver)
            else:
                self.refuse(driver, DRAFT, problem)
            return False
        known, plan = driver.writer.view.last, driver.plans[batch]
        assert draft.is_new == (known < batch)
        assert known < 0 or driver.plans[known] == self.committed[known]
        self.reached.add({AGAIN: not draft.is_new, LOST: driver.draft is not None, STOOD: stood})
        draft.write("result", rows(10 * plan, plan % 4))
        draft.replace("pending", rows(plan, plan % 2).drop(["value"]))
        driver.draft = draft
        return True

    def finish(self, driver: Driver, draft: Draft, *, dies: bool, is_taken: bool) -> None:
        """Commit a draft; the driver may die before its checkpoint says so.

        The name of the file may be taken that sums up the log every third version.
        """
        driver.draft, version = None, driver.writer.view.version + 1
        if is_taken and version % 3 == 0:
            name = f"{version:020d}.checkpoint.parquet"
            (self.place / "s" / "_delta_log" / name / "taken").mkdir(parents=True, exist_ok=True)
            self.reached.add({UNSUMMED: draft.is_new})
        if draft.is_new and draft.batch < len(self.committed):
            self.reached.add({SECOND: 1})
            with pytest.raises(InputProblem, match="another query has written it, and nothing of"):
                draft.commit()
            self.open(driver)
            (self.check_and_start if self.serial % 2 else self.make_draft)(driver)
            return
        draft.commit()
        self.committed += [driver.plans[draft.batch]] * draft.is_new
        if dies:
            self.open(driver)
        else:
            driver.ended = draft.batch
            driver.note("commits", draft.batch, "")

    @precondition(lambda self: any(each.draft is None for each in self.drivers))
    @rule(who=WHO)
    def draft(self, who: int) -> None:
        """Draft the next micro-batch of a driver, which then stands still."""
        idle = [each for each in self.drivers if each.draft is None]
        self.make_draft(idle[who % len(idle)])

    @precondition(lambda self: any(each.draft for each in self.drivers))
    @rule(who=WHO, dies=st.booleans(), is_taken=st.booleans())
    def commit(self, who: int, dies: bool, is_taken: bool) -> None:
        """Commit a draft."""
        drafts = [(each, each.draft) for each in self.drivers if each.draft]
        self.finish(*drafts[who % len(drafts)], dies=dies, is_taken=is_taken)
        self.look(who)

    @rule(who=WHO, batches=st.sampled_from((1, 1, 4)), dies=st.booleans(), is_taken=st.booleans())
    def go_on(self, who: int, batches: int, dies: bool, is_taken: bool) -> None:
        """Run some micro-batches of a driver while all others stand still."""
        driver = self.drivers[who % 3]
        for left in reversed(range(batches)):
            if not self.make_draft(driver):
                break
            assert driver.draft is not None
            self.finish(driver, driver.draft, dies=dies and not left, is_taken=is_taken)
        self.look(who)
        seen, now = driver.writer.view, self.readers[-1][0]
        assert seen.last < now.last or sorted(seen.files) == sorted(now.files)

    @rule(who=WHO)
    def start_again(self, who: int) -> None:
        """Kill a driver and start it again."""
        self.check_and_start(self.drivers[who % 3])

    @rule(who=WHO)
    def look(self, who: int) -> None:
        """Begin to read the present version, then read that of a reader who has looked before."""
        view = require_view(self.store.root)
        assert view.last == len(self.committed) - 1
        expected = [
            (batch, 10 * plan + each)
            for batch, plan in enumerate(self.committed)
            for each in range(plan % 4)
        ]
        pending = [plan for plan in self.committed[-1:] if plan % 2]
        assert self.store.at(view).read_kind("pending")["start_us"].to_pylist() == pending
        self.readers = [*self.readers[1 - READERS :], (view, expected)]
        before, expected = self.readers[who % len(self.readers)]
        found = self.store.at(before).read_kind("result")
        pairs = zip(found["batch"].to_pylist(), found["start_us"].to_pylist(), strict=True)
        assert sorted(pairs) == expected
        there = {each.file for each in view.files}
        self.reached.add({MERGED: any(each.file not in there for each in before.of("result"))})


@promised(*REFUSALS, SECOND, AGAIN, LOST, STOOD, MERGED, UNSUMMED)
def test_every_micro_batch_counts_once_as_planned(
    monkeypatch: pytest.MonkeyPatch, reached: Reached
) -> None:
    soon = {"delta.checkpointInterval": "3", "delta.logRetentionDuration": "interval 0 seconds"}
    monkeypatch.setattr(tables, "_SETTINGS", {**tables._SETTINGS, **soon})
    monkeypatch.setattr(tables, "TIDIED", 4)
    monkeypatch.setattr(Tables, "reached", reached)
    effort = settings(max_examples=drawn(EXAMPLES, __name__), stateful_step_count=STEPS)
    run_state_machine_as_test(Tables, settings=effort)
