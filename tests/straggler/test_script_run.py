"""The part of ``straggler script run`` that needs no Spark."""

from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from model.script import run
from model.vocabulary import Event, ScriptConfig, Workload
from model.vocabulary.durations import parse_duration_us
from model.vocabulary.script.config import Rejected, Result, Undefined
from straggler.cli import script_run
from straggler.rooms.script import execution as running
from straggler.rooms.script import inputs
from straggler.rooms.script.execution import Found
from straggler.rooms.script.language import parse
from straggler.rooms.script.queries import WORKERS, config_of
from tests.straggler.command import Straggler, assert_refused

PAGE = Path(__file__).parents[2] / "docs" / "script.md"
FILE = ("--input", "readings.csv", "--key", "sensor", "--event-time", "at", "--time-unit", "s")
RUN = ("script", "run", "mine.script", *FILE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a script that reads one of two sensors."""
    (tmp_path / "mine.script").write_text('x = avg("l", 4_000, 2_000)\n', encoding="utf-8")
    rows = [f"{'lr'[n % 2]},{n},{n}" for n in range(20)]
    text = "\n".join(["sensor,at,value", *rows, ""])
    (tmp_path / "readings.csv").write_text(text, encoding="utf-8")
    return tmp_path


def test_every_mistake_of_a_script_is_shown_with_its_line(
    straggler: Straggler, folder: Path
) -> None:
    (folder / "mine.script").write_text('x = agv("l", 4, 2)\n', encoding="utf-8")
    done = straggler(*RUN)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("mine.script:1:5: there is no function 'agv'")
    assert done.err.endswith("^^^\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--output", "found.txt"), ("--output 'found.txt'", ".csv or .parquet")),
        (("--output", "none/found.csv"), ("'none/found.csv'", "no such folder")),
        (("--input", "none.csv"), ("'none.csv'",)),
        (("--workers", "0"), ("--workers is 0",)),
        (("--workers", "1000"), ("--workers is 1000; at most 128",)),
        (("--lateness", "soon"), ("'soon'",)),
        (("--seed", "-1"), ("--seed is -1",)),
        (("--sensors", "weather"), ("there is no sensor", "mine.script:1:9")),
        (("--wokers", "3"), ("'--wokers'",)),
    ],
)
def test_refusals_are_one_sentence_and_leave_nothing(
    straggler: Straggler, folder: Path, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    before = sorted(folder.iterdir())
    done = straggler(*RUN, *arguments)
    if arguments[0] == "--sensors":
        assert (done.code, done.out) == (2, "")
        assert all(word in done.err for word in words)
    else:
        assert_refused(done, *words)
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--workers", "0"), "--workers is 0"),
        (("--workers", "1000"), "--workers is 1000; at most 128"),
        (("--cap-percent", "0"), "--cap-percent is 0"),
        (("--lateness", "-5s"), "--lateness is -5s"),
        (("--sensors", "none.csv"), "there are no sensors 'none.csv'"),
        (("--sensors", "weather"), "mine.script:1:9: there is no sensor"),
        (("--separator", ""), "--separator is ''"),
        (("none.script",), "'none.script' cannot be read"),
        (("wrong.script",), "wrong.script:1:5: there is no function 'agv'"),
    ],
)
@pytest.mark.parametrize("command", [RUN, ("diff", "script", *FILE, "--script", "mine.script")])
def test_wrong_options_are_refused_before_the_input_is_read(
    straggler: Straggler,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    arguments: tuple[str, ...],
    words: str,
) -> None:
    (folder / "wrong.script").write_text('x = agv("l", 4, 2)\n', encoding="utf-8")
    monkeypatch.delattr(inputs, "load")
    if arguments[0].endswith(".script"):
        at = command.index("mine.script")
        done = straggler(*command[:at], *arguments, *command[at:])
    else:
        done = straggler(*command, *arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


def test_more_results_than_can_be_sorted_are_refused(straggler: Straggler, folder: Path) -> None:
    rows = [f"l,{n * 100_000},1" for n in range(20_000)]
    text = "\n".join(["sensor,at,value", *rows])
    (folder / "readings.csv").write_text(text, encoding="utf-8")
    (folder / "mine.script").write_text('x = avg("l", 10_000, 1)\n', encoding="utf-8")
    assert_refused(straggler(*RUN), "readings.csv", "200,000,000 results", "longer slides")


def computed_by_the_model(_: object, config: ScriptConfig, events: Sequence[Event]) -> Found:
    trace = run(Workload("script", tuple(events), config.to_json()))
    found = trace.of(Result)
    stamps = pa.array([each.ts_us for each in found], pa.timestamp("us", tz="UTC"))
    columns = zip(*((each.workflow, each.name, each.value) for each in found), strict=True)
    flows, names, values = (pa.array(each) for each in columns)
    results = pa.table(dict(zip(running.COLUMNS, (flows, names, stamps, values), strict=True)))
    reasons = Counter(each.reason for each in trace.of(Rejected))
    return Found(results, len(trace.of(Undefined)), reasons)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_tuples_without_a_value_are_left_out_and_counted(
    straggler: Straggler, folder: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setattr(script_run, "compute", computed_by_the_model)
    monkeypatch.setattr(script_run, "open_session", nullcontext)
    text = "sensor,at,value\nl,0,1\nl,1,\nl,1,nan\nr,1,\nl,1,inf\nl,1,5\nl,2,\n"
    path = folder / f"readings.{suffix}"
    path.write_text(text, encoding="utf-8")
    if suffix == "parquet":
        columns = {
            "sensor": list("lllrlll"),
            "at": [0, 1, 1, 1, 1, 1, 2],
            "value": [1.0, None, float("nan"), None, float("inf"), 5.0, None],
        }
        parquet.write_table(pa.table(columns), path)
    done = straggler(*RUN[:4], str(path), *RUN[5:], "--output", "found.csv")
    assert (done.code, done.err) == (0, "")
    assert "of 7 tuples 0 came too late, 4 had no value, 1 nobody asked for." in done.out
    # The average of 1 and 5, in the windows that end after 2 and after 4 seconds.
    assert (folder / "found.csv").read_text(encoding="utf-8").splitlines()[1:] == [
        '"mine","x","1970-01-01T00:00:01.999Z",3',
        '"mine","x","1970-01-01T00:00:03.999Z",3',
    ]


def test_the_page_shows_what_the_model_finds() -> None:
    page = PAGE.read_text(encoding="utf-8")
    script = next(part for part in page.split("```") if "# How warm was it" in part)
    shown = next(part for part in page.split("```") if part.startswith("\ntime "))
    network = inputs.weather(0)
    flow = parse(script, "weather", network.per_hour)
    config = config_of([flow], network, WORKERS, parse_duration_us(network.lateness or ""))
    trace = run(Workload("script", network.events, config.to_json()))
    results = sorted(trace.of(Result), key=lambda each: (each.ts_us, each.workflow, each.name))
    for line, each in zip(
        shown.strip().splitlines()[1:], results[: script_run.SHOWN], strict=False
    ):
        moment, workflow, name, value = line.split()
        assert datetime.fromisoformat(moment).timestamp() * 1e6 == pytest.approx(each.ts_us)
        assert (workflow, name) == (each.workflow, each.name)
        assert value == f"{each.value:,.6g}"
    asked = [event for event in network.events if event.key in config.asked_for]
    others = len(network.events) - len(asked)
    late, never = len(trace.of(Rejected)), len(trace.of(Undefined))
    said = f"{len(results):,} results, {never} times without one; of {len(network.events):,} tuples"
    assert f"{said} {late} came too late, 0 had no value, {others:,} nobody asked for." in shown


def table(*stamps_us: int) -> pa.Table:
    times = pa.array(stamps_us, pa.timestamp("us", tz="UTC"))
    names = pa.array(["x"] * len(stamps_us))
    values = pa.array([0.1] * len(stamps_us))
    return pa.table(dict(zip(running.COLUMNS, (names, names, times, values), strict=True)))


def test_results_are_written_as_text_or_as_they_are(tmp_path: Path) -> None:
    running.write(table(1_999_000, 61_000_000), tmp_path / "found.csv")
    assert (tmp_path / "found.csv").read_text(encoding="utf-8").splitlines() == [
        '"workflow","name","time","value"',
        '"x","x","1970-01-01T00:00:01.999Z",0.1',
        '"x","x","1970-01-01T00:01:01.000Z",0.1',
    ]
    running.write(table(1, 2_000), tmp_path / "found.csv")
    assert "1970-01-01T00:00:00.000001Z" in (tmp_path / "found.csv").read_text(encoding="utf-8")
    running.write(table(1_999_000), tmp_path / "found.parquet")
    assert parquet.read_table(tmp_path / "found.parquet").equals(table(1_999_000))
    running.write(table(), tmp_path / "found.csv")
    assert (tmp_path / "found.csv").read_text(encoding="utf-8").count("\n") == 1
    assert len(list(tmp_path.iterdir())) == 2
