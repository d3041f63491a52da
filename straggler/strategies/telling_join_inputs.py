"""Inputs, messages and stores of a chain that just fit, the nearest that do not, and why."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from struct import pack
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from model.vocabulary import Event, GroupingConfig, JoinConfig
from model.vocabulary.join import END_US, NO_WATERMARK_US, And, R, S
from spark_impl.grouping import store as grouping
from spark_impl.join.admission import Admitted, Intake
from spark_impl.join.columns import NO_INTEGER, TYPES, check_integers
from spark_impl.join.in_process import arrivals_of
from spark_impl.join.inputs import read_file, require_accepted
from spark_impl.join.matching import SCHEMA
from spark_impl.join.messages import (
    ACK,
    BLOCKS,
    FRAME_BYTES_MAX,
    JSON,
    PING,
    Frames,
    decode_json,
    decode_messages,
    encode_json,
    frame,
)
from spark_impl.join.rendezvous import Place, Rendezvous, addresses_of, host_of_worker, meet
from spark_impl.join.store import load_store, open_store
from spark_impl.join.transport import greet, listen, read_json
from spark_impl.runtime.histories import append
from spark_impl.runtime.storage import Location

HOST, OTHER, AWAY = "127.0.0.1", "127.0.0.2", "192.0.2.1"
"""Two addresses of this machine, and one that no machine has."""
PATIENCE_S = 60.0
FAR_US = 1 << 61
"""Event times (us) lie in [-FAR_US, FAR_US)."""
EVERYTHING = (("a", And()),)
"""The only query of a chain, which pairs everything."""

# ----------------------------------------------------------------------------------------- inputs


def _accept(given: tuple[str, str, str | None]) -> None:
    name, given_type, kind = given
    found = require_accepted(R, {"id": "bigint", name or "other": given_type}, name or "at", kind)
    assert found == given_type


def _read(given: tuple[Any, str, Sequence[Any]]) -> None:
    """Read a column of a history as one of a kind, with these values."""
    column, kind, due = given
    columns = {"c": column} if isinstance(column, pa.Array) else column
    fixed = {"seq": pa.array(range(len(due))), "stream": pa.array([R] * len(due))}
    schema = pa.schema([("seq", pa.int64()), ("stream", pa.string()), ("c", TYPES[kind])])
    with TemporaryDirectory() as folder:
        file = append(folder, pa.table({**fixed, **columns}))
        found = read_file(file, schema, "stream", (R, S))
    assert found.schema == schema
    assert found.column("c").to_pylist() == due, found


def _side(streams: Sequence[str]) -> None:
    """Read the rows of some streams from a history."""
    schema = pa.schema([("seq", pa.int32()), ("side", pa.string())])
    rows = pa.table([range(len(streams)), streams], ["seq", "side"])
    with TemporaryDirectory() as folder:
        found = read_file(append(folder, rows), schema, "side", ("left", "right"))
    assert found.equals(rows.cast(schema))


def _arrive(given: tuple[int, int]) -> None:
    """Let a tuple arrive, beside one of 1970, at a chain with a window."""
    window_us, us = given
    events = [Event(seq, seq, "", each, 0.0, 0, R) for seq, each in enumerate((0, us, 0))]
    arrivals_of(events, R, JoinConfig(window_us, EVERYTHING))


def _admit(batches: Sequence[Iterable[tuple[int, int]]]) -> None:
    """Admit identities with event times, some of them in a later run."""
    intake, seen = Intake(R, None, Admitted()), 0
    for batch in batches:
        events = [Event(seq, each, "", us, 0.0, 0, R) for seq, (each, us) in enumerate(batch)]
        arrivals = arrivals_of(events, R, JoinConfig(9, EVERYTHING))
        tuples, _ = intake.admit(arrivals)
        assert tuples.rank.tolist() == [*range(seen, seen + len(tuples))]
        seen += len(tuples)
    state = intake.checkpoint()
    known = {identity for batch in batches for identity, _ in batch}
    assert (state.tuples, state.known.source_id.tolist()) == (len(known), sorted(known))
    assert Intake(R, 3, Admitted()).watermark_us == NO_WATERMARK_US


def _forget(given: tuple[int, Sequence[int]]) -> None:
    """Admit four identities; compare those that a checkpoint has with those that are due."""
    lateness_us, due = given
    events = [Event(n, n, "", us, 0.0, 0, R) for n, us in enumerate((0, 7, 6, 10))]
    intake = Intake(R, lateness_us, Admitted())
    intake.admit(arrivals_of(events, R, JoinConfig(9, EVERYTHING)))
    found = intake.checkpoint().known.source_id.tolist()
    if found != due:
        raise ValueError(f"only {found} may come again")


# --------------------------------------------------------------------------- connections, stores


def _feed(data: bytes) -> None:
    """Read greetings, and with each no byte of what follows."""
    frames, at = Frames(16), 0
    while at < len(data):
        size = frames.missing
        assert size > 0
        for kind, body in frames.feed(data[at : at + size]):
            decode_json(kind, body)
            assert frames.missing == 4
        at += size


def _frame(kind: int, body: bytes) -> bytes:
    return pack(">I", 1 + len(body)) + bytes([kind]) + body


def _register(said: Mapping[str, Any]) -> None:
    """Let two workers register, one with other data, after a third one that left at once."""
    with (
        Rendezvous(HOST, 2, timeout_s=PATIENCE_S) as rendezvous,
        ThreadPoolExecutor(2) as pool,
    ):
        place, driver = rendezvous.place, pool.submit(rendezvous.gather)
        own: dict[str, Any] = {"token": place.token, "worker": 0, "address": [HOST, 1], "run": 0}
        greet(place.address, {**own, "address": [AWAY, 7]}, PATIENCE_S).close()
        other = pool.submit(meet, place, 1, 1, (HOST, 2))
        with greet(place.address, {**own, **said}, PATIENCE_S) as connection:
            try:
                read_json(connection, time.monotonic() + PATIENCE_S)
                reason = ""
            except OSError as error:
                reason = str(error)
                meet(place, 0, 1, (HOST, 1))[1].close()
        met = driver.result()
        assert met is not None
        for connection in (other.result()[1], *met[1]):
            connection.close()
        (host, _), right = other.result()[0].addresses
        assert (host[:3], right) == (HOST[:3], (HOST, 2))
    if reason:
        raise ValueError(reason)


def _bind(given: tuple[str, Mapping[str, str], tuple[str, str]]) -> None:
    """Compare the addresses of a driver with those that are due."""
    master, settings, due = given
    conf = {f"spark.driver.{name}": value for name, value in settings.items()}
    context: Any = SimpleNamespace(master=master, getConf=lambda: SimpleNamespace(get=conf.get))
    host, bound_to = addresses_of(context)
    with Rendezvous(HOST, 1) as rendezvous:
        place = rendezvous.place._replace(address=(host, 1))
    own = host_of_worker(place, "10.1.2.3:45")
    found = host, bound_to
    if (found, own) != (due, HOST if host == HOST else "10.1.2.3"):
        raise ValueError(f"the addresses are {found} and {own}")


def _blocks(tuples: int, *sizes: int) -> tuple[int, bytes]:
    """Return a frame of blocks that claims their sizes, with some tuples."""
    columns = [[""] * tuples if name == "key" else [0] * tuples for name in SCHEMA.names]
    rows = pa.record_batch([*map(pa.array, columns, SCHEMA.types)], schema=SCHEMA)
    heads = b"".join(pack(">qqqI", 1, 0, 0, size) for size in sizes)
    return BLOCKS, pack(">cI", b"R", len(sizes)) + heads + rows.serialize().to_pybytes()


def _meet(told: Mapping[str, Any]) -> None:
    """Let a worker register, and tell it something."""
    with listen(HOST) as listener, ThreadPoolExecutor(1) as pool:
        place = Place(listener.getsockname()[:2], "token", PATIENCE_S)
        meeting = pool.submit(meet, place, 0, 0, (HOST, 1))
        with listener.accept()[0] as driver:
            driver.sendall(encode_json(told))
            if error := meeting.exception():
                raise ValueError(error)
            meeting.result()[1].close()


def _other(root: Location) -> None:
    """Open a store of another room, and take it for that of a chain."""
    grouping.open_store(root, GroupingConfig(instances=2))
    load_store(root)


def _open(window_us: int, lateness_us: int | None = None) -> Callable[[Location], object]:
    config = JoinConfig(window_us, EVERYTHING, lateness_us=lateness_us)
    return lambda root: (open_store(root, config), load_store(root))


_OUNCE = {"c": pa.array([1.0]), "value_c": pa.array([2.0])}
_DAY = pa.array([86_400_000], pa.timestamp("ms"))
_CHAIN = _open(9)
READ: Mapping[str, Callable[[Any], object]] = {
    "accepted": _accept,
    "column": _read,
    "sides": _side,
    "integers": lambda values: check_integers("n", pa.chunked_array([pa.array(values)])),
    "arrived": _arrive,
    "admitted": _admit,
    "forgotten": _forget,
    "greeted": _feed,
    "registered": _register,
    "bound": _bind,
    "told": _meet,
    "framed": lambda size: frame(JSON, bytes(size)),
    "messages": lambda given: decode_messages(given[0], given[1], {R: SCHEMA, S: SCHEMA}),
}
OF_INPUTS: Sequence[tuple[str, Any, Any, str]] = (
    ("accepted", ("value", "int", None), ("value", "bigint", None), "smallint, int, float, double"),
    (
        "accepted",
        ("seq", "bigint", None),
        ("seq", "timestamp", None),
        "tinyint, smallint, int, big",
    ),
    (
        "accepted",
        ("event_time_us", "timestamp", None),
        ("event_time_us", "string", None),
        "is string; it can be tinyint, smallint, int, bigint, timestamp",
    ),
    ("accepted", ("a", "timestamp", "time"), ("a", "timestamp", "integer"), "int, bigint"),
    ("accepted", ("a", "bigint", "integer"), ("a", "bigint", "number"), "int, float, double"),
    ("accepted", ("a", "string", "text"), ("a", "int", "text"), "is int; it can be string"),
    ("accepted", ("a", "boolean", "boolean"), ("a", "int", "boolean"), "it can be boolean"),
    ("accepted", ("key", "string", None), ("", "int", "time"), "has no column 'at'; it has ['id',"),
    (
        "column",
        (pa.array([1, None]), "number", [1.0, None]),
        (pa.array(["1"]), "number", [1.0]),
        "holds string; it must hold double",
    ),
    ("column", (pa.array([2.0]), "integer", [2]), (pa.array([2.5]), "integer", [2]), "hold int64"),
    ("column", (_DAY, "time", [86_400_000_000]), (_DAY, "number", [0.0]), "it must hold double"),
    ("column", (pa.array([3]), "time", [3]), (pa.array([True]), "time", [1]), "it must hold int64"),
    (
        "column",
        (pa.array([2_000], pa.timestamp("ns")), "time", [2]),
        (pa.array([2_001], pa.timestamp("ns")), "time", [2]),
        "holds timestamp[ns]; it must hold int64",
    ),
    (
        "column",
        (pa.array(["x"], pa.large_string()), "text", ["x"]),
        (pa.array([b"x"]), "text", ["x"]),
        "holds binary; it must hold string",
    ),
    (
        "column",
        (pa.array(["x"]).dictionary_encode(), "text", ["x"]),
        (pa.array([1]), "text", ["1"]),
        "holds int64; it must hold string",
    ),
    ("column", (pa.array([True]), "boolean", [True]), (pa.array([1]), "boolean", [1]), "hold bool"),
    (
        "column",
        (pa.nulls(1), "text", [None]),
        ({"d": pa.nulls(1)}, "text", [None]),
        "no column 'c'",
    ),
    ("column", (_OUNCE, "number", [1.0]), ({"value_d": _DAY}, "time", [1]), "no column 'c'; its"),
    ("column", ({"value_c": pa.array([2])}, "number", [2.0]), ({}, "number", [None]), "no column"),
    ("sides", ["left", "right"], ["left", "up"], "has the side 'up'; it can be left or right"),
    ("integers", [1 - (1 << 63), None], [0, NO_INTEGER], "'n' has the value -9223372036854775808;"),
    ("integers", [0.5], [NO_INTEGER], "the least is -9223372036854775807"),
    ("arrived", (0, FAR_US - 1), (0, FAR_US), "us is out of range: with a window of 0 us it must"),
    ("arrived", (0, -FAR_US), (0, -FAR_US - 1), f"must lie between {-FAR_US} and {FAR_US - 1} us"),
    ("arrived", (END_US - 9, 8), (END_US - 9, 9), "the event time 9 us is out of range"),
    ("admitted", [[(0, 5), (0, 5)]], [[(0, 5), (0, 6)]], "comes with the event times 5 and 6 us"),
    ("admitted", [[(7, 5)], [(3, 1), (7, 5)]], [[(7, 5)], [(7, 1)]], "times 5 and 1 us"),
    ("forgotten", (3, [1, 3]), (2, [1, 3]), "only [3] may come again"),
    (
        "greeted",
        encode_json({"worker": 1}) + encode_json({"run": 2}),
        pack(">I", 17) + bytes(17),
        "a frame of 17 bytes came, at most 16 are permitted",
    ),
    ("greeted", _frame(JSON, b'{"worker": 123}'), pack(">I", 0), "a frame of 0 bytes came"),
    ("greeted", _frame(JSON, b"{}"), _frame(PING, b"{}"), "a frame of kind 6 is not a greeting"),
    ("greeted", _frame(JSON, b"{}"), _frame(JSON, b"[]"), "a frame of kind 5 is not a greeting"),
    ("greeted", _frame(JSON, b"{}"), _frame(JSON, b"{"), "a frame of kind 5 is not a greeting"),
    *(
        ("registered", good, bad, "the connection was closed without an answer")
        for good, bad in (
            ({}, {"worker": 2}),
            ({}, {"worker": -1}),
            ({}, {"worker": False}),
            ({"run": (1 << 63) - 1}, {"run": 1 << 63}),
            ({"run": 0}, {"run": -1}),
            ({"address": [HOST, (1 << 16) - 1]}, {"address": [HOST, 1 << 16]}),
            ({"address": [HOST, 1]}, {"address": [HOST, 0]}),
            ({"address": [f"{HOST:x<255}", 1]}, {"address": [f"{HOST:x<256}", 1]}),
            ({"address": [HOST, 3]}, {"address": ["", 3]}),
            ({"address": [HOST, 4]}, {"address": [HOST]}),
        )
    ),
    ("bound", ("local[4]", {"host": AWAY}, (HOST, HOST)), ("yarn", {}, (HOST, HOST)), "are ('None"),
    (
        "bound",
        ("yarn", {"host": AWAY, "bindAddress": OTHER}, (AWAY, OTHER)),
        ("yarn", {"host": AWAY, "bindAddress": "0.0.0.0"}, (AWAY, AWAY)),
        "('192.0.2.1', '0.0.0.0')",
    ),
    (
        "bound",
        ("spark://h:7077", {"host": OTHER, "bindAddress": "::"}, (OTHER, OTHER)),
        ("yarn", {"host": OTHER, "bindAddress": HOST}, (OTHER, OTHER)),
        "('127.0.0.2', '127.0.0.1')",
    ),
    ("framed", FRAME_BYTES_MAX - 1, FRAME_BYTES_MAX, "of 67108865 bytes is over the 67108864"),
    *(
        ("told", {"attempt": "a", "addresses": [[HOST, 1]]}, bad, said)
        for bad, said in (
            ({"attempt": 1, "addresses": []}, "the answer names no attempt"),
            ({"attempt": "a", "addresses": HOST}, "the answer names no attempt"),
            ({"attempt": "a", "addresses": [[HOST, 0]]}, "its address is none"),
        )
    ),
    ("messages", _blocks(5, 2, 0, 3), _blocks(6, 2, 0, 3), "kind 1 with "),
    ("messages", _blocks(1, 1), _blocks(0, 1), "kind 1 with "),
    ("messages", (ACK, b"R" + bytes(24)), (ACK, b"R" + bytes(23)), "kind 2 with 24 bytes cannot"),
    ("messages", (ACK, b"S" + bytes(24)), (ACK, b"T" + bytes(24)), "kind 2 with 25 bytes cannot"),
    ("messages", (ACK, b"S" + bytes(24)), (BLOCKS, b"R" + b"\x01" * 40), "kind 1 with 41 bytes"),
    ("messages", (ACK, b"S" + bytes(24)), (PING, b""), "there is no kind 6 of frame"),
    ("reopened", (_CHAIN, _CHAIN), (_other,), "belongs to a query of room 'grouping', not 'join'"),
    ("reopened", (_CHAIN, _CHAIN), (_CHAIN, _open(8)), "another chain: its window_us is 9, not 8"),
    ("reopened", (_CHAIN, _CHAIN), (_CHAIN, _open(9, 0)), "its lateness_us is None, not 0"),
)
"""An action, inputs that it accepts, the nearest that it refuses, and words of the reason."""
