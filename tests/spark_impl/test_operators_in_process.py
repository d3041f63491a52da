"""Operators in process: their state does not grow, and a far jump in time costs nothing."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pytest

from model.vocabulary import Event, ScriptConfig, SlackConfig, Workload
from model.vocabulary.script.tree import Sensor, Statement, Window, Workflow
from model.vocabulary.windows import Rejected, Result
from spark_impl import slack
from spark_impl.runtime.histories import COLUMNS
from spark_impl.runtime.operators import row_of
from spark_impl.script import compile_plan
from spark_impl.script.admission import Arrivals
from spark_impl.script.arithmetic import Tuples
from spark_impl.script.encoding import decode_messages, decode_pieces, encode_message
from spark_impl.script.kernel import Given, Message, State, advance
from spark_impl.slack import SLACK
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
        state, _ = kernel.process(SLACK, config, state, *rows, flush=False, task=0)
        memory = state.memory
        parts = (state.panes, memory.windows, state.identities, memory.retained)
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
        state, found = advance(
            share, state, Given({0: arrivals}, {}, flush=False, pieces=decode_pieces([]), unasked=0)
        )
        if batch > 5:
            sizes.add((len(state.logs[0].tuples.ts), len(state.slices[0].starts)))
            assert found.results[1].values.tolist() == [40.0] * 5
    assert sizes == {(21, 2)}


@pytest.mark.parametrize(("control", "cut"), [("conformal", 1), ("fixed", 2)])
@pytest.mark.parametrize(("first", "jump"), [(1, 10**15), (1 - 2**61, 2**62 - 99)])
def test_a_far_jump_in_time_costs_nothing(first: int, jump: int, control: str, cut: int) -> None:
    times = (first, first + jump, first + jump + 50)
    events = tuple(Event(n, n, "bab"[n], ts, 1.0, 1) for n, ts in enumerate(times))
    config = {"size_us": 10, "slide_us": 1, "control": control}
    case = Workload("slack", events, config, (cut, 3), flush=False)
    found, expected = slack.run_in_process(case), find_room("slack").reference()(case)
    for word in (Result, Rejected):
        assert found.of(word) == expected.of(word)
    assert len(found.of(Result)) == 20


def test_a_grouping_column_may_have_any_name() -> None:
    assert row_of({"cls": "a", "self": 1}).asDict() == {"cls": "a", "self": 1}


@pytest.mark.parametrize("order", [1, -1])
def test_messages_about_a_stream_are_combined(order: int) -> None:
    parts = [([1, 2], 5), ([6], 9)][::order]
    blocks = [
        encode_message({3: Message(Tuples(np.array(ts), np.array(ts, float)), until_us)})
        for ts, until_us in parts
    ]
    found = decode_messages(blocks)[3]
    assert (sorted(found.tuples.ts.tolist()), found.until_us) == ([1, 2, 6], 9)
