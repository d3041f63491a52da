"""Workers in process: docs/script.md word by word, whatever the micro-batches are."""

import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from math import isnan, sqrt
from typing import Any

import numpy as np
import pytest

from model.vocabulary import Event, ScriptConfig, Workload
from model.vocabulary.script.config import REASON_LATE, WORDS, Hosted, Rejected, Result, Undefined
from model.vocabulary.script.tree import Sensor, Statement, Union, Window, Workflow
from spark_impl.script import admission, compile_plan, run_in_process
from spark_impl.script.admission import Arrivals, Clock, waiting_of
from spark_impl.script.arithmetic import Folded, Scaled, Tuples, aggregate, fold, to_scaled
from spark_impl.script.encoding import decode_state, encode_state
from spark_impl.script.kernel import Given, Log, State, advance
from spark_impl.script.slices import Slices
from tests.spark_impl import brute_script
from tests.spark_impl.script_cases import random_config, random_workload


def test_equals_the_specification() -> None:
    seen: Counter[str] = Counter()
    for seed in range(50):
        config = random_config(seed)
        workload = random_workload(seed, config, size=20)
        found, expected = run_in_process(workload), brute_script.run(workload)
        for word in WORDS:
            if word is not Hosted:
                assert found.of(word) == expected.of(word), (seed, word.__name__)
                seen[word.__name__] += len(expected.of(word))
        seen["messages"] += compile_plan(config).exchanges
        seen["in part"] += not workload.flush and bool(len(expected))
    assert min(seen[name] for name in ("Result", "Undefined", "Rejected")) > 20
    assert min(seen[name] for name in ("messages", "in part")) > 5


def test_micro_batches_workers_and_ways_of_cutting_change_nothing() -> None:
    compared = 0
    for seed in range(100, 110):
        config = random_config(seed)
        workload = random_workload(seed, config, size=25)
        one = run_in_process(workload.with_(cuts=()))
        each = run_in_process(workload.with_(cuts=tuple(range(1, 25))))
        assert list(one.steps()) == list(each.steps())
        for workers in (1, 4):
            more = replace(config, workers=workers, cap_percent=100).to_json()
            other = run_in_process(workload.with_(config=more))
            for word in WORDS:
                assert word is Hosted or other.of(word) == one.of(word)
                compared += word is not Hosted and len(one.of(word))
    assert compared > 300


def following(seed: int) -> Workload:
    """Return a case with one sensor that repeats many tuples, and a watermark by its disorder."""
    draw = random.Random(f"following {seed}")
    config = ScriptConfig(
        (Workflow("w", (Statement("s", Window("sum", Sensor("A"), 4, 2)),)),),
        (("A", 1),),
        lateness_us=draw.choice([0, 5_000, 20_000]),
        watermark=draw.choice(["disorder", "scaled"]),
        cluster=draw.choice([1, 2, 3, 7, 50]),
    )
    events: list[Event] = []
    for seq in range(60):
        ts = max(0, 1_000 * seq - draw.choice([0, 0, 1_500, 9_000, 30_000]))
        value = draw.choice([1.0, 2.0, 3.0, 4.0, 5.0, float("nan")])
        fresh = Event(seq, seq, "A", ts, value, 0)
        again = draw.choice(events[-8:] or [fresh])
        events.append(again._replace(seq=seq) if draw.random() < 0.4 else fresh)
    cuts = tuple(sorted(draw.sample(range(61), draw.choice([0, 3, 12]))))
    return Workload("script", tuple(events), config.to_json(), cuts, flush=seed % 4 > 0)


def test_watermark_that_follows_disorder(monkeypatch: pytest.MonkeyPatch) -> None:
    guesses: list[int] = []
    follow, guess = admission._followed, admission._by_disorder

    def counted_guess(*given: Any) -> Any:
        guesses.append(0)
        return guess(*given)

    def counted_follow(*given: Any) -> Any:
        guesses[-1] += 1
        return follow(*given)

    monkeypatch.setattr(admission, "_by_disorder", counted_guess)
    monkeypatch.setattr(admission, "_followed", counted_follow)
    seen: Counter[str] = Counter()
    for seed in range(60):
        workload = following(seed)
        found, expected = run_in_process(workload), brute_script.run(workload)
        fixed = brute_script.run(workload.with_(config={**workload.config, "watermark": "fixed"}))
        late = {each.seq for each in expected.of(Rejected) if each.reason == REASON_LATE}
        for word in (Result, Rejected):
            assert found.of(word) == expected.of(word), (seed, word.__name__)
        times = [event.event_time_us for event in workload.arrivals]
        seen["late only here"] += len({*expected.of(Rejected)} - {*fixed.of(Rejected)})
        again = {event.seq for event in workload.arrivals if event.source_id < event.seq}
        seen["late and redelivered"] += len(again & late)
        seen["in though behind"] += sum(
            ts < max(times[:n], default=0) for n, ts in enumerate(times) if n not in late
        )
    assert min(seen.values()) > 50
    assert sum(each > 2 for each in guesses) > 5, "the second guess was always right"


