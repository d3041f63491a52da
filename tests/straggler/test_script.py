"""Sensor scripts: what is wrong and where, and ``straggler script``.

``pytest --snapshot-update`` stores places and sentences anew.
"""

import json
import re
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from syrupy.assertion import SnapshotAssertion

import straggler.rooms.script
from model.script import run
from model.vocabulary import ScriptConfig, Workload
from model.vocabulary.script.config import Result
from straggler.cli import script_run
from straggler.rooms.script import inputs
from straggler.rooms.script.formatter import unparse
from straggler.rooms.script.language import ScriptError, parse
from tests.straggler.command import Straggler, assert_refused

EXAMPLES = sorted((Path(straggler.rooms.script.__file__).parent / "examples").glob("*.script"))
FILES = [str(path) for path in EXAMPLES]
DOCS = Path(__file__).parents[2] / "docs"


def test_the_first_script_of_the_page_is_right_and_its_error_is_the_one_shown() -> None:
    page = (DOCS / "script.md").read_text(encoding="utf-8")
    script, error = re.findall(r"^```\n(.*?)^```", page, re.M | re.S)[:2]
    flow = parse(script, "first", inputs.WEATHER)
    config = ScriptConfig((flow,), tuple(inputs.WEATHER.items()))
    results = run(Workload("script", inputs.weather_events(24), config.to_json())).of(Result)
    assert {each.name for each in results} == {"ewr", "jfk", "both", "inland"}
    with pytest.raises(ScriptError) as caught:
        parse(script.replace("avg", "agv", 1), "first")
    assert caught.value.mistakes[0].lines("weather.script") == error.splitlines()


def test_check_tells_what_is_wrong_in_all_files(straggler: Straggler, tmp_path: Path) -> None:
    (tmp_path / "a.script").write_text('x = agv("EWR.temp", 1, 1)\n', encoding="utf-8")
    (tmp_path / "b.script").write_text('x = "EWR.tmep"\n', encoding="utf-8")
    right = straggler("script", "check", *FILES, "--sensors", "weather")
    assert (right.code, right.err, right.out.count("\n")) == (0, "", len(FILES) + 1)
    done = straggler("script", "check", "a.script", "b.script", "--sensors", "weather")
    assert (done.code, done.out) == (2, "")
    named = re.findall(r"^(\w\.script:\d:\d): ", done.err, re.M)
    assert named == ["a.script:1:5", "b.script:1:5"]


def test_a_list_of_sensors_beside_the_scripts_is_found(
    straggler: Straggler, tmp_path: Path
) -> None:
    (tmp_path / "a.script").write_text('x = avg("S1", 1, 1)\n', encoding="utf-8")
    alone = straggler("script", "check", "a.script")
    assert (alone.code, alone.err) == (0, "")
    assert "Any sensor is taken to exist" in alone.out
    for folder in (tmp_path, tmp_path / "b"):
        folder.mkdir(exist_ok=True)
        listed = "".join(f"S{n},1\n" for n in range(2, 3_000))
        (folder / "sensors.csv").write_text(f"sensor,per_hour\n{listed}", encoding="utf-8")
    wrong = straggler("script", "check", "a.script")
    assert (wrong.code, wrong.out) == (2, "")
    assert "there is no sensor and no earlier name 'S1'; did you mean 'S" in wrong.err
    several = straggler("script", "explain", "a.script", "b/c.script")
    assert_refused(several, "'b/sensors.csv' and 'sensors.csv': --sensors names one.")


def test_explain_tells_tables_and_figures(straggler: Straggler, tmp_path: Path) -> None:
    options = ("--sensors", "weather", "--workers", "3", "--json", "p.json")
    done = straggler("script", "explain", *FILES, *options)
    assert (done.code, done.err) == (0, "")
    assert "Dropped: EWR.wind_dir, JFK.wind_dir, LGA.pressure." in done.out
    data = json.loads((tmp_path / "p.json").read_text(encoding="utf-8"))
    assert sum(worker["per_hour"] for worker in data["workers"]) <= data["communication"]
    shared = next(each for each in data["computations"] if "comfort.temp" in each["names"])
    assert shared["names"] == ["comfort.temp", "temperature.jfk", "weekly_records.jfk"]


def test_run_computes_on_spark_and_leaves_out_tuples_without_a_value(
    straggler: Straggler, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script_run, "open_session", lambda _master: nullcontext(spark))
    text = "sensor,at,value\nl,0,1\nl,1,\nl,1,nan\nr,1,\nl,1,inf\nl,1,5\nl,2,\n"
    (tmp_path / "mine.script").write_text('x = avg("l", 4_000, 2_000)\n', encoding="utf-8")
    (tmp_path / "readings.csv").write_text(text, encoding="utf-8")
    ask = "script run mine.script --input readings.csv --key sensor --event-time at --time-unit s"
    done = straggler(*ask.split(), "--output", "found.csv")
    assert (done.code, done.err) == (0, "")
    assert "of 7 tuples 0 came too late, 4 had no value, 1 nobody asked for." in done.out
    # The average of 1 and 5, in the windows that end after 2 and after 4 seconds.
    assert (tmp_path / "found.csv").read_text(encoding="utf-8").splitlines()[1:] == [
        '"mine","x","1970-01-01T00:00:01.999Z",3',
        '"mine","x","1970-01-01T00:00:03.999Z",3',
    ]


