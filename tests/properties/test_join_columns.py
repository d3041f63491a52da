"""Columns of a chain in process: stores that get them, functions that see them, refusals."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from model.vocabulary import Event, JoinConfig, Workload
from model.vocabulary.join import (
    And,
    R,
    S,
)
from spark_impl.join import run_in_process
from spark_impl.join.checkpoint import (
    WorkerState,
    adopt,
    decode_state,
    empty_state,
    encode_state,
)
from spark_impl.join.columns import find_missing
from spark_impl.join.in_process import arrivals_of
from spark_impl.join.matching import (
    Chosen,
    Given,
    Guarded,
    Query,
    decide,
)
from spark_impl.join.queries import continue_config
from spark_impl.join.side import Matcher
from spark_impl.join.store import STATE, load_store, open_store
from spark_impl.runtime.storage import InputProblem
from spark_impl.runtime.tables import TableWriter
from tests.golden.archive import unpack

ROOT = Path(__file__).resolve().parents[2]
MOST = (1 << 63) - 1
COLUMNS = (
    ("pm25", "number"),
    ("count", "integer"),
    ("station", "text"),
    ("at", "time"),
    ("valid", "boolean"),
)


CONFIG = JoinConfig(4, (("all", And()),), r_columns=COLUMNS, s_columns=COLUMNS)


def test_a_state_without_columns_is_the_one_of_before() -> None:
    names = ["rank", "source_id", "ts", "value", "key", "part"]
    saved = pa.ipc.open_file(pa.BufferReader(encode_state(empty_state()))).read_all()
    assert saved.schema.names == names


@pytest.mark.parametrize("column", ["count", "at"])
def test_the_least_integer_is_refused(column: str) -> None:
    at = [name for name, _ in COLUMNS].index(column)
    event = Event(0, 0, "", 0, 0.0, 0, R, (None,) * at + (-MOST - 1,) + (None,) * (4 - at))
    sentence = f"^the column '{column}' has the value {-MOST - 1}; the least is {-MOST}$"
    with pytest.raises(InputProblem, match=sentence):
        run_in_process(Workload("join", (event,), CONFIG.to_json()))


def test_a_function_sees_columns_and_no_others() -> None:
    more = [(1.0, 2, "a", None, True), (math.nan, None, None, 7, None)]
    events = [Event(n, n, "k", n, 0.0, n, R, each) for n, each in enumerate(more)]
    chosen = Chosen(arrivals_of(events, R, CONFIG).tuples, np.array([0, 1], np.int64))
    seen: list[Any] = []

    def look(r: Given, s: Given) -> Any:
        seen[:] = [getattr(r, name).tolist() for name, _ in COLUMNS], len(s), r.event_time.tolist()
        return r.key == s.key

    query = Query("f", And(), Guarded(look, {(S, "value")}))
    assert decide(query, chosen, chosen).tolist() == [True, True]
    columns, *others = seen
    assert others == [2, [0, 1]]
    assert math.isnan(columns[0].pop())
    assert columns == [[1.0], [2, -MOST - 1], ["a", None], [-MOST - 1, 7], [1, -1]]
    with pytest.raises(InputProblem, match=r"^the input S has no column 'value', which a function"):
        decide(
            query._replace(free=Guarded(lambda _, s: s.value > 0, {(S, "value")})), chosen, chosen
        )
    with pytest.raises(AttributeError, match=r"^the tuples have no column 'take'$"):
        decide(query._replace(free=lambda r, _: r.take > 0), chosen, chosen)


def test_a_store_of_before_goes_on_with_columns(tmp_path: Path) -> None:
    unpack(ROOT / "tests" / "golden" / "unreleased" / "store-join.zip", tmp_path)
    place = load_store(tmp_path / "disk" / "store")
    last = place.commit_of(place.view.last)
    assert not last.config.r_columns
    config = replace(last.config, r_columns=COLUMNS, s_columns=(("pm25", "text"),))
    assert continue_config(last.config, (), config, (), last.epoch + 1).r_columns == COLUMNS
    files = place.states(STATE, last.epoch)

    def load(worker: int) -> WorkerState:
        return decode_state(place.read_state(files[worker], STATE)["content"])

    state, _ = adopt(load, len(files), 1, 0, Matcher(config))
    assert sum(len(each.tuples) for each in state) == sum(last.held) > 0
    assert all(find_missing(column).all() for column in state.r.tuples.more.values())
    grown, writer = open_store(place.root, config), TableWriter(place.root)
    before = writer.view.columns
    for _ in range(2):
        writer.require_columns(each for stream in (R, S) for each in grown.fields(stream))
        added = {f"r__{name}" for name, _ in COLUMNS} | {"s__pm25"}
        assert writer.view.columns == before | added
    assert writer.view.last == last.epoch
    assert grown.at().read_kind("admitted-R").schema.names[5:] == [
        *(f"r__{name}" for name, _ in COLUMNS),
        "batch",
    ]
