"""Words that all rooms share: windows, hashing, workloads, traces, numbers."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.vocabulary import (
    Event,
    Fault,
    Trace,
    WindowSpec,
    Workload,
    stable_hash,
    task_of,
)
from model.vocabulary.grouping import WORDS as GROUPING
from model.vocabulary.join import WORDS as JOIN
from model.vocabulary.script.config import WORDS as SCRIPT
from model.vocabulary.settings import PlainData, Setting
from model.vocabulary.slack import WORDS
from model.vocabulary.trace import TraceReader, kind_of
from model.vocabulary.watermark import WORDS as WATERMARK
from model.vocabulary.windows import Final, Late, Result

SPECS = st.builds(WindowSpec, st.integers(1, 30), st.integers(1, 30))
TIMES = st.integers(-100, 200)


@given(SPECS, TIMES)
def test_the_windows_of_an_event_are_those_that_contain_it(spec: WindowSpec, ts_us: int) -> None:
    containing = [j for j in range(-400, 400) if spec.start_us(j) <= ts_us < spec.end_us(j)]
    assert list(spec.indices(ts_us)) == containing


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Spark: spark.sql("select xxhash64('')") and so on.
        ("", -7444071767201028348),
        ("a", -8582455328737087284),
        ("München", -7909628160217183360),
    ],
)
def test_hashes_equal_those_of_spark(text: str, expected: int) -> None:
    assert stable_hash(text) == expected


@given(st.text(max_size=20), st.integers(1, 50))
def test_a_task_is_a_remainder(key: str, tasks: int) -> None:
    assert 0 <= task_of(key, tasks) < tasks
    assert (stable_hash(key) - task_of(key, tasks)) % tasks == 0


# -------------------------------------------------------------------------------------- workloads


EVENTS = tuple(
    Event(seq, 10 + seq, "Zürich", 1_000 + seq, seq / 4, 2_000 + seq) for seq in range(5)
)
WORKLOAD = Workload(
    "slack",
    EVENTS,
    {"size_us": 10, "slide_us": 5},
    cuts=(2, 2, 4),
    faults=(Fault("kill", 1),),
    seed=7,
    flush=False,
    name="five",
)


def test_a_workload_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "workload.json"
    WORKLOAD.write(path)
    data = json.loads(path.read_text(encoding="utf-8"))
    assert Workload.from_json(data) == WORKLOAD
    assert Workload.from_json(WORKLOAD.to_json()).name == "five"
    assert len([line for line in path.read_text(encoding="utf-8").splitlines() if "Z" in line]) == 5


def test_batches_are_runs_of_arrivals_and_never_empty() -> None:
    assert [len(batch) for batch in WORKLOAD.batches()] == [2, 2, 1]
    assert [e for batch in WORKLOAD.batches() for e in batch] == list(EVENTS)
    assert list(Workload("slack", (), {}).batches()) == []


@pytest.mark.parametrize("cuts", [(3, 2), (-1,), (6,)])
def test_cuts_must_increase_within_the_arrivals(cuts: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="do not increase"):
        WORKLOAD.with_(cuts=cuts)


@pytest.mark.parametrize(
    "change", [{"version": 2}, {"arrivals": [[1, 2]]}, {"faults": 3}, {"config": None}]
)
def test_an_invalid_workload_is_refused_in_one_sentence(change: dict[str, PlainData]) -> None:
    with pytest.raises(ValueError, match=r"workload|no arrival"):
        Workload.from_json({**WORKLOAD.to_json(), **change})


# ----------------------------------------------------------------------------------------- traces


STEPS = (
    Final(0, 5, "b", 2.0, 1, 0, True),
    Result(0, 5, "ä", 0, 0.1 + 0.2, 1, 0, 20),
    Late(0, 0, "a", 3, 4, 1),
    Late(0, 0, "a", 3, 4, 0),
)


def test_a_trace_is_in_canonical_order() -> None:
    trace, other = Trace("one", STEPS), Trace("two", reversed(STEPS))
    assert list(trace.steps()) == list(other.steps())
    assert trace.digest() == other.digest()
    assert trace.of(Late) == (STEPS[3], STEPS[2])


def test_steps_of_different_kinds_are_different_even_if_their_fields_are_equal() -> None:
    left: tuple[Any, ...] = (0, 5, "a", 1, 1, 1, 1)
    assert len(Trace("both", [WORDS[7](*left), WORDS[9](*left)])) == 2


def test_a_trace_is_read_as_it_was_written() -> None:
    trace = Trace("someone", STEPS)
    reader = TraceReader(WORDS)
    *_, again = map(reader.feed, trace.lines())
    assert again is not None
    assert (again.producer, again.digest()) == ("someone", trace.digest())
    assert again.of(Final)[0].exact is True


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "a line is empty"),
        ("nonsense", "'nonsense' is no JSON object"),
        ("[1]", "no JSON object"),
        ('{"kind":"final","task":0}', "the field 'start_us' of a final step is missing"),
        ('{"kind":"unheard"}', "kind is 'unheard'; it must be one of result, late"),
        ('{"task":0}', "the field 'kind' is missing"),
        ('{"kind":"late","tsk":0}', "no field 'tsk', .* did you mean 'task'"),
        ('{"end":1}', "end is 1; it must be 0, the number of steps"),
    ],
)
def test_a_line_that_is_no_step_is_refused(line: str, message: str) -> None:
    reader = TraceReader(WORDS)
    reader.feed('{"trace":1,"producer":"x"}')
    with pytest.raises(ValueError, match=message):
        reader.feed(line)


@pytest.mark.parametrize("words", [GROUPING, JOIN, SCRIPT, WORDS, WATERMARK])
def test_kinds_have_different_names(words: tuple[type, ...]) -> None:
    assert len({kind_of(word) for word in words}) == len(words)


# --------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize("value", [0.05, 1e-15, 1e22, 12_345_678.0, 200_000.0, 7])
def test_a_number_reads_back_as_it_was_written(value: float) -> None:
    setting = Setting(kind=float, name="x")
    assert setting.read(setting.write(value)) == value


def test_a_number_beyond_all_floats_is_refused_or_taken_without_a_crash() -> None:
    Setting(kind=float, name="x").check(10**400)
    with pytest.raises(ValueError, match=r"^x is .*; it must be a finite number <= 1"):
        Setting(kind=float, name="x", at_most=1).check(10**400)
