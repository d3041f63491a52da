"""Room ``watermark`` on the command line, without Spark."""

import json
from pathlib import Path

import pytest

from model.vocabulary import Event, Trace, WatermarkConfig, Workload
from model.vocabulary.windows import Final, Result
from straggler.rooms import find_room
from tests.straggler.command import Straggler, assert_refused

MODEL = "model.watermark:make_system"
VARIANTS = "model.watermark.variants"
STEPS = ("--system", MODEL, "--level", "steps")
FILE = ("diff", "watermark", "--input", "trips.csv", "--time-unit", "s", "--key", "car")


@pytest.fixture
def trips(tmp_path: Path) -> Path:
    """Write trips of two cars, one a minute behind the other; two tuples are out of order."""
    swapped = {5: 7, 7: 5}
    times = [2 * swapped.get(n, n) + 60 * (n % 2 == 0) for n in range(200)]
    rows = [(n, "ab"[n % 2], time, n % 5) for n, time in enumerate(times)]
    text = "\n".join(["n,car,event_time,value", *(",".join(map(str, row)) for row in rows), ""])
    (tmp_path / "trips.csv").write_text(text, encoding="utf-8")
    return tmp_path


def test_a_file_for_all_and_for_every_device(straggler: Straggler, trips: Path) -> None:
    options = ("--window", "10s", "--max-wait", "20s", "--k", "4")
    done = straggler(*FILE, *options, *STEPS, "--json", "verdict.json")
    assert (done.code, done.err.count("\n")) == (0, 2)
    assert "2 comparisons, none broken" in done.out
    together, apart = json.loads((trips / "verdict.json").read_text(encoding="utf-8"))
    assert together["query"] == "sum per task, 10s/10s, k=4, M=20s"
    assert apart["query"] == "sum per device, 10s/10s, k=4, M=20s"
    assert (together["config"]["tasks"], apart["config"]["tasks"]) == (1, 2)
    assert together["late"] > 0 == apart["late"]
    assert together["waited_s"] > apart["waited_s"] > 0
    assert together["clocks"] == apart["clocks"] == 200


def test_values_that_cancel_may_be_rounded_in_any_order_and_none_may_be_lost() -> None:
    watermark, config = find_room("watermark"), WatermarkConfig(10, 10, 0, keyed=False)
    events = tuple(Event(n, n, "", 1, value, 2) for n, value in enumerate((0.1, 0.2, -0.3)))
    case = Workload("watermark", events, config.to_json())
    right = watermark.reference()(case)
    for values, mismatches in (((0.1 + 0.2 - 0.3,) * 2, 0), ((0.1 + 0.2,) * 2, 2)):
        given = iter(values)
        steps = [
            step._replace(value=next(given)) if isinstance(step, Result | Final) else step
            for step in right.steps()
        ]
        found = watermark.compare(case, right, Trace("someone", steps), watermark.step_types)
        assert found.mismatches == mismatches


@pytest.mark.parametrize(("aggregate", "mismatches"), [("avg", 0), ("min", 2), ("count", 2)])
def test_only_sums_may_be_rounded(aggregate: str, mismatches: int) -> None:
    watermark = find_room("watermark")
    config = WatermarkConfig(10, 10, 0, keyed=False, aggregate=aggregate)
    events = tuple(Event(n, n, "", 1, value, 2) for n, value in enumerate((0.1, 2e6, -0.3)))
    case = Workload("watermark", events, config.to_json())
    right = watermark.reference()(case)
    steps = [
        step._replace(value=step.value * (1 + 1e-12)) if isinstance(step, Result | Final) else step
        for step in right.steps()
    ]
    found = watermark.compare(case, right, Trace("someone", steps), watermark.step_types)
    assert found.mismatches == mismatches


def test_devices_that_are_in_order_each_but_not_together_are_determined(
    straggler: Straggler, tmp_path: Path
) -> None:
    done = straggler(
        "diff", "watermark", "--input", "umts", "--system", MODEL, "--json", "verdict.json"
    )
    assert done.code == 0
    together, apart = json.loads((tmp_path / "verdict.json").read_text(encoding="utf-8"))
    assert together["late"] > 0 == apart["late"]


