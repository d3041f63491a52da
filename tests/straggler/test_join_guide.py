"""The example of docs/join-guide.md: two questions about the air, each of another column.

pandas compares every reading of the city with every one of the hills.
"""

import json
import os
import runpy
import shlex
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from model.join.oracle import make_system
from model.vocabulary import Workload
from model.vocabulary.join import Match
from spark_impl.join import status
from straggler import join
from straggler.inputs.inputs import DATA_VARIABLE
from tests.house.repository import ROOT
from tests.straggler.command import PATIENCE_S, Straggler, start
from tests.straggler.test_pages import Command, File, steps_of

HOUR_US = 3_600_000_000
MAX_US = 1 << 62
DATA = os.environ.get(DATA_VARIABLE, "")
Pairs = set[tuple[int, int]]

pytestmark = pytest.mark.skipif(
    not (Path(DATA) / "beijing_pm10.parquet").exists(),
    reason=f"needs the recordings of Beijing in ${DATA_VARIABLE}",
)


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Save the files of the page, make both streams, and return its commands."""
    steps = list(steps_of((ROOT / "docs/join-guide.md").read_text(encoding="utf-8")))
    for each in steps:
        if isinstance(each, File):
            (tmp_path / each.name).write_text(each.text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(DATA_VARIABLE, DATA)
    runpy.run_path("air.py")
    return [each.line for each in steps if isinstance(each, Command)]


def pairs_of_pandas(folder: Path, *days: str, below_us: int = MAX_US) -> tuple[Pairs, Pairs]:
    """Return both answers; ``days`` are the first day and that behind the last one."""
    city, hills = (pd.read_parquet(folder / f"{area}.parquet") for area in ("city", "hills"))
    assert city["pm25"].isna().any(), "no reading is missing"
    if days:
        first_us, end_us = (pd.Timestamp(day).value // 1000 for day in days)
        city, hills = (
            each[(each["event_time"] >= first_us) & (each["event_time"] < min(end_us, below_us))]
            for each in (city, hills)
        )
    both = city.merge(hills, how="cross", suffixes=("_r", "_s"))
    near = (both["event_time_r"] - both["event_time_s"]).abs() <= HOUR_US
    fine = (both["pm25_r"] - both["pm25_s"]).abs() > 100
    coarse = (both["pm10_r"] - both["pm10_s"]).abs() > 150
    chosen = near & fine & (both["station_r"] == "Dongsi"), near & coarse
    ids = [both.loc[rows, ["source_id_r", "source_id_s"]] for rows in chosen]
    one, other = (set(map(tuple, each.itertuples(index=False))) for each in ids)
    return one, other


def test_the_example_asks_what_pandas_answers(
    page: list[str], straggler: Straggler, tmp_path: Path
) -> None:
    assert page[0] == "python air.py"
    (command,) = (line for line in page if line.startswith("straggler diff join"))
    words = shlex.split(command)[3:]
    written = straggler("workload", "join", *words, "--output", "work.jsonl")
    assert written.code == 0, written.err
    workload = Workload.from_json(json.loads(Path("work.jsonl").read_text(encoding="utf-8")))
    trace = make_system()(workload)
    found = [
        {(each.r_id, each.s_id) for each in trace.of(Match) if each.query == name}
        for name, _ in workload.config["queries"]
    ]
    expected = pairs_of_pandas(tmp_path)
    assert tuple(found) == expected
    assert len(trace.of(Match)) == sum(map(len, expected)) > 500
    judged = straggler("diff", "join", *words, "--system", "model.join.oracle:make_system")
    assert judged.code == 0, judged.out + judged.err


def test_spark_answers_the_same(
    page: list[str], spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("straggler.session", lambda _master: nullcontext(spark), raising=False)
    program = (tmp_path / "dust.py").read_text(encoding="utf-8")
    # Java, which is running already, looks for relative paths elsewhere.
    for name in ('"dust"', 'f"{area}.parquet"'):
        program = program.replace(name, f"str(FOLDER / {name})")
    names: dict[str, Any] = {"FOLDER": tmp_path}
    exec(program, names)
    found = join.results(spark, str(tmp_path / "dust")).collect()
    by_query = {
        name: {(each.r_id, each.s_id) for each in found if each.query == name}
        for name in ("fine", "coarse")
    }
    assert (by_query["fine"], by_query["coarse"]) == pairs_of_pandas(tmp_path)
    assert len(found) == sum(map(len, by_query.values()))
    readings = names["fine"].collect()
    assert {(row.r_id, row.s_id) for row in readings} == by_query["fine"]
    assert all(abs(row.r_pm25 - row.s_pm25) > 100 for row in readings)


def test_two_processes_ask_a_chain_that_runs(
    page: list[str],
    spark: SparkSession,
    straggler: Straggler,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each command is a process of its own, but for the chain, and those behind its last epoch."""
    monkeypatch.setattr("straggler.session", lambda _master: nullcontext(spark), raising=False)
    program = (tmp_path / "week.py").read_text(encoding="utf-8")
    # Java, which is running already, looks for relative paths elsewhere.
    places = {"parquet(area)": "parquet(str(FOLDER / area))", ', "air")': ', FOLDER / "air")'}
    for name, place in places.items():
        program = program.replace(name, place)
    steps = page[[line.startswith("straggler diff") for line in page].index(True) + 1 :]
    expected = {"fine": "fine: pairs tuples from epoch 1 on\n"}
    expected["coarse"] = expected["fine"].replace("fine", "coarse")
    for line in steps:
        words = shlex.split(line)
        if words[0] == "python":
            monkeypatch.setattr("sys.argv", words[1:])
            exec(program, {"FOLDER": tmp_path})
        elif words[2] == "submit":
            client = start(tmp_path, *words[1:], scratch=words[4])
            out, err = client.communicate(timeout=PATIENCE_S)
            assert (client.returncode, out) == (0, expected[words[4]]), err
        else:
            done = straggler(*words[1:])
            assert done.code == 0, done.err
    found = status(tmp_path / "air")
    below_us = {each.name: each.complete_us for each in found.queries}
    week = ("2017-01-08", "2017-01-15")
    least_us = pd.Timestamp("2017-01-14").value // 1000
    fine, coarse = (
        pairs_of_pandas(tmp_path, *week, below_us=below_us[name])[at]
        for at, name in enumerate(("fine", "coarse"))
    )
    assert min(below_us.values()) > least_us
    answered, other = pd.read_parquet("fine.parquet"), pd.read_csv("coarse.csv")
    assert set(answered[["r_id", "s_id"]].itertuples(index=False, name=None)) == fine != set()
    assert set(other.itertuples(index=False, name=None)) == coarse != set()
    assert ((answered["r_pm25"] - answered["s_pm25"]).abs() > 100).all()
    past = pd.read_csv("past.csv")
    _, before = pairs_of_pandas(tmp_path, "2017-01-01", "2017-01-08")
    assert set(past.itertuples(index=False, name=None)) == before != set()
