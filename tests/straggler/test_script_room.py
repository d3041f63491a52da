"""Room ``script`` on the command line, without Spark."""

import json
from pathlib import Path

import pytest

from model.script import run
from model.vocabulary import ScriptConfig, Workload
from model.vocabulary.script.config import Hosted, Result
from straggler.cases import why_missing
from straggler.inputs.tables import Columns
from straggler.rooms import find_room
from straggler.rooms.script import inputs, limits
from straggler.rooms.script.inputs import BRIDGE, WEATHER, examples, read_workflows
from straggler.rooms.script.room import simpler
from tests.straggler.command import Straggler, assert_refused

MODEL = "model.script:make_system"
VARIANTS = "model.script.variants"
FLOATS = "tests.straggler.float_scripts"
FILE = ("--input", "readings.csv", "--key", "sensor", "--event-time", "at", "--time-unit", "s")
OWN = ("diff", "script", "--script", "means.script", "worst.script", *FILE)
MEANS = """\
left = avg("l", 4_000, 2_000)
right = avg("r", 6_000, 2_000)
never = left / (right - right)
"""
WORST = 'worst = max(avg("l", 4_000, 2_000), "m")\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write two scripts and three sensors; each sensor has some late tuples."""
    (tmp_path / "means.script").write_text(MEANS, encoding="utf-8")
    (tmp_path / "worst.script").write_text(WORST, encoding="utf-8")
    order = sorted(range(90), key=lambda n: n + (30 if n % 11 == 0 else 0))
    rows = [f"{'lrm'[n % 3]},{n // 3},{n % 7 - 3 + n % 4 / 10}" for n in order]
    text = "\n".join(["sensor,at,value", *rows, ""])
    (tmp_path / "readings.csv").write_text(text, encoding="utf-8")
    return tmp_path


def test_scripts_of_somebody_on_a_file_of_theirs(straggler: Straggler, folder: Path) -> None:
    done = straggler(
        *OWN,
        *("--lateness", "5s", "--workers", "2", "--system", MODEL, "--level", "steps"),
        *("--json", "verdict.json"),
    )
    assert (done.code, done.err) == (0, "")
    assert "1 comparison, none broken" in done.out
    assert "2 scripts, 2 workers, late after 5s" in done.out
    (row,) = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))
    assert (row["verdict"], row["tuples"], row["shared"], row["deviation"]) == ("holds", 90, 1, 0)
    assert row["late"] > 0
    assert row["undefined"] > 0
    assert row["results"] > 20
    # As often as they send: thirty tuples in 29 seconds.
    assert dict(row["config"]["sensors"]) == dict.fromkeys("lmr", 3_725)
    assert row["sent"] == 3 * 3_725 + row["results_sent"]
    (plan,) = row["remarks"]
    assert len(plan["workers"]) == 2
    assert plan["placement"] in plan["sentence"]
    assert {claim["outcome"] for claim in row["claims"]} == {"holds"}


def test_tuples_without_a_value_are_rejected_alone(straggler: Straggler, folder: Path) -> None:
    path = folder / "readings.csv"
    rows = path.read_text(encoding="utf-8").splitlines()
    text = "\n".join([*rows, "l,30,", "r,31,nan", "m,32,-inf", ""])
    path.write_text(text, encoding="utf-8")
    done = straggler(*OWN, "--lateness", "5s", "--system", MODEL, "--json", "verdict.json")
    assert (done.code, done.err) == (0, "")
    (row,) = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))
    assert (row["verdict"], row["tuples"], row["deviation"]) == ("holds", 93, 0)
    silent = straggler(*OWN, "--lateness", "5s", "--system", f"{FLOATS}:make_silent")
    assert silent.code == 1
    assert "It takes 1 arrival" in silent.out
    (stored,) = (folder / "counterexamples").iterdir()
    assert straggler("replay", str(stored), "--trust").code == 1
    assert straggler("replay", str(stored), "--system", MODEL).code == 0


@pytest.mark.parametrize("watermark", ["disorder", "scaled"])
def test_the_watermark_may_follow_the_disorder(
    straggler: Straggler, folder: Path, watermark: str
) -> None:
    ask = ("--lateness", "5s", "--watermark", watermark, "--cluster", "4", "--json", "verdict.json")
    done = straggler(*OWN, *ask, "--system", MODEL)
    assert (done.code, done.err) == (0, "")
    assert f"late after 5s at most, by {watermark} of 4" in " ".join(done.out.split())
    (row,) = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))
    assert (row["config"]["watermark"], row["config"]["cluster"]) == (watermark, 4)
    assert row["late"] > 0


