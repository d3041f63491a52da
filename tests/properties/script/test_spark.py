"""Promise 6 of docs/script.md, in Spark itself: sets of scripts on packs of generated streams.

What ``straggler script run`` writes is held to the model, too.

``properties/test_script.py`` has many more cases, without Spark.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from model.script import run as reference
from model.script.claims import CASES, judge, sensor_groups
from model.vocabulary import Fault, ScriptConfig, Trace, Workload
from model.vocabulary.script.config import Rejected, Result, Undefined
from properties import profiles
from properties.stream_packs import collect
from spark_impl.script import run_workloads, system
from spark_impl.script.query import ScriptQuery
from straggler.cli import main as cli
from straggler.cli import script_run
from straggler.inputs.tables import Columns
from straggler.rooms.script import inputs
from straggler.rooms.script.language import parse
from straggler.rooms.script.queries import config_of
from straggler.strategies.script import SENSORS, cases, configs
from tests.straggler.agreement import script_differences as differences

BATCHES = 2
"""Number of cuts of a stream; few, as a micro-batch takes a second, or two if workers send."""
STREAMS = profiles.choose(16, nightly=125)
"""Number of streams in a pack."""
FAULTS = (Fault("restart", 0), Fault("kill", 1))
SCRIPTS = {
    "shared": """
        mean = avg("8MD1-AZ", 4, 2)
        both = max(union("8MD1-AZ", "8MD2-A", "8MD1-AZ"), 8, 4)
        never = mean / (both - both)
        peak = max(mean, 12, 4)
        """,
    "split": """
        mean = stddev("8MD1-AZ", 6, 4)
        same = avg("8MD1-AZ", 4, 2)
        total = sum(union("8MD2-A", "8MD3-A"), 3, 2)
        most = max(total, same - mean, "8MD3-A")
        """,
    "apart": """
        gaps = count("8MD3-A", 2, 8)
        near = "8MD3-A" - "ü 4"
        wide = sum("ü 4", 47, 8)
        """,
    "mixed": """
        low = min("8MD1-AZ", 4, 2)
        mid = avg(low, "8MD3-A")
        near = min(sum(low, mid), "8MD3-A")
        ratio = (low + 3) * mid / 4
        """,
}
PER_HOUR = (3_600, 7_200, 3_600, 3_600_000, 60)
"""Settings with so many tuples of one sensor that its long windows are cut at their edges."""
TRIED = 100
"""Most sets of scripts that are drawn for one with several components."""


def written() -> ScriptConfig:
    """Return scripts with every kind of node, on three workers that wait by disorder."""
    flows = tuple(parse(text, name, SENSORS) for name, text in SCRIPTS.items())
    sensors = tuple(zip(SENSORS, PER_HOUR, strict=True))
    return ScriptConfig(
        flows,
        sensors,
        workers=3,
        lateness_us=4_000,
        cap_percent=100,
        watermark="disorder",
        cluster=4,
        idle_after_us=10_000,
    )


def draw_apart(seed: int) -> ScriptConfig:
    """Draw scripts whose computations fall into components, for several workers."""
    for config in collect(configs(), TRIED, seed):
        if config.workers > 1 and len(sensor_groups(config)) > 1:
            return config
    pytest.fail(f"undetermined: all of {TRIED} sets of scripts are one component")


@pytest.fixture(scope="module")
def packs(seed: int) -> Sequence[Mapping[str, Workload]]:
    """Draw streams for the scripts above, and other streams for a drawn set of scripts."""
    streams = collect(cases(), 2 * STREAMS, seed)
    asked = (written(), streams[:STREAMS]), (draw_apart(seed), streams[STREAMS:])
    return [pack_of(config, own) for config, own in asked]


def pack_of(config: ScriptConfig, streams: Sequence[Workload]) -> dict[str, Workload]:
    """Return a pack of the same scripts on all streams."""
    named = ((f"case-{number}", case) for number, case in enumerate(streams))
    given = config.to_json()
    return {
        name: case.with_(config=given, cuts=case.cuts[:BATCHES], name=name) for name, case in named
    }


class LeftRunning(ScriptQuery):
    """A query that is started and left alone until it has nothing more to do."""

    def run_available(self) -> None:
        """Process everything that is in the source now, as files come."""
        running = self.start()
        try:
            running.processAllAvailable()
        finally:
            running.stop()
            running.awaitTermination()


@profiles.except_in_dev()
def test_a_query_that_is_left_running_does_what_the_model_does(
    spark: SparkSession,
    packs: Sequence[Mapping[str, Workload]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(system, "ScriptQuery", LeftRunning)
    traces = run_workloads(spark, packs[0], tmp_path)
    for name, case in packs[0].items():
        assert not differences(case, traces[name]), name
    assert any(trace.of(Result) for trace in traces.values())


def run(spark: SparkSession, given: Mapping[str, Workload], folder: Path) -> Mapping[str, Trace]:
    return run_workloads(spark, given, folder)


def test_packs_on_spark_do_what_the_model_does(
    spark: SparkSession, packs: Sequence[Mapping[str, Workload]], tmp_path: Path
) -> None:
    """Interrupted twice on the way: restarts and replayed micro-batches change nothing."""
    guards = Counter[str]()
    for number, pack in enumerate(packs):
        assert max(len(list(case.batches())) for case in pack.values()) > 2
        crashed = {name: case.with_(faults=FAULTS) for name, case in pack.items()}
        traces = run(spark, crashed, tmp_path / f"pack-{number}")
        for name, case in pack.items():
            assert not differences(case, traces[name]), name
            guards.update(judge(case, traces[name]).guards)
    for guard in CASES:
        assert guards[guard], f"there were no {guard}"


# -------------------------------------------------------------------------------------- script run

TUPLES = 60
MINE = """
mean = avg(union("l", "r"), 4_000, 2_000)
apart = "l" - mean
never = mean / (apart - apart)
"""
ASK = ("--input", "readings.csv", "--key", "sensor", "--event-time", "at", "--time-unit", "s")


def write_readings(folder: Path) -> None:
    """Write readings of three sensors: no script reads the third, every seventh is 12 s late."""
    late = (n // 3 - (12 if n % 7 == 0 and n > 40 else 0) for n in range(TUPLES))
    rows = [f"{'lrx'[n % 3]},{at_s},{n % 5}" for n, at_s in enumerate(late)]
    (folder / "readings.csv").write_text("\n".join(["sensor,at,value", *rows]), encoding="utf-8")
    (folder / "mine.script").write_text(MINE, encoding="utf-8")


@profiles.except_in_dev()
def test_results_that_are_written_are_those_of_the_model(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    @contextmanager
    def running(_master: str | None) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(script_run, "open_session", running)
    monkeypatch.chdir(tmp_path)
    write_readings(tmp_path)
    ask = ["mine.script", *ASK, "--lateness", "5s", "--workers", "2"]
    assert cli.main(["script", "run", *ask, "--output", "found.csv"]) == 0
    output = capsys.readouterr().out
    network = inputs.load("readings.csv", 0, Columns("at", key="sensor", time_unit="s"), None)
    flow = parse(MINE, "mine", network.per_hour)
    config = config_of([flow], network, workers=2, lateness_us=5_000_000)
    expected = reference(Workload("script", network.events, config.to_json()))
    with (tmp_path / "found.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    found = [
        Result(row["workflow"], row["name"], stamp_us(row["time"]), float(row["value"]))
        for row in rows
    ]
    assert sorted(found) == list(expected.of(Result))
    assert [row["time"] for row in rows] == sorted(row["time"] for row in rows)
    late, never = len(expected.of(Rejected)), len(expected.of(Undefined))
    assert min(late, never, len(found)) > 0
    assert f"{len(found)} results, {never} times without one; of 60 tuples {late} came" in output
    assert "20 nobody asked for" in output
    assert cli.main(["script", "run", *ask, "--explain"]) == 0
    assert_explained(capsys.readouterr().out)
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "found.csv",
        "mine.script",
        "readings.csv",
    ]


def assert_explained(output: str) -> None:
    """Assert that ``output`` shows the graph, the placement and Spark's plan of the one query."""
    assert re.search(r'avg\(union\("l", "r"\), 4_000, 2_000\) +mine.mean +1,800 +[01]', output)
    assert re.search(r'union\("l", "r"\) +2_000 ms', output)
    assert "4 computations are written, 4 are made." in output
    assert "Dropped: x.\n" in output
    assert "Asked for: 2 of 3 sensors." in output
    assert output.count("TransformWithStateInPySpark") == 1
    assert re.search(r"Exchange hashpartitioning\(task_slot#\d+, \d+\)", output)
    assert "history" in output
    assert "/tmp" not in output


def stamp_us(text: str) -> int:
    moment = datetime.fromisoformat(text)
    return round(moment.timestamp()) * 1_000_000 - (1_000 if moment.microsecond else 0)