SENSORS = ("S1", "S2", "temp")
WRONG = (
    "",
    "A",
    'A =\nB = "S1"',
    'A = "S1" "S2"',
    # Spaces stand between groups of three digits only.
    *(f'A = avg("S1", {number}, 1)' for number in ("600 00", "6000 000", "6 00_000")),
    "A = avg(8MD1, 1, 1)",
    'A = (\n  "S1"\nB = 3',
    'A = "S1',
    "A = “S1”",
    'A = "S1" ^ 2',
    'A = "S1"\x00',
    'A = ""',
    # Functions by other names.
    *(f'A = {name}("S1", 1, 1)' for name in ("agv", "mean", "median")),
    # Times with units.
    *(f'A = avg("S1", {time}, 1)' for time in ("1h", "5 min", "1_000ms", "7us")),
    'A = "S1" * 5 s',
    # Days go with a time zone.
    *(f'A = avg("S1", {days})' for days in ("1d", "1d, 1d", '1d, 1, "UTC"', '1d, 0d, "UTC"')),
    'A = avg("S1", 1d, 1d, "Europe/Berln")',
    'A = union("S1", 1d)',
    'A = "S1" * 1d',
    "A = avg()",
    'A = avg("S1", 1)',
    'A = avg("S1", 1, 1, 1)',
    'A = avg("S1", "600_000", 1)',
    'A = avg("S1", "1h", "1h")',
    'A = avg(5, "S1")',
    'A = union("S1", 2 + 3)',
    'A = avg("S1", 0, 1)',
    'A = avg("S1", 10, 2.5)',
    'A = avg("S1", 1_000_000, 1)',
    "A = 3 * 4",
    'A = "S1" / (2 - 2)',
    'A = "S1" * (1 / 0)',
    f'A = "S1" * {"9" * 400}',
    'A = "S1"\nA = "S2"',
    'temp = "S1"',
    'A = avg("A", 1, 1)',
    "A = temp",
    'A = "tmep"',
    'wind = "S1"; A = wnid',
    'A = B\nB = "S1"',
    'A = max("B", 1, 1)\nB = A',
    "A = A + 1",
    'max = "S1"',
    'A = "S1" + min',
    f'A = {"-" * 101}"S1"',
    f'A = "S1"{" + 1" * 9_999}',
    f"A = sum(1{' + 1' * 9_999})",
    # A union that doubles line by line.
    "\n".join(['A0 = union("S1", "S2")', *(f"A{n + 1} = union(A{n}, A{n})" for n in range(40))]),
)


def mistakes(text: str) -> ScriptError:
    with pytest.raises(ScriptError) as caught:
        parse(text, "w", SENSORS)
    return caught.value


def test_an_error_says_where_and_what(snapshot: SnapshotAssertion) -> None:
    said = []
    for text in WRONG:
        shown = repr(text) if len(text) < 80 else f"{text[:30]!r}..."
        said += [shown, f"    {mistakes(text)}".splitlines()[0]]
    assert "\n".join(said) == snapshot


def test_a_number_of_days_may_have_more_digits_than_python_reads() -> None:
    said = str(mistakes(f'A = avg("S1", {"9" * 5_000}d, 1d, "UTC")'))
    assert "a length or slide in days is a number from 1 to" in said


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('A = avg("S1", 600\u2009000, 300_000)', 'A=avg("S1",6e5,300000);'),
        ('A = "S1" * 12 000.5e1 - 1 000', 'A = "S1" * 120005 - 1000'),
        ('A = avg("S1", 07d,\n1d, "UTC")', 'A=avg("S1",7d,1d,"UTC")'),
        ('A = "S1"; B = avg("A", 1, 1)', 'A = "S1"\nB = avg(A, 1, 1)'),
        ('A = avg("A", 1, 1); B = max("A", 1, 1)', 'A = avg("A", 1, 1); B = max(A, 1, 1)'),
        ('A = "S1" \u2212 2 \u00d7 "S2"', 'A = ("S1" - (2 * ("S2")))'),
        ('A = union( # which\n"S1",\n\n"S2")\r\r\n', 'A = union("S1", "S2")'),
        (f'A = {"(" * 9_999}"S1"{")" * 9_999}', 'A = "S1"'),
    ],
)
def test_spelling_makes_no_difference(written: str, meant: str) -> None:
    assert parse(written, "w").statements == parse(meant, "w").statements


def test_the_example_of_the_source_is_read_as_printed() -> None:
    printed = """\
MD1Z=avg("8MD1-AZ",600 000,300 000);
UNI=union("8MD2-A","8MD3-A");
MD23=avg("UNI",600 000,300 000);
UNIF=union("MD1Z","MD23");
out_MZ=max("UNIF",600 000,300 000);
out_AZ=avg("UNIF",600 000,300 000)
"""
    flow = parse(printed, "w")
    assert unparse(flow).splitlines()[0] == 'MD1Z = avg("8MD1-AZ", 600_000, 300_000)'
    spaceless = printed.replace(" ", "")
    assert flow.statements == parse(spaceless, "w").statements
