"""Planted bugs of Spark's operators show in simulated time, on clusters as the property draws them.

Each is planted in ``spark_impl`` while a test runs. Most need a crash, a copy of a message or a
second micro-batch to show.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from model.vocabulary.settings import JsonObject
from properties import stream_packs
from properties.operators.timed import OPERATORS, Drawn
from spark_impl.grouping import instances, router, store
from spark_impl.grouping import windows as grouping_windows
from spark_impl.join import checkpoint
from spark_impl.join.messages import Block, BlockAck
from spark_impl.join.worker import Worker
from spark_impl.script import encoding
from spark_impl.script import plan as script_plan
from spark_impl.script.processor import ScriptProcessor
from spark_impl.slack.rule import SlackRule
from spark_impl.watermark.rule import WatermarkRule
from spark_impl.windows import disorder, records
from spark_impl.windows.processor import WindowProcessor
from spark_impl.windows.records import LATE, Output
from tests.quality.mistakes import Mistake

Plant = Callable[[pytest.MonkeyPatch], None]
CLUSTERS = 300
"""Largest number of clusters that are tried until one shows the bug."""


@cache
def drawn(name: str, run: int) -> list[Drawn]:
    return stream_packs.collect(OPERATORS[name].drawn, stream_packs.RUN, seed=run)


def clusters(name: str) -> Iterator[Drawn]:
    for run in range(CLUSTERS // stream_packs.RUN):
        yield from drawn(name, run)


# ------------------------------------------------------------------------------ bugs of a process


def outlives_crashes(processor: Any) -> Plant:
    """Return a planted bug: state lives in memory, and a restart does not read the store."""

    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        right = processor.handleInputRows

        def wrong(self: Any, *given: Any) -> Iterator[Any]:
            if hasattr(self, "in_memory"):
                self._state.update(self.in_memory)
            yield from right(self, *given)
            self.in_memory = self._state.get()

        monkeypatch.setattr(processor, "handleInputRows", wrong)

    return plant


def tells_late_pairs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a bug: late pairs of a micro-batch that a crash undid are not reported again."""
    right = WindowProcessor._output_row

    def wrong(self: Any, who: Any, output: Output, flush: bool) -> JsonObject:
        told = vars(self).setdefault("told", set())
        late = output.records["late"]
        new = [each.tobytes() not in told for each in late]
        told.update(each.tobytes() for each in late)
        records = {**output.records, "late": late[new].astype(LATE)}
        return right(self, who, output._replace(records=records), flush)

    monkeypatch.setattr(WindowProcessor, "_output_row", wrong)


def acknowledges_before_it_joins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a bug: a worker acknowledges a block, sends blocks of its own, and then joins it."""
    join, work = Worker._join_in, Worker.work

    def acknowledge(self: Any, sender: int, lane: Any, other: Any, blocks: list[Block]) -> None:
        for block in blocks:
            ack = BlockAck(lane.stream, block.number, other.sent, len(lane.store))
            self.outbox.append((sender, ack))
        vars(self).setdefault("later", []).append((sender, lane, other, blocks))

    def join_at_last(self: Any) -> None:
        work(self)
        for given in vars(self).pop("later", []):
            outbox, self.outbox = self.outbox, []
            join(self, *given)
            self.outbox = outbox

    monkeypatch.setattr(Worker, "_join_in", acknowledge)
    monkeypatch.setattr(Worker, "work", join_at_last)


BUGS: dict[str, dict[str, Plant]] = {
    "slack": {
        "state in memory outlives a crash": outlives_crashes(WindowProcessor),
        "late pairs are told once, crash or not": tells_late_pairs_once,
        "identities are not restored": Mistake(
            records.state_from_bytes, "panes, identities\n    )", "panes, identities[:0]\n    )"
        ).plant,
        "windows that were not judged are not stored": Mistake(
            SlackRule.memory, "windows=windows", "windows=windows[:0]"
        ).plant,
    },
    "watermark": {
        "state in memory outlives a crash": outlives_crashes(WindowProcessor),
        "late pairs are told once, crash or not": tells_late_pairs_once,
        "the cluster is not stored": Mistake(
            WatermarkRule.memory,
            "return self._memory",
            "return self._memory._replace(cluster=self._memory.cluster[:0])",
        ).plant,
        "pairs of earlier micro-batches are not counted": Mistake(
            disorder.count_inversions, "return inv + ", "return "
        ).plant,
    },
    "join": {
        "a block is joined whenever it comes": Mistake(
            Worker._take_in,
            "self.outbox.append((sender, again))",
            "self._join_in(sender, lane, other, [block])",
        ).plant,
        "a block is acknowledged before it is joined": acknowledges_before_it_joins,
        "blocks that are on their way meet nobody": Mistake(
            Worker._join_in, "meets_copies = lane.stream == R", "meets_copies = False"
        ).plant,
        "identities are not restored": Mistake(
            checkpoint.decode_state,
            'Identities(known["source_id"].to_numpy(), known["ts"].to_numpy())',
            'Identities(known["source_id"].to_numpy()[:0], known["ts"].to_numpy()[:0])',
        ).plant,
    },
    "grouping": {
        "loads are not reset": Mistake(
            router.begin_window, "config.policy not in RESET", "True"
        ).plant,
        "a heavy key is not restored": Mistake(
            store.decode_standing,
            'in table["heavy"].items()',
            'in list(table["heavy"].items())[1:]',
        ).plant,
        "loads are not restored": Mistake(
            store.decode_state, 'tuple(plain["loads"])', '(0,) * len(plain["loads"])'
        ).plant,
        "summaries are not restored": Mistake(
            store.decode_state,
            "summary=Summary(keys, _numbers(counts), _numbers(errors), tuples, floor),",
            "",
        ).plant,
        "a window is over a tuple too late": Mistake(grouping_windows.is_full, ">=", ">").plant,
        "only one of several partial aggregates counts": Mistake(
            instances._combine, '("n", "sum")', '("n", "max")'
        ).plant,
    },
    "script": {
        "state in memory outlives a crash": outlives_crashes(ScriptProcessor),
        "latest values are not restored": Mistake(
            encoding.decode_state, "latest.setdefault(number, {})[each] = value", "pass"
        ).plant,
        "clusters are not restored": Mistake(
            encoding.decode_state,
            'clocks[number]._replace(cluster=rows["ts"].copy())',
            "clocks[number]",
        ).plant,
        "identities are not restored": Mistake(
            encoding.decode_state, 'rows["source_id"].copy()', '-1 - rows["source_id"]'
        ).plant,
        "results go to one other worker at most": Mistake(
            script_plan.Plan.share, "tuple(sorted(others))", "tuple(sorted(others))[:1]"
        ).plant,
        "only the first stream of a message is read": Mistake(
            encoding.decode_messages, "return found", "return dict([*found.items()][:1])"
        ).plant,
    },
}
"""Planted bugs, by room and name."""


@pytest.mark.parametrize(("room", "bug"), [(room, bug) for room in BUGS for bug in BUGS[room]])
def test_a_planted_bug_shows_on_some_cluster(
    monkeypatch: pytest.MonkeyPatch, room: str, bug: str
) -> None:
    BUGS[room][bug](monkeypatch)
    operator = OPERATORS[room]
    assert any(operator.broken(cluster) for cluster in clusters(room))
