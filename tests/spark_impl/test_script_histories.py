"""Pieces of a history on their way to the workers of scripts: what they may hold, in which order.

Nothing here needs Spark.
"""

from dataclasses import replace
from itertools import pairwise, permutations
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from model.vocabulary import Event, ScriptConfig
from model.vocabulary.script.plan import compile_plan
from spark_impl.runtime.histories import COLUMNS
from spark_impl.runtime.storage import InputProblem
from spark_impl.script import encoding
from spark_impl.script.kernel import Given, State, advance
from spark_impl.script.processor import ARRIVALS, CLOCK, blocks_of
from spark_impl.script.router import Router
from straggler.rooms.script.language import parse

END_US = 1 << 61
TIMED = ScriptConfig(
    (parse('x = sum(union("a", "b"), 4, 2)', "w"),),
    (("a", 1), ("b", 1)),
    lateness_us=1_000,
    idle_after_us=9,
)
UNTIMED = replace(TIMED, idle_after_us=None)
CONFIGS = pytest.mark.parametrize("config", [TIMED, UNTIMED])


def piece(*numbers: int, **cell: Any) -> pa.Table:
    """Return arrivals of two sensors and of one that nobody asks for; cells are of the second."""
    rows = [Event(n, n, "abc"[n % 3], 10 * n, 1.0, 100 - 7 * n)._asdict() for n in numbers]
    rows[1].update(cell)
    return pa.Table.from_pylist(rows, pa.schema(list(COLUMNS.items())))


def given(config: ScriptConfig, *pieces: pa.Table) -> Given:
    """Return what the only worker is given of some pieces."""
    router = Router(compile_plan(config))
    blocks: dict[int, list[bytes]] = {ARRIVALS: [], CLOCK: []}
    for each in pieces:
        for _, kind, block in blocks_of(router, each):
            blocks.setdefault(kind, []).append(block)
    arrivals = encoding.decode_arrivals(blocks[ARRIVALS], config.idle_after_us is not None)
    pieces = encoding.decode_pieces(blocks[CLOCK])
    return Given(arrivals, {}, flush=False, pieces=pieces, unasked=0)


@CONFIGS
@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        ({"event_time_us": -1}, "is -1; it must be from 0 to below 2^61"),
        ({"event_time_us": END_US}, f"is {END_US}; it must be from 0 to below 2^61"),
        ({"arrival_us": END_US}, f"is {END_US}; it must lie between -2^61 and 2^61"),
        ({"arrival_us": -END_US}, f"is -{END_US}; it must lie between -2^61 and 2^61"),
        *(
            ({name: None}, "is NULL in some row")
            for name in COLUMNS
            if name not in ("key", "value")
        ),
    ],
)
def test_a_row_that_no_worker_can_take_is_named(
    config: ScriptConfig, cell: dict[str, Any], sentence: str
) -> None:
    (name,) = cell
    bad = piece(3, 4, 5, **cell)
    if name == "arrival_us" and config is UNTIMED:
        given(config, bad)  # nobody reads it
        return
    with pytest.raises(InputProblem) as refused:
        given(config, bad)
    assert str(refused.value) == f"{name} of sensor 'b' {sentence}"


@CONFIGS
@pytest.mark.parametrize(
    "cell",
    [
        {"event_time_us": 0},
        {"event_time_us": END_US - 1},
        {"arrival_us": END_US - 1},
        {"arrival_us": 1 - END_US},
        {"value": None},
    ],
)
def test_a_row_at_the_edge_is_taken(config: ScriptConfig, cell: dict[str, Any]) -> None:
    taken = given(config, piece(3, 4, 5, **cell)).arrivals
    assert [each.seq.tolist() for each in taken.values()] == [[3], [4]]
    for name, value in cell.items():
        if name == "event_time_us":
            assert taken[1].ts.tolist() == [value]


@CONFIGS
def test_rows_of_a_piece_may_stand_in_any_order(config: ScriptConfig) -> None:
    whole = given(config, piece(3, 4, 6, 7))
    for order in permutations(range(4)):
        assert repr(given(config, piece(3, 4, 6, 7).take(order))) == repr(whole)


@CONFIGS
def test_a_micro_batch_may_come_in_any_pieces(config: ScriptConfig, seed: int) -> None:
    random, share = Random(seed), compile_plan(config).share(0)
    for _ in range(40):
        rows = [
            {
                **row,
                "event_time_us": random.randrange(9_000),
                "arrival_us": random.randrange(40),
                "value": random.choice((1.0, 1.0, None)),
            }
            for row in piece(*sorted(random.sample(range(40), 12))).to_pylist()
        ]
        whole = pa.Table.from_pylist(rows, pa.schema(list(COLUMNS.items())))
        begins = [0, *sorted(random.sample(range(1, 12), 3)), 12]
        parts = [whole.slice(begin, end - begin) for begin, end in pairwise(begins)]
        state, found = advance(share, State(), given(config, *parts))
        expected, answers = advance(share, State(), given(config, whole))
        # The number of the last arrival is told with a clock, which a piece may not have.
        assert repr(state._replace(seq=0)) == repr(expected._replace(seq=0))
        assert repr(found) == repr(answers)


@CONFIGS
@pytest.mark.parametrize("again", [(7, 9), (4, 9), (4, 10), (9, 4), (3, 4)])
def test_arrivals_that_come_again_are_refused(config: ScriptConfig, again: tuple[int, ...]) -> None:
    share = compile_plan(config).share(0)
    state, _ = advance(share, State(), given(config, piece(3, 4, 7)))
    advance(share, state, given(config, piece(9, 10)))
    with pytest.raises(ValueError, match="comes after 7: the files of a history"):
        advance(share, state, given(config, piece(*again)))


def test_silent_sensors_need_pieces_in_order() -> None:
    share = compile_plan(TIMED).share(0)
    state, _ = advance(share, State(), given(TIMED, piece(3, 4, 8)))  # nobody asks for 8
    with pytest.raises(ValueError, match="comes after 8: the files of a history"):
        advance(share, state, given(TIMED, piece(7, 9)))
    pieces = given(TIMED, piece(3, 4, 7), piece(7, 9), piece(10, 12))
    with pytest.raises(InputProblem, match="in which seq does not begin above the part before"):
        advance(share, State(), pieces)
