"""``straggler script``, the examples that come with it, and the picture."""

import json
import re
import sys
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import pytest

import straggler.rooms.script
from model.script import run
from model.script.claims import judge
from model.vocabulary import ScriptConfig, Workload
from model.vocabulary.script.config import Result
from spark_impl.script import compile_plan
from straggler.judging.judge import broken_sentences
from straggler.rooms.script import inputs
from straggler.rooms.script.execution import explained
from straggler.rooms.script.formatter import formatted
from straggler.rooms.script.language import ScriptError, parse
from straggler.rooms.script.picture import picture
from straggler.rooms.script.plan import make_plan, summary_of
from tests.straggler.command import Straggler, assert_refused

EXAMPLES = sorted((Path(straggler.rooms.script.__file__).parent / "examples").glob("*.script"))
FILES = [str(path) for path in EXAMPLES]
DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "script.md"
FIGURE = DOCS / "figures" / "script-weather.svg"
HOURS = 9 * 24


def config_of(paths: list[Path], workers: int = 3) -> ScriptConfig:
    read = (parse(path.read_text(encoding="utf-8"), path.stem, inputs.WEATHER) for path in paths)
    return ScriptConfig(tuple(read), tuple(inputs.WEATHER.items()), workers)


# --------------------------------------------------------------------------------------- examples


def test_there_are_a_dozen_examples_in_the_usual_form() -> None:
    assert len(EXAMPLES) >= 12
    for path in EXAMPLES:
        text = path.read_text(encoding="utf-8")
        assert formatted(text) == text, path.name
        assert text.startswith("# "), path.name


def test_examples_have_results_on_recorded_weather_and_they_are_right() -> None:
    events = inputs.weather_events(HOURS)
    workload = Workload("script", events, config_of(EXAMPLES).to_json())
    trace = run(workload)
    found = {(each.workflow, each.name) for each in trace.of(Result)}
    assert {workflow for workflow, _ in found} == {path.stem for path in EXAMPLES}
    # The naive computation is slow, so it gets a few of them and 36 hours.
    some = [path for path in EXAMPLES if path.stem in ("comfort", "fog", "wind")]
    short = Workload("script", inputs.weather_events(36), config_of(some).to_json())
    assert not broken_sentences(judge(short, run(short)).verdicts)


def test_the_warmest_day_is_that_of_the_table() -> None:
    events = inputs.weather_events(48)
    first_us = min(event.event_time_us for event in events)
    day = [path for path in EXAMPLES if path.stem == "network_mean"]
    results = run(Workload("script", events, config_of(day).to_json())).of(Result)
    end_us = next(each.ts_us for each in results if each.name == "temp") + 1_000
    assert end_us % 86_400_000_000 == 0
    temps = [
        event.value
        for event in events
        if event.key.endswith(".temp") and first_us <= event.event_time_us < end_us
    ]
    value = next(each.value for each in results if each.name == "temp")
    assert value == pytest.approx(sum(temps) / len(temps), rel=1e-12)


def test_the_first_script_of_the_page_is_right_and_its_error_is_the_one_shown() -> None:
    script, error = re.findall(r"^```\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)[
        :2
    ]
    assert formatted(script) == script
    flow = parse(script, "first", inputs.WEATHER)
    config = ScriptConfig((flow,), tuple(inputs.WEATHER.items()))
    results = run(Workload("script", inputs.weather_events(24), config.to_json())).of(Result)
    assert {each.name for each in results} == {"ewr", "jfk", "both", "inland"}
    with pytest.raises(ScriptError) as caught:
        parse(script.replace("avg", "agv", 1), "first")
    assert caught.value.mistakes[0].lines("weather.script") == error.splitlines()


# ---------------------------------------------------------------------------------------- command


def test_check_counts_statements_and_sensors(straggler: Straggler) -> None:
    done = straggler("script", "check", *FILES, "--sensors", "weather")
    assert (done.code, done.err) == (0, "")
    assert done.out.count("\n") == len(FILES)
    assert done.out.splitlines()[0].endswith("comfort.script: 4 statements, 2 sensors")


