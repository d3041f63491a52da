"""A correction finds every row of its windows, however the rows lie in files and row groups."""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.vocabulary import SlackConfig
from spark_impl.runtime.histories import COLUMNS, file_of
from spark_impl.runtime.storage import locate
from spark_impl.slack.query import SLACK
from spark_impl.windows import recompute
from spark_impl.windows.history import History
from spark_impl.windows.row_groups import Footers
from spark_impl.windows.store import WindowStore
from tests.harness import profiles

SCHEMA = pa.schema([pa.field(*each) for each in COLUMNS.items()])
EDGES = ("a row group ends with a window's start", "a row group starts with a window's end")


class Part(NamedTuple):
    """One file of a history."""

    times_us: list[int]
    group_rows: int


@st.composite
def histories(draw: st.DrawFn) -> tuple[int, int, list[Part], list[int]]:
    """Draw size, slide, files, and the starts of windows that a correction asks for.

    Times lie at multiples of the slide, one before or one after, and grow as those of a stream do:
    row groups often end or begin where a window does.
    """
    slide = draw(st.integers(1, 6))
    size = slide * draw(st.integers(1, 3))
    edge = st.builds(lambda n, by: n * slide + by, st.integers(0, 8), st.integers(-1, 1))
    rows = draw(st.lists(st.lists(edge, min_size=1, max_size=12), min_size=1, max_size=3))
    parts = [Part(sorted(times), draw(st.integers(1, 4))) for times in rows]
    starts = draw(st.sets(st.integers(0, 8), min_size=1, max_size=3))
    return size, slide, parts, [slide * each for each in sorted(starts)]


def write(folder: Path, parts: list[Part]) -> None:
    """Write a history whose values are powers of two, so that an answer tells its rows."""
    seq = 0
    for number, part in enumerate(parts):
        columns: dict[str, list[object]] = {name: [] for name in COLUMNS}
        for time_us in part.times_us:
            row = {
                "seq": seq,
                "source_id": seq,
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
        pq.write_table(table, path, row_group_size=part.group_rows)


@pytest.fixture(scope="module")
def met() -> Counter[str]:
    """Count the edges that were met."""
    return Counter()


@given(drawn=histories())
def test_a_correction_finds_every_row_of_its_windows(
    tmp_path_factory: pytest.TempPathFactory,
    met: Counter[str],
    drawn: tuple[int, int, list[Part], list[int]],
) -> None:
    size, slide, parts, starts = drawn
    folder = tmp_path_factory.mktemp("history")
    write(folder, parts)
    settings = SLACK.settings(SlackConfig(size, slide))
    store = WindowStore(locate("nowhere"), (), room=SLACK)
    pairs = [
        {"task": 0, "key": "a", "start_us": start, "source_id": 0, "windows": 1} for start in starts
    ]
    pending = pa.Table.from_pylist(pairs, schema=store.schema("pending"))
    request, _ = recompute.request_windows(settings, store.by, pending, {(0,): 1 << 60})
    found, _ = History(None, settings, locate(folder), ()).recompute(request)  # type: ignore[arg-type]  # no session is needed
    times = [time_us for part in parts for time_us in part.times_us]
    expected = {}
    for start in starts:
        inside = [seq for seq, time_us in enumerate(times) if start <= time_us < start + size]
        if inside:
            expected[start // slide] = (len(inside), float(sum(1 << seq for seq in inside)))
    answers = zip(found.j.tolist(), found.n.tolist(), found.value.tolist(), strict=True)
    assert {j: (n, value) for j, n, value in answers if n} == expected
    note_edges(met, parts, starts, size)


def note_edges(met: Counter[str], parts: list[Part], starts: list[int], size: int) -> None:
    """Count row groups whose last time is a window's start, or whose first time is its end."""
    for times, rows in parts:
        for begin in range(0, len(times), rows):
            group = times[begin : begin + rows]
            others_start = [start for start in starts if start == group[-1]]
            met[EDGES[0]] += bool(others_start)
            met[EDGES[1]] += any(start + size == group[0] for start in starts)


@profiles.except_in_dev()
def test_row_groups_met_the_edges_of_windows(met: Counter[str]) -> None:
    assert all(met[edge] >= 3 for edge in EDGES), f"undetermined: {dict(met)}"


@pytest.mark.parametrize("edge", ["start", "end"])
def test_a_row_group_that_is_skipped_at_an_edge_is_noticed(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, edge: str
) -> None:
    original = Footers.overlapping

    def narrower(self: Footers, files, times):  # type: ignore[no-untyped-def]  # they pass through
        by = (1, 0) if edge == "start" else (0, -1)
        return original(self, files, [(start + by[0], end + by[1]) for start, end in times])

    monkeypatch.setattr(Footers, "overlapping", narrower)
    with pytest.raises((AssertionError, ExceptionGroup)):
        test_a_correction_finds_every_row_of_its_windows(tmp_path_factory, Counter())
