"""Words of all rooms: durations, hashes of keys; what a script asks for, and its depth."""

from datetime import timedelta

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.vocabulary import (
    GroupingConfig,
    JoinConfig,
    SlackConfig,
    WatermarkConfig,
    stable_hash,
    task_of,
)
from model.vocabulary.join import Equi
from model.vocabulary.script.config import ScriptConfig
from model.vocabulary.script.problems import problems
from model.vocabulary.script.tree import (
    Arithmetic,
    Expression,
    Name,
    Number,
    Sensor,
    Statement,
    Union,
    Window,
    Workflow,
)
from properties.oracles.hashing import xxh64

HOUR_US = 3_600_000_000


def test_times_are_given_with_a_unit_or_as_a_timedelta() -> None:
    config = SlackConfig.of(size="6 hours", slide=timedelta(hours=1), gamma_us=5, tasks=4)
    assert config == SlackConfig(6 * HOUR_US, HOUR_US, gamma_us=5, tasks=4)
    assert SlackConfig.of(size=pd.Timedelta("1h"), slide="1h").size_us == HOUR_US
    assert WatermarkConfig.of(size="1h", slide="1h", max_wait="1 hour").max_wait_us == HOUR_US
    chain = JoinConfig.of(window="1 hour", lateness="1 hour", queries=(("q", Equi("key")),))
    assert (chain.window_us, chain.lateness_us) == (HOUR_US, HOUR_US)
    assert GroupingConfig.of(instances=2, latency=["1 ms", timedelta()]).latency_us == (1000, 0)
    for no_duration in (pd.DateOffset(hours=6), pd.to_timedelta(["6h"]), 5):
        with pytest.raises(ValueError, match="must be a text such as '6 hours', or a timedelta"):
            SlackConfig.of(size=no_duration, slide="1h")


def test_a_sensor_is_asked_for_if_an_output_depends_on_it() -> None:
    flow = Workflow(
        "w",
        (
            Statement("all", Union((Sensor("a"), Sensor("b")))),
            Statement("other", Sensor("c")),
            Statement("x", Window("max", Union((Name("all"), Name("all"))), 1, 1)),
            Statement("unused", Union((Sensor("d"), Name("x")))),
        ),
    )
    assert ScriptConfig((flow,), tuple((each, 1) for each in "abcde")).asked_for == {"a", "b"}


def test_depth_is_refused_without_recursion() -> None:
    deep: Expression = Sensor("a")
    for _ in range(20_000):
        deep = Arithmetic("+", deep, Number(1))
    found = [each.sentence for each in problems(Workflow("w", (Statement("x", deep),)))]
    assert found == ["an expression is at most 100 deep: give a part of it a name"]


TEXTS = st.text(max_size=20) | st.integers(0, 100).map(lambda n: "München, 日本 " * n)


@given(TEXTS, st.integers(0, 1 << 63), st.integers(1, 50))
def test_a_hash_is_xxh64_and_a_task_its_remainder(text: str, seed: int, tasks: int) -> None:
    signed = xxh64(text.encode(), seed)
    signed -= (1 << 64) * (signed >= 1 << 63)
    assert stable_hash(text, seed) == signed
    usual = xxh64(text.encode(), 42)
    usual -= (1 << 64) * (usual >= 1 << 63)
    assert task_of(text, tasks) == next(n for n in range(tasks) if (usual - n) % tasks == 0)
