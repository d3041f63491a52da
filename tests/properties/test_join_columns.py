"""Predicates on any columns of tuples, whose values may be missing, beside plain loops."""

import math
import operator
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.vocabulary import Event, JoinConfig, Workload
from model.vocabulary.join import (
    And,
    Apart,
    Band,
    Between,
    Equi,
    Ineq,
    Match,
    Predicate,
    R,
    S,
    Where,
)
from spark_impl.join import messages, run_in_process
from spark_impl.join.checkpoint import (
    StreamState,
    WorkerState,
    adopt,
    decode_state,
    empty_state,
    encode_state,
)
from spark_impl.join.columns import find_missing
from spark_impl.join.conditions import accepts, holds
from spark_impl.join.in_process import arrivals_of
from spark_impl.join.matching import (
    Chosen,
    Given,
    Guarded,
    Query,
    Tuples,
    decide,
    schema_of,
)
from spark_impl.join.queries import continue_config, submit
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
KINDS = {"key": "text", "value": "number", "event_time": "time", **dict(COLUMNS)}
WHOLE = st.one_of(st.integers(-3, 3), st.sampled_from([-MOST, MOST, MOST - 1]))
VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "number": st.one_of(
        st.sampled_from([0.0, -0.0, 0.1, 0.3, 1.0, 1e308, -1e308, math.nan, math.inf, -math.inf]),
        st.integers(-3, 3).map(float),
    ),
    "integer": WHOLE,
    "text": st.sampled_from(["", "a", "a\0", "b", "\uffff", "\N{GRINNING FACE}", "NaN"]),
    "time": WHOLE,
    "boolean": st.booleans(),
}
OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
ORDERS = ("<", "<=", ">", ">=", "!=")


def columns_of(*kinds: str) -> st.SearchStrategy[str]:
    """Return the names of columns of some kinds."""
    return st.sampled_from([name for name, kind in KINDS.items() if kind in kinds])


@st.composite
def predicates(draw: st.DrawFn) -> Predicate:
    """Return a predicate on one kind of columns."""
    kind = draw(st.sampled_from(sorted(VALUES)))
    one, other = draw(columns_of(kind)), draw(columns_of(kind))
    found: list[Predicate] = [Equi(one, other)]
    is_ordered = kind != "boolean"
    found.append(Ineq(one, draw(st.sampled_from(ORDERS if is_ordered else ("!=",))), other))
    constant = draw(VALUES[kind].filter(lambda each: each == each and abs_of(each) <= MOST))
    operators = sorted(OPERATORS) if is_ordered else ["=", "!="]
    stream = draw(st.sampled_from([R, S]))
    found.append(Where(stream, one, draw(st.sampled_from(operators)), constant))
    if kind in ("number", "integer", "time"):
        whole = st.integers(0, 4) | st.just(MOST)
        eps = draw(whole if kind != "number" else whole.map(float))
        low, high = sorted(draw(st.tuples(st.integers(-3, 3), st.integers(-3, 3))))
        bounds: tuple[int | None, int | None] = draw(
            st.sampled_from([(low, high), (None, high), (low, None), (-MOST, high)])
        )
        found += [Band(one, eps, other), Apart(one, eps, other), Between(one, *bounds, other)]
    return draw(st.sampled_from(found))


def abs_of(value: object) -> float:
    return abs(value) if isinstance(value, int | float) else 0


@st.composite
def events_of(draw: st.DrawFn, most: int = 12) -> list[Event]:
    """Return arrivals whose columns may have nothing."""
    found = []
    for seq in range(draw(st.integers(0, most))):
        more = tuple(draw(st.none() | VALUES[kind]) for _, kind in COLUMNS)
        key, value = draw(VALUES["text"]), float(draw(st.integers(-2, 2)))
        event = Event(
            seq, seq, key, draw(st.integers(0, 9)), value, seq, draw(st.sampled_from("RS"))
        )
        found.append(event._replace(more=more))
    return found


def value_of(event: Event, column: str) -> Any:
    """Return a value of an event, ``None`` if it is missing."""
    built_in = {"key": event.key, "value": event.value, "event_time": event.event_time_us}
    named = built_in | dict(zip(dict(COLUMNS), event.more, strict=True))
    value = named[column]
    return None if value != value else value


