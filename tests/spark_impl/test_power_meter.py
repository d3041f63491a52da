"""A messy file of power meters on Spark, window by window against pandas."""

import math
import random
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession

import straggler
from model.vocabulary.windows import REASON_FUTURE

READINGS, NEGATIVE, BAD = 3_000, 80, ("", "NaN", "inf", "n/a", "1,2")


def messy_lines(seed: int) -> list[str]:
    """Return the lines of a file: late readings, refunds of power, bad values and wrong clocks."""
    draw = random.Random(seed)
    lines = []
    for at in range(READINGS):
        watts = f"{draw.uniform(0, 3_000):.2f}"
        if at % (READINGS // NEGATIVE) == 0:
            watts = f"-{draw.uniform(0, 500):.2f}"
        elif draw.random() < 0.02:
            watts = draw.choice(BAD)
        seconds = at - draw.choice([0, 0, 0, 5, 40])
        time = (pd.Timestamp("2024-05-01", tz="UTC") + pd.Timedelta(seconds=seconds)).isoformat()
        if at % 700 == 350:
            time = draw.choice(["yesterday", "", "2024-02-30T00:00:00Z"])
        lines.append(f'meter-{at % 3};{time};"{watts}"')
    lines.insert(1_000, "meter-1;2031-01-01T00:00:00Z;7")
    return lines


def test_each_window_is_that_of_pandas_or_says_what_it_lacks(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "meters.csv"
    path.write_text("\n".join(messy_lines(seed)) + "\n", encoding="utf-8")
    stream = spark.readStream.option("sep", ";").schema("meter string, at string, watts string")
    begun = straggler.over(stream.csv(str(tmp_path / "in")), event_time="at", key="meter")
    query = begun.window("1 minute").sum("watts").store_in(tmp_path / "kept")
    query.flush()

    names = ["meter", "at", "watts"]
    frame = pd.read_csv(path, sep=";", names=names, dtype=str, keep_default_na=False)
    times = pd.to_datetime(frame["at"], utc=True, errors="coerce", format="ISO8601")
    frame["watts"] = pd.to_numeric(frame["watts"], errors="coerce").replace(math.inf, math.nan)
    is_placed = times.notna() & (times < "2030")
    frame = frame[is_placed].assign(start=times[is_placed].dt.floor("1min"))
    right = frame.groupby(["meter", "start"])["watts"].agg(["sum", "count", "size"])

    found = {
        (row.key, pd.Timestamp(row.start_us, unit="us", tz="UTC")): row
        for row in query.results().collect()
    }
    assert found.keys() == {*right.index}
    states = {"exact": 0, "incomplete": 0}
    for place, expected in right.iterrows():
        row, lacking = found[place], int(expected["size"] - expected["count"])
        assert (row.n, row.n_refused) == (expected["count"], lacking), place
        assert row.value == pytest.approx(expected["sum"], rel=1e-12), place
        assert row.state == ("incomplete" if lacking else "exact")
        states[row.state] += 1
    assert min(states.values()) > 20, states

    refused = query.rejected().collect()
    assert sum(row.reason == REASON_FUTURE for row in refused) == 1
    unplaced = READINGS + 1 - int(is_placed.sum())
    assert len(refused) == unplaced + int(frame["watts"].isna().sum())