def test_sensors_have_watermarks_of_their_own_wherever_they_are_hosted() -> None:
    compared = late = 0
    for seed in range(12):
        config = random_config(seed)
        config = replace(config, lateness_us=15_000, watermark="scaled", cluster=4)
        workload = random_workload(seed, config, size=60)
        expected = brute_script.run(workload)
        late += len(expected.of(Rejected))
        for workers in (1, 3):
            split = replace(config, workers=workers, cap_percent=100)
            compared += max(map(len, compile_plan(split).hosts.values()), default=0) > 1
            found = run_in_process(workload.with_(config=split.to_json()))
            for word in (Result, Undefined, Rejected):
                assert found.of(word) == expected.of(word), (seed, workers, word.__name__)
    assert compared > 3, "no sensor had several workers"
    assert late > 30


def random_values(seed: int) -> np.ndarray:
    draw = np.random.default_rng(seed)
    kind = [1, 0.1, 1e-7, 2.0**-30, 1e300][seed % 5]
    values = np.round(draw.normal(size=30) * 1000) * kind
    if seed % 7 == 0 and kind < 1e300:
        values[::3] *= 1e17
    if seed % 11 == 0:
        values[5] = 5e-324
    return values


@pytest.mark.parametrize("op", ["sum", "avg", "stddev", "count", "max", "min"])
def test_sums_are_rounded_once(op: str) -> None:
    large = 0
    for seed in range(40):
        values = random_values(seed)
        starts = np.array([0, 1, 4, 17])
        folded = fold(values, starts, squares=True)
        large += folded.squares.integers.dtype == object
        parts = np.split(values, starts[1:])
        expected = [brute_script.aggregate(op, part.tolist()) for part in parts]
        found = aggregate(op, folded)
        for ours, theirs in zip(found.tolist(), expected, strict=True):
            assert ours == theirs or (isnan(ours) and theirs == np.inf), (seed, op)
    assert 5 < large < 35, "one way to add was never taken"


def test_numbers_are_multiples_of_their_unit() -> None:
    for seed in range(40):
        values = random_values(seed)
        numbers, unit = to_scaled(values)
        again = [Fraction(int(each)) * Fraction(2) ** unit for each in numbers]
        assert again == [Fraction(each) for each in values.tolist()]


def test_sums_beyond_float64_are_no_results() -> None:
    ones = np.array([1])
    empty = np.empty(0)
    huge = Folded(ones, Scaled(np.array([1 << 1024], object), 0), Scaled(ones, 0), empty, empty)
    assert isnan(aggregate("sum", huge)[0])
    fine = huge._replace(n=np.array([4]))
    assert aggregate("avg", fine)[0] == 2.0**1022


def test_state_is_read_as_it_was_written() -> None:
    sources = Union((Sensor("A"), Sensor("B")))
    statements = (Statement("s", Window("stddev", sources, 4, 2)),)
    config = ScriptConfig((Workflow("w", statements),), (("A", 1), ("B", 1)), lateness_us=2_000)
    moving = replace(config, watermark="disorder", cluster=2)
    share = compile_plan(config).share(0)
    rows = np.arange(3)
    given = Arrivals(rows, rows, rows * 3_000, np.array([0.1, 1e200, -3.0]))
    for values in (given.values, np.array([1.0, 2.0, 3.0])):
        arrivals = {0: given._replace(values=values), 1: given._replace(values=-values)}
        state, _ = advance(share, waiting_of(config), State(), Given(arrivals))
        assert plain(decode_state(share, encode_state(state))) == plain(state)
        assert state.slices[2].starts.tolist() == [2_000]
        back = {0: arrivals[0]._replace(ts=rows[::-1] * 3_000)}
        state, _ = advance(share, waiting_of(moving), State(), Given(back))
        assert plain(decode_state(share, encode_state(state))) == plain(state)
        assert (state.clocks[0].inv, state.clocks[0].cluster.tolist()) == (1, [3_000, 0])


def plain(state: State) -> object:
    """Return a state without arrays, which cannot be compared at once."""

    def inside(part: object) -> object:
        if isinstance(part, np.ndarray):
            return part.tolist()
        if isinstance(part, dict):
            return {key: inside(each) for key, each in sorted(part.items())}
        if isinstance(part, Log | Slices | Folded | Scaled | Tuples | Clock):
            return [inside(each) for each in part]
        return part

    return [inside(dict(part)) for part in state[:-2]], state.timeline, state.seq


def test_state_holds_nothing_that_is_over() -> None:
    """A window of 4 ms over a sensor whose watermark follows at 2 ms."""
    config = ScriptConfig(
        (Workflow("w", (Statement("s", Window("sum", Sensor("A"), 4, 2)),)),),
        (("A", 1),),
        lateness_us=2_000,
    )
    share, state = compile_plan(config).share(0), State()
    sizes = set()
    for batch in range(50):
        rows = np.arange(100) + 100 * batch
        arrivals = Arrivals(rows, rows, rows * 100, np.ones(100))
        state, found = advance(share, waiting_of(config), state, Given({0: arrivals}))
        if batch > 5:
            sizes.add((len(state.logs[0].tuples.ts), len(state.slices[0].starts)))
            assert found.results[1].values.tolist() == [40.0] * 5
    assert sizes == {(21, 2)}


def test_deviation_is_the_root_of_the_rounded_variance() -> None:
    statements = (Statement("s", Window("stddev", Sensor("A"), 10, 10)),)
    config = ScriptConfig((Workflow("w", statements),), (("A", 1),))
    values = (0.1, 0.2, 0.4)
    events = tuple(Event(n, n, "A", n, value, n) for n, value in enumerate(values))
    (result,) = run_in_process(Workload("script", events, config.to_json())).of(Result)
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / 3
    assert result.value == sqrt(float(sum((each - mean) ** 2 for each in exact) / 3))
