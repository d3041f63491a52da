"""A correction finds every row of its windows.

Rows lie in files and row groups in any way; redeliveries are counted apart.
"""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.vocabulary import SlackConfig
from properties.promised import Reached, promised
from spark_impl.runtime.histories import COLUMNS, file_of
from spark_impl.runtime.storage import locate
from spark_impl.slack import SLACK
from spark_impl.windows import recompute
from spark_impl.windows.history import History
from spark_impl.windows.store import WindowStore

SCHEMA = pa.schema([pa.field(*each) for each in COLUMNS.items()])
EDGES = (
    "a row group ends with a window's start",
    "a row group starts with a window's end",
    "a tuple came again in a window, and lies right behind another",
)


class Part(NamedTuple):
    """One file of a history."""

    tuples: list[tuple[int, int]]
    """Event time and identity of every row."""
    group_rows: int


@st.composite
def histories(draw: st.DrawFn) -> tuple[int, int, list[Part], list[int], int]:
    """Draw size, slide, files, and the windows and the last arrival that a correction asks for.

    Times lie at multiples of the slide, one before or one after, and grow as those of a stream do:
    row groups often end or begin where a window does. Some rows deliver a tuple again.
    """
    slide = draw(st.integers(1, 6))
    size = slide * draw(st.integers(1, 3))
    edge = st.builds(lambda n, by: n * slide + by, st.integers(0, 8), st.integers(-1, 1))
    rows = draw(st.lists(st.lists(edge, min_size=1, max_size=12), min_size=1, max_size=3))
    parts: list[Part] = []
    for times in rows:
        known = [each for part in parts for each in part.tuples]
        fresh = [(time, len(known) + place) for place, time in enumerate(sorted(times))]
        again = draw(st.lists(st.sampled_from(known + fresh), max_size=3))
        tuples = fresh + again if draw(st.booleans()) else sorted(fresh + again)
        parts.append(Part(tuples, draw(st.integers(1, 4))))
    starts = draw(st.sets(st.integers(0, 8), min_size=1, max_size=5))
    last = draw(st.just(1 << 60) | st.integers(0, 20))
    return size, slide, parts, [slide * each for each in sorted(starts)], last


def write(folder: Path, parts: list[Part]) -> None:
    """Write a history whose values are powers of two, so that an answer tells its rows."""
    seq = 0
    for number, part in enumerate(parts):
        columns: dict[str, list[object]] = {name: [] for name in COLUMNS}
        for time_us, source_id in part.tuples:
            row = {
                "seq": seq,
                "source_id": source_id,
                "key": "a",
                "event_time_us": time_us,
                "value": float(1 << seq),
                "arrival_us": seq,
            }
            for name, values in columns.items():
                values.append(row[name])
            seq += 1
        table = pa.table(columns, schema=SCHEMA)
        path = file_of(locate(folder), number).path
        has_statistics = part.group_rows != 2
        pq.write_table(table, path, row_group_size=part.group_rows, write_statistics=has_statistics)


def requested(size: int, slide: int, starts: list[int], last: int) -> recompute.WindowRequest:
    """Return the request of a correction for the windows with some starts."""
    settings = SLACK.settings(SlackConfig(size, slide))
    store = WindowStore(locate("nowhere"), (), room=SLACK)
    pairs = [
        {"task": 0, "key": "a", "start_us": start, "source_id": 0, "windows": 1} for start in starts
    ]
    pending = pa.Table.from_pylist(pairs, schema=store.kinds["pending"])
    return recompute.request_windows(settings, store.by, pending, {(0,): last})[0]


@promised(*EDGES, examples=120)  # few have a redelivery at an edge
@given(drawn=histories())
def test_a_correction_finds_every_row_of_its_windows(
    tmp_path_factory: pytest.TempPathFactory,
    reached: Reached,
    drawn: tuple[int, int, list[Part], list[int], int],
) -> None:
    size, slide, parts, starts, last = drawn
    folder = tmp_path_factory.mktemp("history")
    write(folder, parts)
    request = requested(size, slide, starts, last)
    found, _ = History(None, request.settings, locate(folder), ()).recompute(request)  # type: ignore[arg-type]  # no session is needed
    tuples = [each for part in parts for each in part.tuples]
    first = {each: seq for seq, each in reversed(list(enumerate(tuples)))}
    needed = Counter[int]()
    expected = {}
    for start in starts:
        known = tuples[: last + 1]
        inside = [seq for seq, (time_us, _) in enumerate(known) if start <= time_us < start + size]
        once = sorted({first[tuples[seq]] for seq in inside})
        needed.update(inside)
        if inside:
            value = float(sum(1 << seq for seq in once))
            expected[start // slide] = (len(once), value, len(inside))
    answers = zip(*(each.tolist() for each in found[1:5]), strict=True)
    assert {j: (n, value, all_) for j, value, n, all_ in answers if n} == expected
    assert int(found.rows.sum()) == len(needed)
    note_edges(reached, parts, starts, size)


def note_edges(reached: Reached, parts: list[Part], starts: list[int], size: int) -> None:
    """Count what lies at an edge: ends of row groups, and redeliveries."""
    tuples = [each for part in parts for each in part.tuples]
    for time_us, _ in (each for each, times in Counter(tuples).items() if times > 1):
        inside = any(start <= time_us < start + size for start in starts)
        ends = {
            start + size for start in starts if any(start <= t < start + size for t, _ in tuples)
        }
        reached.add({EDGES[2]: inside and time_us in ends})
    for tuples, rows in parts:
        times = [time_us for time_us, _ in tuples]
        for begin in range(0, len(times), rows):
            group = times[begin : begin + rows]
            others_start = [start for start in starts if start == group[-1]]
            reached.add({EDGES[0]: bool(others_start)})
            reached.add({EDGES[1]: any(start + size == group[0] for start in starts)})
