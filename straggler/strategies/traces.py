"""Workloads and traces with any values that their fields may have, to be written and read."""

from collections.abc import Mapping
from math import inf, nan
from typing import Any, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from model.vocabulary import Event, Fault, Workload, grouping, join, slack, watermark
from model.vocabulary.script import config as script
from straggler.strategies.cells import BEYOND_ASCII, CONTROLS

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
TEXTS = st.text(max_size=4) | st.sampled_from([*BEYOND_ASCII, *CONTROLS, "", "NaN"])
NUMBERS = st.floats() | st.sampled_from([nan, inf, -inf, -0.0])
COLUMNS = [["n", "number"], ["t", "text"], ["i", "integer"], ["b", "boolean"]]
"""Columns of the stream R."""
MORE = st.tuples(NUMBERS | st.none(), TEXTS | st.none(), INT64, st.booleans())
"""Values of the columns of R."""
EVENTS = st.builds(
    lambda event, more: event._replace(more=more if event.stream == "R" else ()),
    st.builds(
        Event,
        seq=st.integers(0, 99),
        source_id=INT64,
        key=TEXTS,
        event_time_us=INT64,
        value=NUMBERS,
        arrival_us=INT64,
        stream=st.sampled_from(["", "R", "S"]),
        more=st.just(()),
    ),
    MORE,
)
TELLING = (
    Event(0, -(1 << 63), BEYOND_ASCII[0], -(1 << 63), nan, 0),
    Event(1, (1 << 63) - 1, CONTROLS[0], 0, inf, 0, "R", (nan, "NaN", 1 << 62, True)),
    Event(2, 0, "", (1 << 63) - 1, -inf, 0, "R", (-inf, None, 1, False)),
)
"""Arrivals with extreme values, which every workload has."""
PLAIN = st.none() | st.booleans() | INT64 | TEXTS
WORKLOADS = st.builds(
    lambda arrivals, cuts, **fields: Workload(
        arrivals=(*TELLING, *arrivals),
        cuts=tuple(sorted(min(cut, len(TELLING) + len(arrivals)) for cut in cuts)),
        **fields,
    ),
    room=TEXTS,
    arrivals=st.lists(EVENTS, max_size=4),
    config=st.dictionaries(TEXTS, PLAIN, max_size=3).map(lambda own: {**own, "r_columns": COLUMNS}),
    cuts=st.lists(st.integers(0, 4), max_size=3),
    faults=st.lists(st.builds(Fault, st.just("kill"), st.integers(0, 9), TEXTS), max_size=2).map(
        tuple
    ),
    seed=INT64,
    flush=st.booleans(),
    name=TEXTS,
)


ROOMS = (slack.WORDS, watermark.WORDS, grouping.WORDS, join.WORDS, script.WORDS)
WORDS = tuple(dict.fromkeys(word for words in ROOMS for word in words))
GOOD: Mapping[type, st.SearchStrategy[Any]] = {
    int: INT64,
    float: st.floats(allow_nan=False, allow_infinity=False),
    str: TEXTS,
    bool: st.booleans(),
}


def declared(word: Any) -> dict[str, tuple[type, bool]]:
    """Return the type of each field, and whether the field has several values of it."""
    hints = {name: get_type_hints(word)[name] for name in word._fields}
    return {
        name: (get_args(hint)[0], True) if get_origin(hint) is tuple else (hint, False)
        for name, hint in hints.items()
    }


def steps_of(word: type) -> st.SearchStrategy[Any]:
    """Return a strategy for steps of a type."""
    fields = {
        name: st.lists(GOOD[kind], max_size=3).map(tuple) if is_tuple else GOOD[kind]
        for name, (kind, is_tuple) in declared(word).items()
    }
    return st.builds(word, **fields)


STEPS = st.sampled_from(WORDS).flatmap(steps_of)
TRACES = st.sampled_from(ROOMS).flatmap(
    lambda words: st.tuples(st.just(words), st.lists(st.one_of(*map(steps_of, words)), max_size=6))
)
