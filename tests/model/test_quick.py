"""Several arrivals at once amount to one after the other: ``quick`` of slack and watermark."""

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from model.slack.machine import Task as SlackTask
from model.slack.quick import Quick as SlackQuick
from model.vocabulary import Event, SlackConfig, Step, WatermarkConfig
from model.vocabulary.answers import Late, Rejected, Result
from model.vocabulary.slack import Judged
from model.vocabulary.watermark import Clock
from model.watermark.machine import Task as WatermarkTask
from model.watermark.quick import Quick as WatermarkQuick
from model.windows.passage import Passage, Passing

AnyTask = SlackTask | WatermarkTask
SEEDS = range(300)


def stream(random: Random) -> list[Event]:
    """Calm and storm by turns, refused values, redeliveries, now and then one from the future."""
    events: list[Event] = []
    for seq in range(random.choice((5, 40, 120))):
        now_us = 1_000 + 2 * seq
        if events and random.random() < 0.05:
            again = random.choice(events)
            events.append(again._replace(seq=seq, arrival_us=now_us))
            continue
        delay_us = random.choice((0, 0, 1, 3, 25)) if seq // 20 % 2 else random.choice((0, 1))
        event_us = now_us - delay_us + 60 * (random.random() < 0.01)
        value = random.choice((1.0, 2.0, 5.0, 8.0))
        if random.random() < 0.03:
            value = random.choice((-1.0, float("nan"), float("inf"), 0.0))
        events.append(Event(seq, seq, random.choice("ab"), event_us, value, now_us))
    return events


def shared(random: Random) -> dict[str, Any]:
    return {
        "size_us": random.choice((5, 10, 12, 40)),
        "slide_us": random.choice((3, 5, 10, 15)),
        "aggregate": random.choice(("sum", "avg", "max", "median")),
        "keyed": random.random() < 0.5,
        "feedback_us": random.choice((None, 0, 7)),
        "max_future_us": random.choice((None, 20)),
        "dedup": random.random() < 0.7,
    }


def slack_task(random: Random) -> SlackTask:
    settings = {
        **shared(random),
        "control": random.choice(("conformal", "fixed", "max", "pd", "pd-clamped")),
        "lambda_thr": random.choice((0.5, 0.9)),
        "sampling": random.choice(("exchangeable", "adversarial")),
        "fixed_slack_us": random.choice((0, 4)),
        "max_slack_us": random.choice((None, 6)),
        "learning_rate": 0.25,
    }
    if settings["aggregate"] in ("sum", "avg"):
        settings["lambda_thr"] = random.choice((None, 0.9))
    return SlackTask(SlackConfig(**settings), 1)


def watermark_task(random: Random) -> WatermarkTask:
    settings = {
        **shared(random),
        "max_wait_us": random.choice((0, 4, 30)),
        "reading": random.choice(("disorder", "literal", "scaled", "fixed")),
        "k": random.choice((1, 2, 7, 50)),
        "clocks": random.choice(("arrivals", "batches")),
    }
    return WatermarkTask(WatermarkConfig(**settings), 1)


def one_by_one(
    task: AnyTask, passage: Passage, events: Sequence[Event], first: int, batch: int
) -> None:
    for position, event in enumerate(events, first):
        n_accepted = task.n_accepted
        for step in task.arrive(event, batch):
            if isinstance(step, Clock):
                passage.clocks.append(step)
            else:
                passage.steps.append((position, step))
        if task.n_accepted > n_accepted:
            wait_us = task.slack_us if isinstance(task, SlackTask) else task.wait_us
            passage.waits_us.append(wait_us)
        else:
            passage.left_out.append(position)


def ended(task: AnyTask, batch: int) -> Sequence[Step]:
    return (task.progress(batch),) if isinstance(task, SlackTask) else task.end_batch()


def differences(room: str, seed: int, seen: Counter[str]) -> int:
    """How many micro-batches of a stream the quick way answers otherwise, or leaves otherwise."""
    make = slack_task if room == "slack" else watermark_task
    random = Random(seed)
    events = stream(random)
    drawn = random.getstate()
    one = make(random)
    random.setstate(drawn)
    many = make(random)
    quick: Passing
    if isinstance(many, SlackTask):
        quick = SlackQuick(many, events)
    else:
        quick = WatermarkQuick(many, events)
    expected, found, batch, position = Passage([], [], [], []), 0, 0, 0
    while position < len(events):
        end = min(len(events), position + random.choice((0, 1, 3, 30)))
        left_out = len(expected.left_out)
        one_by_one(one, expected, events[position:end], position, batch)
        seen["left out"] += 0 < len(expected.left_out) - left_out < end - position
        # As a user looks at it in the middle of a batch.
        quick.until((position + end) // 2, batch)
        quick.until(end, batch)
        is_same = expected == quick.passage and one.state() == many.state()
        found += not (is_same and ended(one, batch) == ended(many, batch))
        batch, position = batch + 1, end
    seen.update(type(step).__name__ for _, step in expected.steps)
    return found + (one.flush(batch) != many.flush(batch)) + (one.state() != many.state())


@pytest.mark.parametrize("room", ["slack", "watermark"])
def test_several_arrivals_at_once_amount_to_one_after_the_other(room: str) -> None:
    seen: Counter[str] = Counter()
    assert {seed: n for seed in SEEDS if (n := differences(room, seed, seen))} == {}
    kinds = [Result, Late, Rejected, *([Judged] if room == "slack" else [])]
    assert all(seen[kind.__name__] > 100 for kind in kinds), seen
    assert seen["left out"] > 100, seen


@pytest.mark.parametrize("late", [-1, 0], ids=["open too early", "closed too late"])
@pytest.mark.parametrize("room", ["slack", "watermark"])
def test_a_window_looked_at_a_moment_too_late_is_noticed(
    room: str, late: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = SlackTask if room == "slack" else WatermarkTask
    right = task.ends_us

    def wrong(self: Any) -> tuple[int, int]:
        open_us, acts_us = right(self)
        return open_us + late, acts_us + 1 + late

    monkeypatch.setattr(task, "ends_us", wrong)
    seen: Counter[str] = Counter()
    assert any(differences(room, seed, seen) for seed in SEEDS)