def test_corrections_leave_nothing_missing(straggler: Straggler, trips: Path) -> None:
    options = ("--per", "task", "--corrections", "--aggregate", "count", "--json", "verdict.json")
    done = straggler(*FILE, *options, "--system", MODEL)
    assert done.code == 0
    (row,) = json.loads((trips / "verdict.json").read_text(encoding="utf-8"))
    assert row["config"]["corrections"]
    assert row["late"] > 0
    assert row["coverage"] < 1


@pytest.mark.parametrize(
    ("seconds", "reading", "code", "words"),
    [
        ((1, 2, 3), "disorder", 3, "everything came in order"),
        ((1,), "literal", 3, "everything came in order"),
        ((3, 1), "disorder", 3, "the wait was the same all the time"),
        ((3, 1), "fixed", 3, "nothing was late"),
        ((3, 1, 4), "disorder", 0, "none broken"),
        ((13, 1), "fixed", 0, "none broken"),
    ],
)
def test_without_disorder_nothing_is_determined(
    straggler: Straggler,
    tmp_path: Path,
    seconds: tuple[int, ...],
    reading: str,
    code: int,
    words: str,
) -> None:
    rows = "".join(f"{second},1\n" for second in seconds)
    (tmp_path / "few.csv").write_text(f"event_time,value\n{rows}", encoding="utf-8")
    options = ("--time-unit", "s", "--per", "task", "--max-wait", "1s", "--reading", reading)
    done = straggler("diff", "watermark", "--input", "few.csv", *options, "--system", MODEL)
    assert done.code == code
    assert words in done.out


def test_the_literal_formula_is_broken_and_a_counterexample_is_stored(
    straggler: Straggler, trips: Path
) -> None:
    done = straggler(*FILE, "--per", "task", "--system", f"{VARIANTS}:literal", "--level", "steps")
    assert done.code == 1
    assert "the wait is that of the reading" in done.out
    (stored,) = (trips / "counterexamples").iterdir()
    assert straggler("replay", str(stored), "--system", f"{VARIANTS}:literal").code == 1
    assert straggler("replay", str(stored), "--system", MODEL).code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--control max", ("--control is an option of room slack, not of watermark",)),
        ("--policy tag", ("--policy is an option of room grouping, not of watermark",)),
        ("--reading printed", ("--reading is 'printed'", "disorder, literal, scaled")),
        ("--k 0", ("--k is 0", "an integer > 0")),
        ("--max-wait 80000000000h", ("'80000000000h'",)),
        ("--k 3000000000", ("--max-wait is", "less than 2^63")),
        ("--k 10001", ("--k is 10001", "at most 10,000")),
        ("--clocks all", ("--clocks is 'all'", "arrivals, batches")),
        ("--per device --tasks 3", ("--tasks is 3", "--per device every key has its own")),
        ("--tasks 10001", ("--tasks is 10001", "at most 10,000")),
        ("--slide 1us --window 1s", ("--window 1s and --slide 1us", "1,000,000 windows")),
        ("--upstreams 10001", ("--upstreams is 10001", "<= 10,000")),
        ("--upstreams 2 --clocks batches", ("--clocks is 'batches'", "must be 'arrivals'")),
        ("--upstreams 2 --clocks arrivals --corrections", ("--corrections is True",)),
        ("--insert-every 1s", ("--insert-every is", "with --upstreams 0")),
        ("--idle-after 5s", ("--idle-after is 5s; it has no meaning with --upstreams 0.",)),
        ("--level steps --kinds progress", ("'progress'", "clock, result, late, rejected")),
    ],
)
def test_refusals_are_one_sentence_that_names_the_value(
    straggler: Straggler, trips: Path, arguments: str, words: tuple[str, ...]
) -> None:
    assert_refused(straggler(*FILE, *arguments.split(), "--system", MODEL), *words)


def test_watermarks_from_upstream_are_compared(straggler: Straggler, trips: Path) -> None:
    asked = (*FILE, "--upstreams", "2", "--insert-every", "5s", "--clocks", "arrivals")
    shown = straggler(*asked, "--system", MODEL)
    assert (shown.code, "the wait was the same" in shown.out) == (0, False)
