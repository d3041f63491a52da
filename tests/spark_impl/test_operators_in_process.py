"""Operators in process: their state does not grow, no number is too large, bad ones are named."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from model.vocabulary import Event, ScriptConfig, SlackConfig, Trace, Workload
from model.vocabulary.script.tree import Sensor, Statement, Window, Workflow
from model.vocabulary.watermark import Clock
from model.vocabulary.windows import Late, Rejected, Result
from spark_impl import slack, watermark
from spark_impl.runtime.histories import COLUMNS
from spark_impl.runtime.storage import InputProblem
from spark_impl.script import compile_plan
from spark_impl.script.admission import Arrivals
from spark_impl.script.kernel import Given, State, advance
from spark_impl.script.router import Router
from spark_impl.slack.query import SLACK
from spark_impl.slack.rule import Memory
from spark_impl.windows import kernel
from spark_impl.windows.blocks import decode, encode
from spark_impl.windows.records import TaskState
from straggler.rooms import find_room


def _table(numbers: Iterable[int], key: str = "a") -> pa.Table:
    rows = [Event(n, n, key % n if "%" in key else key, n, 1.0, 0)._asdict() for n in numbers]
    return pa.Table.from_pylist(rows, schema=pa.schema(list(COLUMNS.items())))


@pytest.mark.parametrize("method", ["normal", "rigorous"])
def test_state_does_not_grow_with_the_stream(method: str) -> None:
    config = SlackConfig(size_us=100, slide_us=10, dedup=True, method=method)
    state, sizes = TaskState(Memory()), []
    for batch in range(20):
        numbers = range(batch * 100, batch * 100 + 100)
        rows = decode([encode(SLACK.settings(config), _table(numbers, key="k%d"))])
        state, _ = kernel.process(SLACK, config, state, *rows, flush=False)
        memory = state.memory
        parts = (state.panes, memory.windows, state.identities, memory.retained, memory.values)
        sizes.append((len(state.keys), *map(len, parts)))
    assert sizes[-1] == sizes[5]
    assert bool(sizes[-1][-1]) == config.needs_values


def test_state_holds_nothing_that_is_over() -> None:
    """A window of 4 ms over a sensor whose watermark follows at 2 ms."""
    config = ScriptConfig(
        (Workflow("w", (Statement("s", Window("sum", Sensor("A"), 4, 2)),)),),
        (("A", 1),),
        lateness_us=2_000,
    )
    share, state = compile_plan(config).share(0), State()
    sizes = set()
    for batch in range(50):
        rows = np.arange(100) + 100 * batch
        arrivals = Arrivals(rows, rows, rows * 100, np.ones(100))
        state, found = advance(share, state, Given({0: arrivals}))
        if batch > 5:
            sizes.add((len(state.logs[0].tuples.ts), len(state.slices[0].starts)))
            assert found.results[1].values.tolist() == [40.0] * 5
    assert sizes == {(21, 2)}


@pytest.mark.parametrize(
    ("column", "value", "sentence"),
    [
        ("event_time_us", -1, "event_time_us of sensor 'A' is -1; it must be from 0 to below 2.61"),
        ("source_id", None, "source_id of sensor 'A' is NULL in some row"),
        ("arrival_us", None, "arrival_us of sensor 'A' is NULL in some row"),
    ],
)
def test_impossible_arrivals_of_a_sensor_are_refused(
    column: str, value: int | None, sentence: str
) -> None:
    config = ScriptConfig(
        (Workflow("w", (Statement("s", Window("sum", Sensor("A"), 4, 2)),)),),
        (("A", 1),),
        lateness_us=2_000,
        idle_after_us=9,
    )
    rows = _table([1, 2], key="A").to_pylist()
    rows[1][column] = value
    table = pa.Table.from_pylist(rows, schema=pa.schema(list(COLUMNS.items())))
    with pytest.raises(InputProblem, match=f"^{sentence}$"):
        Router(compile_plan(config)).asked(table)


# ---------------------------------------------------------------------- extreme numbers


def assert_like_the_model(room: str, times: list[int], arrivals: list[int], **config: Any) -> Trace:
    """Assert that an operator does what the model does with tuples of value 1; return its trace."""
    events = tuple(
        Event(n, n, "a", ts, 1.0, at)
        for n, (ts, at) in enumerate(zip(times, arrivals, strict=True))
    )
    given = {"size_us": 10, "slide_us": 10, **config}
    case = Workload(room, events, given, (1, 3), flush=False)
    found, expected = IN_PROCESS[room](case), find_room(room).reference()(case)
    for word in (Result, Late, Rejected, Clock):
        assert found.of(word) == expected.of(word)
    return found


IN_PROCESS = {"slack": slack.run_in_process, "watermark": watermark.run_in_process}


def test_a_far_jump_in_time_costs_nothing() -> None:
    found = assert_like_the_model("slack", [1, 10**15, 10**15 + 50], [1] * 3, slide_us=1)
    assert len(found.of(Result)) == 20
