"""Columns of two files that conditions of a join name: their kinds, their gaps, their pairs."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from model.vocabulary import Event, Workload
from straggler.inputs.protocol import parse_workload
from tests.straggler.command import Straggler, assert_refused

CONDITION = "r.x within 2 of s.x"
ASK = ("workload", "join", "--r", "r.csv", "--s", "s.csv", "--output", "-")
HOUR_US = 3_600_000_000
AT = datetime(2016, 3, 1, 8, tzinfo=UTC)
AT_US = 1_456_819_200_000_000


def workload(straggler: Straggler, *conditions: str, r: str = "r.csv", s: str = "s.csv") -> Any:
    """Return the workload that a command writes."""
    asked = [word for each in conditions for word in ("--on", each)]
    done = straggler("workload", "join", "--r", r, "--s", s, *asked, "--output", "-")
    assert done.code == 0, done.err
    return {**json.loads(done.out), "said": done.err}


def columns(found: Any, stream: str) -> tuple[Any, list[Any]]:
    """Return the columns of a stream and the values of its tuples."""
    more = [row[7:] for row in found["arrivals"] if row[6] == stream]
    return found["config"].get(f"{stream.lower()}_columns"), [
        value for (row,) in more for value in row
    ]


def write_csv(folder: Path, name: str, *cells: str, column: str = "x") -> None:
    rows = [f"{at},{cell}" for at, cell in enumerate(cells)]
    text = "\n".join([f"event_time,{column}", *rows, ""])
    (folder / name).write_text(text, encoding="utf-8")


# ---------------------------------------------------------------------------------------- kinds


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        (("1", "-2", " 3 ", "+4"), "integer", [1, -2, 3, 4]),
        (("1", "2.5", "1e3", "NaN", "-inf"), "number", [1, 2.5, 1000, "NaN", "-Infinity"]),
        (("true", "False", "TRUE"), "boolean", [True, False, True]),
        (("2016-03-01", "2016-03-01T08:00:00+08:00"), "time", [AT_US - 8 * HOUR_US] * 2),
        (("a", "1", "ä b"), "text", ["a", "1", "ä b"]),
        (("1", "", "NA", "n/a", "null", "None"), "integer", [1, None, None, None, None, None]),
        (("a", "", "NA"), "text", ["a", None, "NA"]),
        (("07", "10"), "text", ["07", "10"]),
        (("9223372036854775807", "-9223372036854775808"), "text", None),
        (("9007199254740993.0", "1"), "text", None),
        (("NA", ""), "integer", [None, None]),
    ],
)
def test_a_column_of_csv_has_the_kind_of_all_its_cells(
    straggler: Straggler, tmp_path: Path, cells: tuple[str, ...], kind: str, values: list[Any]
) -> None:
    for name in ("r.csv", "s.csv"):
        write_csv(tmp_path, name, *cells)
    found = workload(straggler, "x")
    assert columns(found, "R") == columns(found, "S") == ([["x", kind]], values or list(cells))


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        (pa.array([1, None], pa.int16()), "integer", [1, None]),
        (pa.array([1.5, None, float("nan")]), "number", [1.5, None, "NaN"]),
        (pa.array(["7", None]), "text", ["7", None]),
        (pa.array(["7", None, "7"]).dictionary_encode(), "text", ["7", None, "7"]),
        (pa.array([True, None]), "boolean", [True, None]),
        (pa.array([AT, None], pa.timestamp("us", "UTC")), "time", [AT_US, None]),
        (pa.array([AT.date()]), "time", [AT_US - 8 * HOUR_US]),
    ],
)
def test_a_column_of_parquet_has_the_kind_of_its_type(
    straggler: Straggler, tmp_path: Path, cells: pa.Array, kind: str, values: list[Any]
) -> None:
    times = pa.array(range(len(cells)), pa.int64())
    parquet.write_table(pa.table({"event_time": times, "x": cells}), tmp_path / "x.parquet")
    found = workload(straggler, "x", r="x.parquet", s="x.parquet")
    assert columns(found, "R") == columns(found, "S") == ([["x", kind]], values)


def test_a_type_without_a_kind_is_refused_if_a_condition_names_it(
    straggler: Straggler, tmp_path: Path
) -> None:
    table = pa.table({"event_time": [1], "key": ["a"], "x": [[1, 2]]})
    parquet.write_table(table, tmp_path / "x.parquet")
    ask = ("workload", "join", "--r", "x.parquet", "--s", "x.parquet", "--output", "-")
    assert straggler(*ask, "--on", "key").code == 0
    assert_refused(
        straggler(*ask, "--on", "x"), "column 'x' of x.parquet holds list<", "no condition"
    )


@pytest.mark.parametrize(
    ("condition", "r_cells", "s_cells", "kind"),
    [
        ("r.x < s.x", ("1", "2"), ("1.5", "2"), "number"),
        ("r.x within 0.5 of s.x", ("1", "2"), ("1", "2"), "number"),
        ("r.x within 1 of s.x", ("1", "2"), ("1", "2"), "integer"),
        ("r.x = s.x", ("1", "2"), ("01", "2"), "text"),
        ("r.x > 1.5 and s.x = 2", ("1", "2"), ("1", "2"), "number"),
    ],
)
def test_integers_are_read_as_what_they_are_compared_with(
    straggler: Straggler,
    tmp_path: Path,
    condition: str,
    r_cells: tuple[str, ...],
    s_cells: tuple[str, ...],
    kind: str,
) -> None:
    write_csv(tmp_path, "r.csv", *r_cells)
    write_csv(tmp_path, "s.csv", *s_cells)
    found = workload(straggler, condition)
    assert columns(found, "R")[0] == [["x", kind]]
    if "and" not in condition:
        assert columns(found, "S")[0] == [["x", kind]]


def test_a_gap_stays_one_in_integers_that_are_read_as_text(
    straggler: Straggler, tmp_path: Path
) -> None:
    write_csv(tmp_path, "r.csv", "NA", "5", column="PM2.5 (µg/m³)")
    write_csv(tmp_path, "s.csv", "x", "NA")
    found = workload(straggler, "r.PM2_5__µg_m__ = s.x")
    assert columns(found, "R") == ([["PM2_5__µg_m__", "text"]], [None, "5"])
    assert columns(found, "S") == ([["x", "text"]], ["x", "NA"])


def test_an_equality_with_a_column_that_a_cell_made_text_is_refused(
    straggler: Straggler, tmp_path: Path
) -> None:
    write_csv(tmp_path, "r.csv", "5", "6", "7")
    write_csv(tmp_path, "s.csv", "5.0", "6.0", "n.d.")
    done = straggler(*ASK, "--on", "r.x = s.x")
    assert_refused(done, "R's x is an integer and S's x is a text", "line 4 of s.csv has 'n.d.'")


def test_columns_are_read_in_the_order_in_which_conditions_name_them(
    straggler: Straggler, tmp_path: Path
) -> None:
    (tmp_path / "r.csv").write_text("event_time,PM2.5,2nd,site\n1,10,a,b\n", encoding="utf-8")
    (tmp_path / "s.csv").write_text("event_time,pm25,site\n1,11,b\n", encoding="utf-8")
    found = workload(straggler, "r.site = s.site and r._2nd = 'a'", "r.PM2_5 apart 2 of s.pm25")
    assert found["config"]["r_columns"] == [
        ["site", "text"],
        ["_2nd", "text"],
        ["PM2_5", "integer"],
    ]
    assert found["config"]["s_columns"] == [["site", "text"], ["pm25", "integer"]]
    assert [row[7] for row in found["arrivals"]] == [["b", "a", 10], ["b", 11]]


def test_a_cell_that_cannot_be_read_is_missing_and_told(
    straggler: Straggler, tmp_path: Path
) -> None:
    write_csv(tmp_path, "r.csv", "1", "9007199254740993")
    write_csv(tmp_path, "s.csv", "1.5")
    found = workload(straggler, CONDITION)
    assert columns(found, "R") == ([["x", "number"]], [1.0, None])
    told = "r.csv: 1 cell taken as missing: 'x' has '9007199254740993', which is not exact"
    assert told in found["said"]


def test_a_redelivery_has_the_same_columns(straggler: Straggler, tmp_path: Path) -> None:
    text = "event_time,id,x\n1,a,1\n1,a,1\n2,b,\n2,b,\n3,c,1\n3,c,2\n"
    for name in ("r.csv", "s.csv"):
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = straggler(*ASK, "--on", "x", "--id", "id")
    assert "1 of 6 rows set aside: 'id' has 'c (first in line 6)'" in done.err
    assert "comes again with another x" in done.err


# ----------------------------------------------------------------------------------- workloads


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ([[2**63]], "more of arrival 0 is (9223372036854775808,); it must be texts, numbers"),
        ([[[1]]], "more of arrival 0 is ([1],); it must be texts, numbers"),
        ([1], "more is 1 in "),
    ],
)
def test_a_workload_with_other_values_is_refused(more: list[Any], words: str) -> None:
    row = Workload("join", (Event(0, 0, "", 0, 1.0, 0, "R"),), {}).to_json()
    row["arrivals"][0][7:] = more
    with pytest.raises(ValueError, match=re.escape(words)):
        parse_workload(row)


def test_a_number_of_a_workload_may_be_written_as_an_integer() -> None:
    event = Event(0, 0, "", 0, 1.0, 0, "R", (1, 2**53 + 1, "NaN"))
    kinds = [["a", "number"], ["b", "number"], ["c", "number"]]
    row = Workload("join", (event,), {"r_columns": kinds}).to_json()
    (read,) = parse_workload(row).arrivals
    assert list(map(repr, read.more)) == ["1.0", repr(2.0**53), "nan"]


def test_a_counterexample_says_columns_and_conditions_as_text(
    straggler: Straggler, tmp_path: Path
) -> None:
    write_csv(tmp_path, "r.csv", "1", "NA")
    write_csv(tmp_path, "s.csv", "1.5")
    (tmp_path / "lazy.py").write_text(
        "from model.vocabulary import Trace\n\n\ndef make():\n"
        "    return lambda workload: Trace('lazy', [])\n",
        encoding="utf-8",
    )
    ask = ("--r", "r.csv", "--s", "s.csv", "--on", CONDITION, "--system", "lazy:make")
    done = straggler("diff", "join", *ask, "--reference", "model")
    assert done.code == 1, done.err
    assert "queries=[x within 2]" in done.out
    assert "r_columns=[x number], s_columns=[x number]:" in done.out
    assert "\nThe number of a tuple is its line in r.csv or its line in s.csv.\n" in done.out
    assert "0. tuple R2, key '', event time 0 us, value 1.0, x 1.0 (batch 0)" in done.out
    (stored,) = (tmp_path / "counterexamples").iterdir()
    again = straggler("replay", str(stored), "--trust")
    assert (again.code, "It still fails." in again.out) == (1, True)