def test_without_a_lateness_nothing_is_late(straggler: Straggler, folder: Path) -> None:
    done = straggler(*OWN, "--system", MODEL)
    assert done.code == 0
    assert "2 scripts, 3 workers, nothing late" in done.out
    assert " and 0 late arrivals" in done.out


def test_a_run_without_sharing_or_late_tuples_is_undetermined(
    straggler: Straggler, folder: Path
) -> None:
    alone = straggler("diff", "script", "--script", "worst.script", *FILE, "--system", MODEL)
    assert alone.code == 3
    assert "no computation and no slice was shared in readings.csv" in alone.out
    early = straggler(*OWN, "--lateness", "1h", "--system", MODEL)
    assert early.code == 3
    assert "nothing was late in readings.csv" in early.out


def test_a_broken_system_leaves_a_counterexample_that_can_be_replayed(
    straggler: Straggler, folder: Path
) -> None:
    done = straggler(*OWN, "--system", f"{VARIANTS}:stamped_at_the_end")
    assert done.code == 1
    assert "results are what the workflows mean: There is no" in done.out
    told = next(line for line in done.out.splitlines() if line.startswith("It takes 1 arrival"))
    assert " with workers=1, cap_percent=125, the script means=[" in told
    assert told.count(" = ") == 1, "it takes one statement"
    (stored,) = (folder / "counterexamples").iterdir()
    again = straggler("replay", str(stored), "--trust")
    assert again.code == 1
    assert "It still fails." in again.out
    right = straggler("replay", str(stored), "--system", MODEL)
    assert right.code == 0