def test_check_tells_what_is_wrong_in_all_files(straggler: Straggler, tmp_path: Path) -> None:
    (tmp_path / "a.script").write_text('x = agv("EWR.temp", 1, 1)\n', encoding="utf-8")
    (tmp_path / "b.script").write_text('x = "EWR.tmep"\n', encoding="utf-8")
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
    done = straggler("script", "fmt", "--check", "a.script")
    assert (done.code, done.out) == (1, "a.script: is not in the usual form\n")
    assert straggler("script", "fmt", "a.script").code == 0
    assert path.read_bytes() == b'x = max("S", 1_000, 1_000)  # why\n'
    assert straggler("script", "fmt", "--check", "a.script").out == ""


def test_fmt_writes_the_file_behind_a_link_and_nothing_beside_it(
    straggler: Straggler, tmp_path: Path
) -> None:
    path, link = tmp_path / "a.script", tmp_path / "link.script"
    path.write_text('x="S"\n', encoding="utf-8")
    path.chmod(0o640)
    link.symlink_to(path)
    assert straggler("script", "fmt", "link.script").code == 0
    assert path.read_text(encoding="utf-8") == 'x = "S"\n'
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.script", "link.script"]
    assert link.is_symlink()


def test_fmt_writes_nothing_if_one_is_wrong(straggler: Straggler, tmp_path: Path) -> None:
    (tmp_path / "a.script").write_text('x="S"\n', encoding="utf-8")
    (tmp_path / "b.script").write_text("x=\n", encoding="utf-8")
    assert straggler("script", "fmt", "a.script", "b.script").code == 2
    assert (tmp_path / "a.script").read_text(encoding="utf-8") == 'x="S"\n'


def test_explain_tells_tables_and_figures(straggler: Straggler, tmp_path: Path) -> None:
    options = ("--sensors", "weather", "--workers", "3", "--svg", "p.svg", "--json", "p.json")
    done = straggler("script", "explain", *FILES, *options)
    assert (done.code, done.err) == (0, "")
    assert "Dropped: EWR.wind_dir, JFK.wind_dir, LGA.pressure." in done.out
    assert "73 computations are written, 65 are made." in done.out
    data = json.loads((tmp_path / "p.json").read_text(encoding="utf-8"))
    assert len(data["computations"]) == 65
    assert sum(worker["per_hour"] for worker in data["workers"]) <= data["communication"]
    shared = next(each for each in data["computations"] if "comfort.temp" in each["names"])
    assert shared["names"] == ["comfort.temp", "temperature.jfk", "weekly_records.jfk"]
    assert (tmp_path / "p.svg").read_text(encoding="utf-8") == picture(
        make_plan(config_of(EXAMPLES))
    )


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


def test_rates_that_double_line_by_line_are_explained(straggler: Straggler, tmp_path: Path) -> None:
    """The rate of the last line is larger than any float64 number."""
    lines = ['n0 = "S" + 1', *(f"n{k} = n{k - 1} + n{k - 1}" for k in range(1, 1_100))]
    text = "\n".join([*lines, "x = max(n1099, 3, 2)"])
    (tmp_path / "a.script").write_text(text, encoding="utf-8")
    done = straggler("script", "explain", "a.script", "--json", "p.json")
    assert (done.code, done.err) == (0, "")
    data = json.loads((tmp_path / "p.json").read_text(encoding="utf-8"))
    assert data["computations"][1_099]["per_hour"] == sys.float_info.max
    found = explained(compile_plan(ScriptConfig((parse(text, "a"),), (("S", 3_600),), 4)), "")
    assert [row["per_hour"] for row in found.computations] == [
        each["per_hour"] for each in data["computations"]
    ]


