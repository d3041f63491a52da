"""The command line without Spark: what it prints, what it refuses, how it exits."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from model.vocabulary import Trace, Workload
from model.vocabulary.windows import Final
from straggler.inputs import inputs
from straggler.inputs.tables import Recording
from tests.straggler.command import Straggler, assert_refused

MODEL = "model.slack:make_system"
BUGGY = "model.slack.variants:lost_update"


def stream(tmp_path: Path, *event_times_s: float) -> str:
    rows = "".join(f"{time},1\n" for time in event_times_s)
    (tmp_path / "stream.csv").write_text(f"event_time,value\n{rows}", encoding="utf-8")
    return "stream.csv"


DISORDERED = (1, 2, 9, 3, 12, 30, 11, 40)
FIXED = ("--time-unit", "s", "--control", "fixed", "--system", MODEL, "--level", "steps")


# ----------------------------------------------------------------------------------------- diff


@pytest.mark.usefixtures("short_umts")
def test_diff_prints_a_table_a_sentence_and_the_seed(straggler: Straggler) -> None:
    done = straggler("diff", "slack", "--input", "umts", "--system", MODEL, "--seed", "3")
    assert (done.code, done.err.count("\n")) == (0, 4)
    lines = done.out.splitlines()
    assert "coverage" in lines[0]
    assert sum(line.startswith("slack  umts (simulated)  ") for line in lines) == 4
    assert lines[-1].startswith("4 comparisons, none broken: model.slack:make_system agrees with")
    assert lines[-1].endswith("Seed 3.")
    assert all(len(line) <= 110 for line in lines[: lines.index("")])


@pytest.mark.usefixtures("short_umts")
def test_a_method_applies_to_its_own_aggregates_only(straggler: Straggler) -> None:
    options = ("--input", "umts", "--per", "task", "--system", MODEL)
    done = straggler("diff", "slack", *options, "--method", "rigorous")
    assert (done.code, done.err) == (0, "")
    assert done.out.count("method=rigorous") == 3  # its rows in both tables, and its remark
    assert "count per task" not in done.out
    done = straggler("diff", "slack", *options, "--sampling", "adversarial")
    assert done.code == 0
    assert done.out.count("sampling=adversarial") == 4
    assert "assumption" not in done.out


def test_diff_without_recordings_names_the_inputs_that_it_omits(
    straggler: Straggler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def few_flights(seed: int) -> Recording:
        flights = inputs.flights(seed)
        return flights._replace(events=flights.events[:9_999])

    monkeypatch.setattr(inputs, "NAMED", {**inputs.NAMED, "flights": few_flights})
    done = straggler("diff", "slack", "--system", MODEL, "--per", "task", "--aggregate", "count")
    assert done.code == 0
    assert "slack  flights " in done.out
    assert "skipped iot_umts: input 'iot_umts' is a recording" in done.out
    assert "STRAGGLER_DATA is not set." in done.out


def test_json_has_an_object_a_row(straggler: Straggler, tmp_path: Path) -> None:
    source = stream(tmp_path, *DISORDERED)
    done = straggler("diff", "slack", "--input", source, *FIXED, "--per", "key", "--json", "v.json")
    assert done.code == 0
    rows = json.loads((tmp_path / "v.json").read_text(encoding="utf-8"))
    assert list(rows[0])[:9] == [
        "room",
        "input",
        "verdict",
        "compared",
        "late",
        "corrections",
        "coverage_before",
        "mismatches",
        "seconds",
    ]
    assert [row["verdict"] for row in rows] == ["holds", "holds"]
    assert rows[0]["digest_expected"] == rows[0]["digest_observed"]
    assert rows[0]["late"] > 0
    assert 0 < rows[0]["coverage_before"] < 1
    assert {claim["outcome"] for claim in rows[0]["claims"]} <= {"holds", "undetermined"}


def test_nothing_late_is_undetermined(straggler: Straggler, tmp_path: Path) -> None:
    # Out of order, and yet no window is closed when a tuple comes.
    source = stream(tmp_path, 1, 3, 2)
    done = straggler("diff", "slack", "--input", source, *FIXED, "--fixed-slack", "1min")
    assert done.code == 3
    assert "undetermined" in done.out
    assert "nothing was late in stream.csv: the cases that matter never came up" in done.out


def test_input_in_order_is_undetermined_and_says_why(straggler: Straggler, tmp_path: Path) -> None:
    done = straggler("diff", "slack", "--input", stream(tmp_path, 1, 2, 3), *FIXED)
    assert done.code == 3
    assert "stream.csv is in order, so nothing can be late" in done.out


def test_nothing_compared_is_undetermined(straggler: Straggler, tmp_path: Path) -> None:
    source = stream(tmp_path, 1, 9, 2)
    done = straggler("diff", "slack", "--input", source, *FIXED, "--kinds", "rejected")
    assert done.code == 3
    assert "neither the system nor the reference recorded a step of kind rejected" in done.out


@pytest.mark.usefixtures("short_umts")
def test_broken_system_gives_a_small_counterexample_that_can_be_replayed(
    straggler: Straggler, tmp_path: Path
) -> None:
    ask = (
        "--input",
        "umts",
        "--per",
        "task",
        "--aggregate",
        "sum",
        "--system",
        BUGGY,
        "--level",
        "steps",
    )
    done = straggler("diff", "slack", *ask)
    assert done.code == 1
    assert "1 of 1 comparison broken" in done.out
    assert "It takes 2 arrivals in 1 batch," in done.out
    (stored,) = (tmp_path / "counterexamples").iterdir()
    name = f"counterexamples/{stored.name}"
    assert f"run it again with: straggler replay {name}" in done.out
    record = json.loads(stored.read_text(encoding="utf-8"))
    assert (record["counterexample"], record["system"]) == (1, BUGGY)
    assert any("one writer" in sentence for sentence in record["broken"])

    again = straggler("replay", name, "--trust")
    assert again.code == 1
    assert "one writer" in again.out
    assert again.out.endswith("It still fails.\n")
    mended = straggler("replay", name, "--system", MODEL)
    assert (mended.code, mended.out) == (0, f"{stored.name} does not fail any more.\n")


def answers_only() -> Callable[[Workload], Trace]:
    """Return a System that records final answers and nothing else."""
    from model.slack import run

    return lambda workload: Trace("answers", run(workload).of(Final))


def raises() -> Callable[[Workload], Trace]:
    """Return a System that raises an error."""

    def system(_workload: Workload) -> Trace:
        raise RuntimeError("no\nmore disk")

    return system


def test_system_that_records_less_is_compared_in_what_it_records(
    straggler: Straggler, tmp_path: Path
) -> None:
    own = f"{__name__}:answers_only"
    ask = ("diff", "slack", "--input", stream(tmp_path, *DISORDERED), *FIXED, "--system", own)
    done = straggler(*ask)
    assert done.code == 1
    assert "there is no result or" in done.out
    assert "--kinds names those to compare" in done.out
    # What is compared agrees, and the reference knows that tuples were late.
    assert straggler(*ask, "--kinds", "final").code == 0
    assert_refused(straggler(*ask, "--kinds", "finl"), "'finl'", "did you mean 'final'?")


def test_system_that_raises_is_broken_in_one_sentence(straggler: Straggler, tmp_path: Path) -> None:
    source = stream(tmp_path, *DISORDERED)
    own = ("--system", f"{__name__}:raises", "--per", "key", "--aggregate", "sum")
    done = straggler("diff", "slack", "--input", source, *FIXED, *own)
    assert done.code == 1
    assert "the system raised RuntimeError: no more disk" in done.out
    assert "Traceback" not in done.out + done.err


# ------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("dif slack", ("'dif'", "did you mean 'diff'?")),
        ("--hlp", ("'--hlp'", "did you mean '--help'?")),
        ("diff slck", ("'slck'", "did you mean 'slack'?")),
        ("diff", ("ROOM",)),
        ("diff slack --inptu umts", ("'--inptu'", "did you mean '--input'?")),
        (
            "diff slack --workers 3",
            ("--workers is an option of rooms join and script, not of slack",),
        ),
        (
            "diff all --system model.slack:make_system",
            ("'model.slack:make_system' belongs to one room",),
        ),
        ("diff slack --input umst", ("'umst'", "flights, umts", "did you mean 'umts'?")),
        ("diff slack --input weather", ("'weather'", "known are flights, umts")),
        ("diff slack --input nowhere.csv", ("there is no file 'nowhere.csv'",)),
        ("diff slack --input iot_umts", ("STRAGGLER_DATA is not set",)),
        ("diff slack --input umts --window 0s", ("--window is 0", "a duration > 0")),
        ("diff slack --input umts --slide -1s", ("--slide",)),
        ("diff slack --input umts --window 5", ("'5'", "500ms")),
        ("diff slack --input umts --eps 1.5", ("--eps is 1.5", "> 0 and < 1")),
        ("diff slack --input umts --delta 0", ("--delta is 0.0", ">= 1e-12 and < 1")),
        ("diff slack --input umts --aggregate mean", ("--aggregate is 'mean'", "avg")),
        ("diff slack --input umts --control none", ("--control is 'none'", "conformal")),
        ("diff slack --input umts --aggregate max", ("needs lambda_thr",)),
        ("diff slack --input umts --batches 0", ("--batches is 0",)),
        ("diff slack --input umts --tasks 0", ("tasks is 0",)),
        ("diff slack --input umts --seed -1", ("--seed is -1",)),
        ("diff slack --input umts --json no/where.json", ("no/where.json", "no such folder")),
        ("diff slack --input umts --separator ;;", ("';;'",)),
        ("diff slack --input umts --system nonsense", ("MODULE:FACTORY",)),
        ("diff slack --input umts --system no_such:thing", ("'no_such' cannot be imported",)),
        (
            "diff slack --input umts --system model.slack:make_sistem",
            ("did you mean 'make_system'?",),
        ),
        ("replay nowhere.json", ("there is no file 'nowhere.json'",)),
        ("explore slack --scope smal", ("'smal'", "did you mean 'small'?")),
        ("explore slack --variant lost", ("'lost'", "lost_update")),
        ("explore join --variant no_numbers --scope cut", ("no_numbers", "fifo only", "is cut")),
        ("sim slack --set sise_us=1", ("'sise_us'", "did you mean 'size_us'?")),
        ("sim slack --set eps=2", ("eps is 2.0",)),
        ("sim slack --set eps", ("--set is 'eps'", "KEY=VALUE")),
        ("sim slack --set size_us=5parsecs", ("'5parsecs'",)),
    ],
)
def test_refusals_are_one_sentence_that_names_the_value(
    straggler: Straggler, tmp_path: Path, arguments: str, words: tuple[str, ...]
) -> None:
    assert_refused(straggler(*arguments.split()), *words)
    assert not list(tmp_path.iterdir()), "nothing is written"


def test_negative_values_are_summed(straggler: Straggler, tmp_path: Path) -> None:
    text = "event_time,value\n" + "".join(f"{at},{at % 5 - 2}\n" for at in (1, 9, 30, 2, 50))
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    query = ("--aggregate", "sum", "--window", "10us", "--slide", "10us", "--time-unit", "us")
    done = straggler("diff", "slack", "--input", "t.csv", "--system", MODEL, *query)
    assert done.code == 0, done
    assert "agrees with the reference in 6 windows" in done.out


def test_missing_java_is_one_sentence(
    straggler: Straggler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark import SparkContext

    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setenv("JAVA_HOME", "nowhere")
    done = straggler("diff", "slack", "--input", stream(tmp_path, 1, 2), "--time-unit", "s")
    assert_refused(done, "Java 17 or newer", "nowhere")


@pytest.mark.parametrize("text", ["{}", "[1]", "no json", '{"counterexample": 9}'])
def test_files_that_are_no_counterexample(straggler: Straggler, tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    assert_refused(straggler("replay", "x.json"), "x.json is not a counterexample")


# ------------------------------------------------------------------------------- other commands


def test_help_and_version(straggler: Straggler) -> None:
    done = straggler("--help")
    assert done.code == 0
    for command in ("diff", "explore", "sim", "replay", "exit codes"):
        assert command in done.out
    for command in ("diff", "explore", "sim", "replay"):
        assert "examples:" in straggler(command, "--help").out
    assert straggler("--version").out.startswith("straggler ")


def test_explore_counts_states_and_finds_every_planted_bug(
    straggler: Straggler, tmp_path: Path
) -> None:
    done = straggler("explore", "slack", "--scope", "conformal", "--json", "explored.json")
    assert done.code == 0
    assert "scope conformal: 1,568 states, 2,631 transitions, depth 18" in done.out
    assert "17 of 17 planted bugs are caught." in done.out
    record = json.loads((tmp_path / "explored.json").read_text(encoding="utf-8"))
    assert record["scopes"][0]["states"] == 1_568
    assert all(bug["claim"] for bug in record["planted_bugs"])


def test_explore_one_variant_tells_its_shortest_path(straggler: Straggler) -> None:
    done = straggler("explore", "slack", "--variant", "lost_update")
    assert done.code == 1
    assert "3. tuple #" in done.out
    assert "Correct rule: The stream never writes a closed window again" in done.out


def test_explore_join_draws_what_a_planted_bug_does(straggler: Straggler) -> None:
    done = straggler("explore", "join", "--variant", "no_numbers")
    assert done.code == 1
    assert "      6. |                                 --> [r0] => (r0 s0) AGAIN\n" in done.out
    assert "(r0, s0) came out twice.\n    Broken after 6 actions.\n" in done.out


def test_sim_prints_figures_and_draws(straggler: Straggler, tmp_path: Path) -> None:
    done = straggler("sim", "slack", "--seed", "2", "--set", "size_us=5s", "--json", "run.json")
    assert done.code == 0
    assert "late pairs" in done.out
    assert "Seed 2, digest " in done.out
    figures = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert figures["verdict"] == "holds"
    assert straggler("sim", "slack", "--seed", "2", "--plot", "run.svg").code == 0
    assert "<svg" in (tmp_path / "run.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "arguments",
    [
        ("sim", "slack", "--set", "messages=200"),
        ("explore", "slack", "--scope", "conformal", "--variant", "lost_update"),
        ("errata", "slack", "--only", "lost-update"),
        ("diff", "slack", "--input", "stream.csv", *FIXED, "--per", "key", "--aggregate", "sum"),
    ],
)
def test_json_on_standard_output_leaves_the_table_to_standard_error(
    straggler: Straggler, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    stream(tmp_path, *DISORDERED)
    usual = straggler(*arguments)
    done = straggler(*arguments, "--json", "-")
    assert done.code == usual.code
    assert json.loads(done.out)
    assert len(done.err.splitlines()) == len(usual.out.splitlines())
    assert [path.name for path in tmp_path.iterdir()] == ["stream.csv"]
