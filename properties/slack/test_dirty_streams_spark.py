"""Windows over dirty streams on Spark: exact means all rows, and every row is accounted for.

Expected values are those of dictionaries and of the standard library; nothing of ours computes
them.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from math import fsum, isfinite
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import straggler

SIZE_S = 10
MAY_1_S = 1_714_521_600
TEXT = "key string, at string, value string"


class Line(NamedTuple):
    """A row of the source, as text."""

    key: str
    at: str
    value: str

    @property
    def second(self) -> int | None:
        """Event time in seconds after the beginning, None if it cannot be read."""
        return int(self.at) - MAY_1_S if self.at.isdigit() else None

    @property
    def number(self) -> float | None:
        """The value, None if no sum can take it."""
        try:
            number = float(self.value)
        except ValueError:
            return None
        return number if isfinite(number) else None


def answers_of(
    spark: SparkSession, folder: Path, files: Sequence[Sequence[Line]]
) -> tuple[dict[tuple[str, int], Any], list[Any], Any]:
    """Return the windows, the refused rows and the figures of a query over some files."""
    (folder / "in").mkdir(parents=True)
    for number, lines in enumerate(files):
        text = "".join(",".join(line) + "\n" for line in lines)
        (folder / "in" / f"{number}.csv").write_text(text, encoding="utf-8")
    stream = spark.readStream.schema(TEXT).option("maxFilesPerTrigger", 1).csv(str(folder / "in"))
    begun = straggler.over(stream, event_time="at", key="key", time_unit="s")
    query = begun.window(f"{SIZE_S} seconds").sum("value").store_in(folder / "kept")
    query.flush()
    found = {
        (row.key, row.start_us // 1_000_000 - MAY_1_S): row for row in query.results().collect()
    }
    return found, query.rejected().collect(), query.progress()


def test_the_example_of_the_readme_sums_refunds(spark: SparkSession, tmp_path: Path) -> None:
    lines = [
        Line("refund", str(MAY_1_S + 1), "100"),
        Line("refund", str(MAY_1_S + 2), "-40"),
        Line("owing", str(MAY_1_S + 3), "-5"),
        Line("broken", str(MAY_1_S + 1), "abc"),
        Line("half", str(MAY_1_S + 1), "7"),
        Line("half", str(MAY_1_S + 2), "NaN"),
    ]
    found, refused, figures = answers_of(spark, tmp_path, [lines])
    shown = {key: (row.value, row.n, row.n_refused, row.state) for (key, _), row in found.items()}
    assert shown == {
        "refund": (60.0, 2, 0, "exact"),
        "owing": (-5.0, 1, 0, "exact"),
        "broken": (None, 0, 1, "incomplete"),
        "half": (7.0, 1, 1, "incomplete"),
    }
    told = {row.key: (row.stage, row.reason, row.text) for row in refused}
    assert told == {
        "broken": ("query", "is not a number", "abc"),
        "half": ("query", "value is not a finite number", None),
    }
    assert figures.rejected == 2


NUMBERS = st.integers(-60, 60).map(lambda number: str(number / 4))
BAD = st.sampled_from(["NaN", "inf", "-Infinity", "", "abc", "1,5", "9007199254740993"])
PLACES = st.builds(lambda after: str(MAY_1_S + after), st.integers(0, 45))
LINES = st.builds(
    Line,
    st.sampled_from(["a", "b", "ä", " b"]),
    st.one_of(*[PLACES] * 9, st.sampled_from(["", "yesterday", "9" * 13])),
    st.one_of(*[NUMBERS] * 5, BAD),
).map(lambda line: line._replace(value=line.value.replace(",", ";")))
FILES = st.lists(st.lists(LINES, min_size=15, max_size=40), min_size=2, max_size=3)


def test_each_window_is_right_or_says_what_it_lacks(spark: SparkSession, tmp_path: Path) -> None:
    """Drawn values of every kind: a sum is exact, or counts the rows that it lacks."""
    met = Counter[str]()

    @settings(max_examples=4, phases=[Phase.generate], deadline=None)
    @given(FILES)
    def check(files: list[list[Line]]) -> None:
        met["runs"] += 1
        found, refused, figures = answers_of(spark, tmp_path / str(met["runs"]), files)
        taken: dict[tuple[str, int], list[float]] = defaultdict(list)
        lacking = Counter[tuple[str, int]]()
        unplaced = 0
        for line in (line for lines in files for line in lines):
            if line.second is None or line.second > 10**9:
                unplaced += 1
            elif line.number is None or line.value == "9007199254740993":
                lacking[line.key, line.second // SIZE_S * SIZE_S] += 1
            else:
                taken[line.key, line.second // SIZE_S * SIZE_S].append(line.number)
        assert found.keys() == taken.keys() | lacking.keys()
        for window, row in found.items():
            values = taken.get(window, [])
            right = (fsum(values) if values else None, len(values), lacking[window])
            assert (row.value, row.n, row.n_refused) == right
            assert row.state == ("incomplete" if lacking[window] else "exact")
            met["negative"] += any(value < 0 for value in values)
            met["exact"] += not lacking[window]
            met["partly refused"] += bool(values) and lacking[window] > 0
            met["wholly refused"] += not values
            met["late"] += row.revision is not None and row.revision > 0
        stages = Counter(row.stage for row in refused)
        assert stages == Counter(landing=unplaced, query=lacking.total())
        assert figures.rejected == lacking.total()
        met["not landed"] += unplaced

    check()
    for case in ("negative", "exact", "partly refused", "wholly refused", "late", "not landed"):
        assert met[case] >= 2, met


def test_what_no_aggregate_can_take_is_refused_at_the_start(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    schema = "at long, flag boolean, many array<int>, moment timestamp"
    stream = spark.readStream.schema(schema).json(str(tmp_path / "in"))
    begun = straggler.over(stream, event_time="at", time_unit="s").window("10 seconds")
    for column, kind in (("flag", "boolean"), ("many", "array<int>"), ("moment", "timestamp")):
        with pytest.raises(straggler.InputProblem, match=f"{column}' holds {kind}, not a number"):
            begun.sum(column).store_in(tmp_path / "kept")
    with pytest.raises(ValueError, match="needs lambda_thr"):
        begun.min("flag")
    assert not (tmp_path / "kept").exists()