def satisfies(predicate: Predicate, r: Event, s: Event) -> bool:
    """Return whether two tuples satisfy a predicate, one value at a time."""
    match predicate:
        case And(parts):
            return all(satisfies(part, r, s) for part in parts)
        case Where(stream, column, op, constant):
            value = value_of(r if stream == R else s, column)
            return value is not None and OPERATORS[op](value, constant)
        case Ineq(left, op, right):
            one, other = value_of(r, left), value_of(s, right)
            return None not in (one, other) and OPERATORS[op](one, other)
    one, other = value_of(r, predicate.column), value_of(s, predicate.other)
    if one is None or other is None:
        return False
    match predicate:
        case Equi():
            return bool(one == other)
        case Band(_, eps):
            return bool(abs(one - other) <= eps)
        case Apart(_, eps):
            return bool(abs(one - other) > eps)
        case Between(_, low, high):
            ahead = other - one
            is_number = ahead == ahead
            is_ahead = (low is None or ahead >= low) and (high is None or ahead <= high)
            return bool(is_number and is_ahead)
    raise AssertionError(predicate)


def config_with(*predicates: Predicate, **settings: Any) -> JoinConfig:
    """Return a chain whose streams have all columns."""
    queries = tuple((f"q{n}", each) for n, each in enumerate(predicates))
    return JoinConfig(4, queries, r_columns=COLUMNS, s_columns=COLUMNS, **settings)


def tuples_of(events: list[Event], stream: str) -> Tuples:
    return arrivals_of(events, stream, config_with(And())).tuples


def same(one: Tuples, other: Tuples) -> bool:
    """Return whether tuples have the same columns, with the same values and nothing at the same."""
    assert [*one.more] == [*other.more]
    both = zip(one.columns(), other.columns(), strict=True)
    for left, right in both:
        assert left.dtype == right.dtype
        np.testing.assert_array_equal(left, right)
    return True


@given(events_of(), st.lists(predicates(), min_size=1, max_size=3))
def test_a_predicate_holds_where_a_loop_says_so(
    events: list[Event], parts: list[Predicate]
) -> None:
    predicate = And(tuple(parts)) if len(parts) > 1 else parts[0]
    of = {stream: [each for each in events if each.stream == stream] for stream in (R, S)}
    pairs = [(r, s) for r in range(len(of[R])) for s in range(len(of[S]))]
    r, s = (np.array([pair[at] for pair in pairs], np.int64) for at in (0, 1))
    one, other = tuples_of(events, R), tuples_of(events, S)
    found = holds(predicate, Chosen(one, r), Chosen(other, s)).tolist()
    assert found == [satisfies(predicate, of[R][a], of[S][b]) for a, b in pairs]
    for stream, tuples in ((R, one), (S, other)):
        own = [each for each in parts if isinstance(each, Where) and each.stream == stream]
        accepted = accepts(predicate, stream, tuples)
        assert (accepted is None) == (not own)
        if accepted is not None:
            wanted = [satisfies(And(tuple(own)), each, each) for each in of[stream]]
            assert accepted.tolist() == wanted


@given(events_of(), st.integers(0, 12))
def test_columns_come_through_blocks_and_states(events: list[Event], cut: int) -> None:
    r, s = tuples_of(events, R), tuples_of(events, S)
    schemas = dict.fromkeys((R, S), schema_of(COLUMNS))
    for stream, tuples in ((R, r), (S, s)):
        parts = [tuples.take(slice(0, cut)), tuples.take(slice(cut, None))]
        sent = [messages.Block(stream, n, 0, 0, part) for n, part in enumerate(parts, 1)]
        [frame] = messages.encode_messages(sent)
        [(kind, body)] = messages.Frames(messages.FRAME_BYTES_MAX).feed(frame)
        came = messages.decode_messages(kind, body, schemas)
        assert all(
            same(one.tuples, part)
            for one, part in zip(came, parts, strict=True)
            if isinstance(one, messages.Block)
        )
    state = decode_state(encode_state(WorkerState(StreamState(r), StreamState(s))))
    assert same(state.r.tuples, r)
    assert same(state.s.tuples, s)