def test_a_system_that_adds_in_float64_is_close_enough(straggler: Straggler, folder: Path) -> None:
    kinds = ("--kinds", "result,undefined,rejected", "--json", "verdict.json")
    done = straggler(*OWN, "--lateness", "5s", "--system", f"{FLOATS}:make", *kinds)
    assert done.code == 0
    (row,) = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))
    assert 0 < row["deviation"] < 1e-11
    unsaid = {c["claim"] for c in row["claims"] if c["outcome"] == "undetermined"}
    assert len(unsaid) == 2, "what is said of workers"
    far = straggler(*OWN, "--system", f"{FLOATS}:make_far", "--kinds", "result")
    assert far.code == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--cap-percent", "50"), ("--cap-percent is 50", ">= 100")),
        (("--workers", "0"), ("--workers is 0",)),
        (("--watermark", "literal"), ("--watermark is 'literal'", "fixed, disorder, scaled")),
        (("--watermark", "scaled"), ("--watermark scaled needs --lateness",)),
        (("--cluster", "0"), ("--cluster is 0", "an integer > 0")),
        (("--cluster", "20000"), ("--cluster is 20000; at most 10,000",)),
        (("--workers", "500"), ("--workers is 500; at most 128",)),
        (("--window", "5s"), ("--window", "the scripts say")),
        (("--input", "weather"), ("there is no sensor and no earlier name 'l'",)),
        (("--sensors", "wether"), ("'wether'", "did you mean 'weather'?")),
        (("--script", "./worst.script"), ("would both be called 'worst'",)),
        (("--script", "none.script"), ("'none.script' cannot be read",)),
        (("--input", "readings.csv", "--value", "at"), ()),
    ],
)
def test_refusals_are_one_sentence(
    straggler: Straggler, folder: Path, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    done = straggler(*OWN, *arguments, "--system", MODEL)
    if words:
        assert_refused(done, *words)
    else:
        assert done.code in (0, 3)


def test_an_invalid_script_is_refused_with_its_place(straggler: Straggler, folder: Path) -> None:
    (folder / "means.script").write_text('x = agv("l", 4, 2)\n', encoding="utf-8")
    assert_refused(straggler(*OWN, "--system", MODEL), "means.script:1:5: ", "did you mean 'avg'?")


def test_a_file_needs_sensors_and_scripts(straggler: Straggler, folder: Path) -> None:
    bare = ("diff", "script", *FILE, "--system", MODEL)
    assert_refused(straggler(*bare), "no scripts come with readings.csv")
    keyless = (*OWN[:5], "--input", "readings.csv", "--event-time", "at", "--system", MODEL)
    assert_refused(straggler(*keyless), "--key names a column")


def test_work_without_end_is_refused(straggler: Straggler, folder: Path) -> None:
    rows = ["sensor,at,value", *(f"l,{n * 10_000},1" for n in range(9_000))]
    (folder / "readings.csv").write_text("\n".join(rows), encoding="utf-8")
    (folder / "means.script").write_text('x = avg("l", 10_000, 1)\n', encoding="utf-8")
    (folder / "worst.script").write_text('x = avg("l", 9_000, 1)\n', encoding="utf-8")
    assert_refused(straggler(*OWN, "--system", MODEL), "results of all computations", "longer")
    (folder / "readings.csv").write_text("sensor,at,value\nl,-1,1\n", encoding="utf-8")
    assert_refused(straggler(*OWN, "--system", MODEL), "no row can be used", "before 1970 (line 2)")


# ---------------------------------------------------------------------------------------- inputs


def test_the_weather_with_its_examples(
    straggler: Straggler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(inputs, "WEATHER_HOURS", 8 * 24)
    done = straggler("diff", "script", "--system", MODEL, "--json", "verdict.json")
    assert done.code == 0
    assert "weather (delay simulated)" in done.out
    assert "skipped munich_bridge: input 'munich_bridge' is a recording" in done.out
    (row,) = json.loads((tmp_path / "verdict.json").read_text(encoding="utf-8"))
    cases = ("late", "shared", "slices_shared", "narrow_panes", "undefined", "results_sent")
    assert not [name for name in cases if not row[name]]
    assert row["saved"] > 0.2
    assert row["largest_load"] <= row["load_cap"]
    assert "large ones split" in done.out


def test_scripts_of_somebody_are_about_the_weather_unless_they_say(
    straggler: Straggler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(inputs, "WEATHER_HOURS", 48)
    text = 'x = avg("JFK.temp", 7_200_000, 3_600_000)\ny = max("JFK.temp", 7_200_000, 3_600_000)\n'
    (tmp_path / "mine.script").write_text(text, encoding="utf-8")
    ask = ("diff", "script", "--script", "mine.script", "--system", MODEL)
    done = straggler(*ask, "--lateness", "10min")
    assert done.code == 0
    assert "mine, 3 workers, late after 10min" in done.out


def test_delays_depend_on_the_seed() -> None:
    first, again, other = (inputs.load("weather", seed, Columns(), None) for seed in (1, 1, 2))
    assert first.events == again.events != other.events
    assert set(first.per_hour) == set(WEATHER)
    arrived = [event.arrival_us for event in first.events]
    assert arrived == sorted(arrived)
    assert all(event.arrival_us >= event.event_time_us for event in first.events)


def test_the_bridge_with_its_examples() -> None:
    reason = why_missing("munich_bridge")
    if reason is not None:
        pytest.skip(reason)
    network = inputs.load("munich_bridge", 0, Columns(), None)
    sent = {event.key for event in network.events}
    assert sent == set(network.per_hour) == set(BRIDGE)
    measured = inputs.count_per_hour(network.events)
    for sensor, rate in BRIDGE.items():
        assert measured[sensor] == pytest.approx(rate, rel=0.02)


def test_examples_of_the_bridge_are_in_the_usual_form(straggler: Straggler) -> None:
    files = [str(path) for path in examples("bridge")]
    assert len(files) >= 6
    assert straggler("script", "fmt", "--check", *files).code == 0
    done = straggler("script", "check", "--sensors", "munich_bridge", *files)
    assert (done.code, done.err) == (0, "")


def test_naive_judgement_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "WEATHER_HOURS", 20 * 24)
    network = inputs.weather(0)
    assert network.scripts == examples(".")
    chosen = find_room("script")
    assert chosen.step_types[-1] is Hosted
    assert limits.NAIVE_MAX < limits.FOLDS_MAX


def test_the_small_scope_is_explored(straggler: Straggler) -> None:
    done = straggler("explore", "script", "--variant", "union_as_a_set")
    assert done.code == 1
    assert 'x = sum(union("a", "a"), 2, 1)' in done.out
    assert "There is no x = 2 of w" in done.out


def test_simpler_cases_are_smaller_and_run() -> None:
    files = [path for path in examples(".") if path.stem in ("temperature", "comfort", "wind")]
    flows = read_workflows(files, WEATHER)
    config = ScriptConfig(
        tuple(flows), tuple(WEATHER.items()), 3, lateness_us=1, watermark="scaled", cluster=7
    )
    whole = Workload("script", (), config.to_json())
    tried = 0
    waiting = [whole]
    while waiting:
        before = waiting.pop()
        less = list(simpler(before))
        tried += len(less)
        for each in less:
            assert len(json.dumps(each.config)) <= len(json.dumps(before.config))
            assert each.config != before.config
            assert not run(each).of(Result)
        waiting += less[-1:]
    assert tried > 20
    last = ScriptConfig.from_json(before.config)
    (flow,) = last.workflows
    assert (last.workers, last.watermark, len(flow.statements)) == (1, "fixed", 1)
    assert {sensor for sensor, _ in last.sensors} == last.asked_for
