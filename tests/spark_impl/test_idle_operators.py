"""Operators upstream that fall silent (docs/watermark.md, section 11)."""

import random
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from model.vocabulary import Event, WatermarkConfig, Workload, task_of
from model.vocabulary.watermark import Inserted
from model.vocabulary.windows import Result
from spark_impl.watermark import run_in_process
from spark_impl.watermark.upstream import least_of_spans
from tests.spark_impl import brute_upstream

FAST, SILENT = next(
    pair for pair in combinations("abc", 2) if len({task_of(k, 2) for k in pair}) == 2
)
"""Two keys that pass different operators."""
LAST = np.iinfo(np.int64).max


def workload(*arrivals: tuple[str, int, int], **config: int) -> Workload:
    """Return the workload of keys, event times and arrival times."""
    events = tuple(Event(n, n, key, ts, 1.0, at) for n, (key, ts, at) in enumerate(arrivals))
    given = {"size_us": 10, "slide_us": 10, "max_wait_us": 0, "upstreams": 2, **config}
    return Workload("watermark", events, given, (1, 3), flush=False)


def insertions(case: Workload) -> list[tuple[int, int]]:
    """Return position and watermark of each insertion."""
    return sorted((step.seq, step.wm_us) for step in run_in_process(case).of(Inserted))


def test_an_operator_that_was_never_passed_holds_nothing_back_once_it_is_idle() -> None:
    arrivals = ((FAST, 5, 100), (FAST, 15, 110), (FAST, 25, 111), (FAST, 35, 112))
    assert insertions(workload(*arrivals)) == []
    case = workload(*arrivals, idle_after_us=10)
    assert insertions(case) == [(2, 25), (3, 35)]
    assert [result.start_us for result in run_in_process(case).of(Result)] == [0, 10, 20]


def test_a_silent_operator_holds_back_again_when_it_is_passed_but_nothing_falls() -> None:
    arrivals = (
        (SILENT, 3, 0),
        (FAST, 30, 1),
        (FAST, 40, 11),
        (SILENT, 5, 12),
        (FAST, 50, 13),
        (SILENT, 45, 14),
    )
    # idle at 11 > 0 + 10: then 40; SILENT is back with 5, and 45 is the next one above 40
    assert insertions(workload(*arrivals, idle_after_us=10)) == [(1, 3), (2, 40), (5, 45)]


def test_even_the_operator_of_an_arrival_may_be_idle_before_it_passes() -> None:
    arrivals = ((FAST, 5, 0), (SILENT, 4, 1), (FAST, 9, 60), (FAST, 19, 61), (FAST, 20, 70))
    given = {"insert_every_us": 10, "idle_after_us": 20}
    # at 60 all are idle, so nothing is inserted; at 70 only FAST is awake
    assert insertions(workload(*arrivals, **given)) == [(4, 19)]


def test_spans_are_those_of_a_loop() -> None:
    draw = random.Random(1)
    for _ in range(200):
        size = draw.randint(1, 40)
        spans = [
            (draw.randrange(size), draw.randrange(size + 1), draw.randint(-9, 9))
            for _ in range(draw.randint(0, 12))
        ]
        begin, end, value = np.array(spans, np.int64).reshape(-1, 3).T
        inside = [[v for b, e, v in spans if b <= place < e] for place in range(size)]
        expected = [min(each, default=LAST) for each in inside]
        assert least_of_spans(size, begin, end, value).tolist() == expected


def drawn(seed: int) -> Workload:
    """Return arrivals of which some operators fall silent for a while."""
    draw = random.Random(seed)
    upstreams = draw.choice([1, 2, 3, 5])
    keys = [str(n) for n in range(6)]
    events, now = [], 0
    silent = set(draw.sample(keys, 3))
    for seq in range(draw.randint(1, 60)):
        now += draw.choice([0, 1, 3, draw.randint(0, 30)])
        if draw.random() < 0.05:
            silent = set(draw.sample(keys, draw.randint(0, 5)))
        key = draw.choice([each for each in keys if each not in silent])
        at = now - draw.choice([0, 0, 2, 15])
        events.append(Event(seq, seq, key, max(0, now - draw.randint(0, 12)), 1.0, at))
    config = {
        "size_us": 7,
        "slide_us": 7,
        "max_wait_us": draw.choice([0, 5, 20]),
        "k": draw.choice([1, 2, 5]),
        "tasks": draw.choice([1, 3]),
        "upstreams": upstreams,
        "insert_every_us": draw.choice([0, 0, 1, 10]),
        "idle_after_us": draw.choice([None, 1, 5, 20, 1 << 40]),
    }
    cuts = sorted(draw.sample(range(1, len(events)), min(3, len(events) - 1)))
    return Workload("watermark", tuple(events), config, tuple(cuts), flush=False)


def test_insertions_are_those_of_the_specification() -> None:
    seen = Counter[str]()
    for seed in range(600):
        case = drawn(seed)
        config = WatermarkConfig.from_json(case.config)
        expected = brute_upstream.insertions(config, case.arrivals)
        found = sorted(step._replace(batch=0) for step in run_in_process(case).of(Inserted))
        assert found == expected, seed
        without = WatermarkConfig.from_json({**case.config, "idle_after_us": None})
        held = brute_upstream.insertions(without, case.arrivals)
        seen["idle changes them"] += held != expected
        seen["only idle lets one in"] += bool(expected) and not held
        periodic = bool(config.insert_every_us)
        seen["periodic, and idle changes them"] += periodic and held != expected
    assert len(seen) == 3
    assert min(seen.values()) > 40, seen


@pytest.mark.parametrize("far", [1 << 62, (1 << 63) - 1])
def test_arrival_times_at_the_ends_of_64_bits_do_not_overflow(far: int) -> None:
    arrivals = ((FAST, 5, -far), (SILENT, 6, -far), (FAST, 20, far), (FAST, 30, far))
    case = workload(*arrivals, idle_after_us=(1 << 61) - 1)
    config = WatermarkConfig.from_json(case.config)
    expected = [(step.seq, step.wm_us) for step in brute_upstream.insertions(config, case.arrivals)]
    assert insertions(case) == expected == [(1, 5), (2, 20), (3, 30)]
