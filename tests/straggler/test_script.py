"""``straggler script``: check, fmt, explain and run, the examples, and the picture."""

import json
import re
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import straggler.rooms.script
from model.script import run
from model.vocabulary import ScriptConfig, Workload
from model.vocabulary.script.config import Result
from spark_impl.script import compile_plan
from straggler.cli import script_run
from straggler.rooms.script import inputs
from straggler.rooms.script.execution import explained
from straggler.rooms.script.formatter import formatted
from straggler.rooms.script.language import ScriptError, parse
from straggler.rooms.script.plan import make_plan, summary_of
from tests.straggler.command import Straggler

EXAMPLES = sorted((Path(straggler.rooms.script.__file__).parent / "examples").glob("*.script"))
FILES = [str(path) for path in EXAMPLES]
DOCS = Path(__file__).parents[2] / "docs"
FIGURE = DOCS / "figures" / "script-weather.svg"


def config_of(paths: list[Path], workers: int = 3) -> ScriptConfig:
    read = (parse(path.read_text(encoding="utf-8"), path.stem, inputs.WEATHER) for path in paths)
    return ScriptConfig(tuple(read), tuple(inputs.WEATHER.items()), workers)


def test_the_first_script_of_the_page_is_right_and_its_error_is_the_one_shown() -> None:
    page = (DOCS / "script.md").read_text(encoding="utf-8")
    script, error = re.findall(r"^```\n(.*?)^```", page, re.M | re.S)[:2]
    assert formatted(script) == script
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
    assert (right.code, right.err, right.out.count("\n")) == (0, "", len(FILES))
    done = straggler("script", "check", "a.script", "b.script", "--sensors", "weather")
    assert (done.code, done.out) == (2, "")
    lines = done.err.splitlines()
    assert lines[0].startswith("a.script:1:5: there is no function 'agv'")
    assert lines[1:3] == ['    x = agv("EWR.temp", 1, 1)', "        ^^^"]
    assert lines[3] == (
        "b.script:1:5: there is no sensor and no earlier name 'EWR.tmep'; did you mean 'EWR.temp'?"
    )


def test_fmt_writes_the_usual_form_once(straggler: Straggler, tmp_path: Path) -> None:
    path = tmp_path / "a.script"
    path.write_bytes(b'\xef\xbb\xbfx=max("S",1000,1000)  # why\r\n')
    path.chmod(0o640)
    (tmp_path / "link.script").symlink_to(path)
    done = straggler("script", "fmt", "--check", "a.script")
    assert (done.code, done.out) == (1, "a.script: is not in the usual form\n")
    assert straggler("script", "fmt", "link.script").code == 0
    assert path.read_bytes() == b'x = max("S", 1_000, 1_000)  # why\n'
    assert path.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "link.script").is_symlink()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.script", "link.script"]
    assert straggler("script", "fmt", "--check", "a.script").out == ""
    (tmp_path / "b.script").write_text("x=\n", encoding="utf-8")
    path.write_text('x="S"\n', encoding="utf-8")
    assert straggler("script", "fmt", "a.script", "b.script").code == 2
    assert path.read_text(encoding="utf-8") == 'x="S"\n', "nothing is written if one is wrong"


def test_explain_tells_tables_and_figures(straggler: Straggler, tmp_path: Path) -> None:
    options = ("--sensors", "weather", "--workers", "3", "--svg", "p.svg", "--json", "p.json")
    done = straggler("script", "explain", *FILES, *options)
    assert (done.code, done.err) == (0, "")
    assert "Dropped: EWR.wind_dir, JFK.wind_dir, LGA.pressure." in done.out
    data = json.loads((tmp_path / "p.json").read_text(encoding="utf-8"))
    assert sum(worker["per_hour"] for worker in data["workers"]) <= data["communication"]
    shared = next(each for each in data["computations"] if "comfort.temp" in each["names"])
    assert shared["names"] == ["comfort.temp", "temperature.jfk", "weekly_records.jfk"]
    assert (tmp_path / "p.svg").read_bytes() == FIGURE.read_bytes(), "docs/script.md shows it"


def test_the_query_on_spark_is_explained_as_the_model_is() -> None:
    config = config_of(EXAMPLES)
    ours, theirs = make_plan(config), explained(compile_plan(config), "")
    data = ours.to_json()
    for row, each in zip(theirs.computations, data["computations"], strict=True):
        assert {**each, "names": tuple(each["names"])} == {
            name: each["says"] if name == "says" else row[name] for name in each
        }
    assert any(row["to"] for row in theirs.computations)
    assert {
        row["stream"]: (row["panes"], row["panes_cost"], row["edges_cost"])
        for row in theirs.cuttings
    } == {
        each["stream"]: (each["cut"].startswith("panes"), each["panes_cost"], each["edges_cost"])
        for each in data["streams"]
    }
    assert [list(row["sensors"]) for row in theirs.workers] == [
        each["sensors"] for each in data["workers"]
    ]
    assert list(theirs.dropped) == list(ours.dropped)
    assert list(summary_of(theirs).sentences()) == list(ours.sentences())


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
