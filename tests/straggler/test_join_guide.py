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
from straggler import join
from straggler.inputs.inputs import DATA_VARIABLE
from tests.house.repository import ROOT
from tests.straggler.command import Straggler
from tests.straggler.test_pages import Command, File, steps_of

HOUR_US = 3_600_000_000
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


def pairs_of_pandas(folder: Path) -> tuple[Pairs, Pairs]:
    city, hills = (pd.read_parquet(folder / f"{area}.parquet") for area in ("city", "hills"))
    both = city.merge(hills, how="cross", suffixes=("_r", "_s"))
    near = (both["event_time_r"] - both["event_time_s"]).abs() <= HOUR_US
    fine = (both["pm25_r"] - both["pm25_s"]).abs() > 100
    coarse = (both["pm10_r"] - both["pm10_s"]).abs() > 150
    chosen = near & fine & (both["station_r"] == "Dongsi"), near & coarse
    ids = [both.loc[rows, ["source_id_r", "source_id_s"]] for rows in chosen]
    one, other = (set(map(tuple, each.itertuples(index=False))) for each in ids)
    assert city["pm25"].isna().any(), "no reading is missing"
    return one, other


def test_the_example_asks_what_pandas_answers(
    page: list[str], straggler: Straggler, tmp_path: Path
) -> None:
    program, *_, command = page
    assert program == "python air.py"
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