def test_explain_without_sensors_takes_them_as_they_are(
    straggler: Straggler, tmp_path: Path
) -> None:
    (tmp_path / "a.script").write_text('x = max("S", 997, 991)\n', encoding="utf-8")
    done = straggler("script", "explain", "a.script", "--workers", "1")
    assert done.code == 0
    assert "1 computation is written, 1 is made." in done.out
    assert "Asked for: 1 of 1 sensor." in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fmt", "a.script", "--chek"), "'--chek'; did you mean '--check'?"),
        (("check", "a.script", "--sensor", "weather"), "'--sensor'; did you mean '--sensors'?"),
        (("explain", "a.script", "--wokers=3"), "'--wokers'; did you mean '--workers'?"),
        (("run", "a.script", "--outptu", "x.csv"), "'--outptu'; did you mean '--output'?"),
        (("check", "a.script", "--workers", "3"), "'--workers'"),
        (("run", "a.script", "--lateness", "-5s"), "--lateness is -5s; it must be at least 0"),
        (("run", "a.script", "--lateness", "-.5"), "'-.5' is not a duration"),
    ],
)
def test_options_are_those_of_what_is_to_be_done(
    straggler: Straggler, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    (tmp_path / "a.script").write_text('x = max("EWR.temp", 10, 10)\n', encoding="utf-8")
    done = straggler("script", *arguments)
    assert_refused(done, words)
    assert done.err.rstrip().endswith(words if words.endswith("?") else ".")


def test_sensors_may_come_from_a_file(straggler: Straggler, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("sensor,per_hour\nS1,3600\nS2,72000\n", encoding="utf-8")
    (tmp_path / "a.script").write_text('x = max("S1", 10, 10)\n', encoding="utf-8")
    done = straggler("script", "explain", "a.script", "--sensors", "s.csv")
    assert done.code == 0
    assert "Dropped: S2." in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["check", "missing.script"], ["'missing.script'", "cannot be read"]),
        (["check", "bytes.script"], ["byte 0xff in line 2 is not UTF-8"]),
        (["check", "a.script", "--sensors", "wether"], ["'wether'", "did you mean 'weather'?"]),
        (["check", "a.script", "--sensors", "bad.csv"], ["line 2 of 'bad.csv'", "'S1', '0'"]),
        (["check", "a.script", "--sensors", "a.script"], ["the columns of 'a.script' are"]),
        (["check", "a.script", "--sensors", "no.csv"], ["the columns of 'no.csv' are []"]),
        (["check", "a.script", "--sensors", "two.csv"], ["line 3 of 'two.csv'", "second time"]),
        (["explain", "a.script", "--workers", "0"], ["workers is 0; it must be"]),
        (["explain", "a.script", "--cap-percent", "99"], ["cap_percent is 99"]),
        (["explain", "a.script", "--svg", "p.png"], ["'p.png'", "end in .svg"]),
        (["explain", "a.script", "a.script"], ["two scripts", "both be called 'a'"]),
        (["expalin", "a.script"], ["expalin"]),
        ([], ["check, fmt, explain or run"]),
    ],
)
def test_impossible_values_are_refused(
    straggler: Straggler, tmp_path: Path, arguments: list[str], words: list[str]
) -> None:
    (tmp_path / "a.script").write_text('x = max("S", 10, 10)\n', encoding="utf-8")
    (tmp_path / "bytes.script").write_bytes(b'x = "S"\n\xff')
    (tmp_path / "bad.csv").write_text("sensor,per_hour\nS1,0\n", encoding="utf-8")
    (tmp_path / "no.csv").touch()
    (tmp_path / "two.csv").write_text("sensor,per_hour\nS,1\nS,2\n", encoding="utf-8")
    assert_refused(straggler("script", *arguments), *words)


def test_any_bytes_are_read_or_refused(straggler: Straggler, tmp_path: Path) -> None:
    right = Path(FILES[0]).read_bytes()
    random = Random(1)
    codes = set()
    for _ in range(150):
        at, other = random.randrange(len(right)), random.randbytes(random.randrange(4))
        (tmp_path / "a.script").write_bytes(right[:at] + other + right[at + len(other) :])
        done = straggler("script", "check", "a.script")
        codes.add(done.code)
        assert "unexpected" not in done.err, done.err
    assert codes == {0, 2}


# ---------------------------------------------------------------------------------------- picture


def test_the_picture_in_the_page_is_current_and_whole() -> None:
    drawn = picture(make_plan(config_of(EXAMPLES)))
    assert FIGURE.read_text(encoding="utf-8") == drawn
    root = ElementTree.fromstring(drawn)
    titles = [each.text or "" for each in root.iter("{http://www.w3.org/2000/svg}title")]
    for path in EXAMPLES:
        assert any(f"{path.stem}." in title for title in titles)