@given(events_of())
def test_tuples_have_nothing_in_a_column_that_came_later(events: list[Event]) -> None:
    first = COLUMNS[::2]
    plain = [each._replace(more=each.more[::2]) for each in events]
    config = replace(config_with(And()), r_columns=first, s_columns=first)
    r, s = (arrivals_of(plain, stream, config).tuples for stream in (R, S))
    saved = encode_state(WorkerState(StreamState(r), StreamState(s)))
    state, _ = adopt(lambda _: decode_state(saved), 1, 1, 0, Matcher(config_with(And())))
    kept = {name for name, _ in first}
    blank = [
        each._replace(
            more=tuple(
                value if name in kept else None
                for (name, _), value in zip(COLUMNS, each.more, strict=True)
            )
        )
        for each in events
    ]
    assert same(state.r.tuples, tuples_of(blank, R))
    assert same(state.s.tuples, tuples_of(blank, S))


def test_a_state_without_columns_is_the_one_of_before() -> None:
    names = ["rank", "source_id", "ts", "value", "key", "part"]
    saved = pa.ipc.open_file(pa.BufferReader(encode_state(empty_state()))).read_all()
    assert saved.schema.names == names


@settings(max_examples=50)
@given(events_of(24), st.lists(predicates(), min_size=1, max_size=3), st.integers(1, 3))
def test_a_chain_finds_every_pair(
    events: list[Event], parts: list[Predicate], workers: int
) -> None:
    config = config_with(*parts, And(tuple(parts)), workers=workers, block_size=2)
    trace = run_in_process(Workload("join", tuple(events), config.to_json()))
    assert sorted(each[:3] for each in trace.of(Match)) == sorted(
        (name, r.source_id, s.source_id)
        for name, predicate in config.queries
        for r in events
        for s in events
        if (r.stream, s.stream) == (R, S)
        and abs(r.event_time_us - s.event_time_us) <= config.window_us
        and satisfies(predicate, r, s)
    )


@pytest.mark.parametrize("column", ["count", "at"])
def test_the_least_integer_is_refused(column: str) -> None:
    at = [name for name, _ in COLUMNS].index(column)
    event = Event(0, 0, "", 0, 0.0, 0, R, (None,) * at + (-MOST - 1,) + (None,) * (4 - at))
    sentence = f"^the column '{column}' has the value {-MOST - 1}; the least is {-MOST}$"
    with pytest.raises(InputProblem, match=sentence):
        run_in_process(Workload("join", (event,), config_with(And()).to_json()))


def test_columns_may_come_but_none_may_go_or_change() -> None:
    before = config_with(And())
    more = replace(before, r_columns=(*COLUMNS, ("no2", "number")))
    assert continue_config(before, (), more, (), 1) == more
    fewer, other = COLUMNS[1:], (("pm25", "text"), *COLUMNS[1:])
    for columns, now in ((fewer, "it is not given"), (other, "it is text now")):
        given_now = replace(before, s_columns=columns)
        sentence = rf"^S has the column 'pm25' \(number\) in this chain, but {now}: columns may"
        with pytest.raises(InputProblem, match=sentence):
            continue_config(before, (), given_now, (), 1)


def test_a_query_on_a_column_that_is_not_carried_is_refused() -> None:
    config = config_with(And())
    assert submit(config, "far", Apart("pm25", 2.0), 3).span("far") == (3, None)
    with pytest.raises(InputProblem, match=r"^query 'far': R has no column 'pm01'; it has key, "):
        submit(config, "far", Apart("pm01", 2.0), 3)


def test_a_function_sees_columns_and_no_others() -> None:
    more = [(1.0, 2, "a", None, True), (math.nan, None, None, 7, None)]
    events = [Event(n, n, "k", n, 0.0, n, R, each) for n, each in enumerate(more)]
    chosen = Chosen(tuples_of(events, R), np.array([0, 1], np.int64))
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


def test_a_run_with_columns_does_not_depend_on_the_interleaving() -> None:
    draw = random.Random(3)
    events = tuple(
        Event(
            n, n, "", n // 4, 0.0, n, draw.choice("RS"), (float(n % 7), n % 5, "a", n, n % 2 == 0)
        )
        for n in range(60)
    )
    config = config_with(Ineq("count", "<", "count"), Between("at", 1, 9), workers=3, block_size=3)
    workload = Workload("join", events, config.to_json(), (20, 40))
    runs = [run_in_process(workload, seed=seed) for seed in range(3)]
    pairs = [[each[:3] for each in run.of(Match)] for run in runs]
    assert pairs[0]
    assert pairs[0] == pairs[1] == pairs[2]
