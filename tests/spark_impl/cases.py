"""Random workloads of room ``slack``: small numbers, so that everything collides."""

import random
from typing import Any

from model.vocabulary import Event, Workload
from model.vocabulary.settings import PlainData
from model.vocabulary.slack import (
    ADAPTIVE_CONTROLS,
    CONTROLS,
    METHODS,
    SAMPLINGS,
    SELF_SUFFICIENT_AGGREGATES,
)
from model.vocabulary.windows import AGGREGATES


def random_config(seed: int) -> dict[str, PlainData]:
    draw = random.Random(f"config {seed}")
    size = draw.randint(1, 12)
    config: dict[str, PlainData] = {
        "size_us": size,
        "slide_us": draw.choice([draw.randint(1, size), draw.randint(1, 15)]),
        "aggregate": draw.choice(AGGREGATES),
        "control": draw.choice(CONTROLS),
        "tasks": draw.choice([1, 2]),
        "keyed": draw.random() < 0.7,
        "dedup": draw.random() < 0.8,
        "eps": draw.choice([0.05, 0.3, 0.5]),
        "delta": draw.choice([0.05, 0.4]),
        "q": draw.choice([0.5, 0.9, 0.1]),
        "gamma_us": draw.choice([0, 5, 20]),
        "learning_rate": draw.choice([0.05, 0.5]),
        "fixed_slack_us": draw.randint(0, 10),
    }
    needs_share = config["aggregate"] not in SELF_SUFFICIENT_AGGREGATES
    if (config["control"] in ADAPTIVE_CONTROLS and needs_share) or draw.random() < 0.3:
        config["lambda_thr"] = draw.choice([0.5, 0.9, 1.0])
    methods = [name for name, known in METHODS.items() if config["aggregate"] in known]
    if len(methods) > 1 and draw.random() < 0.7:
        config["method"] = draw.choice(methods)
    if draw.random() < 0.3:
        config["sampling"] = draw.choice(SAMPLINGS)
    choices: dict[str, list[Any]] = {
        "feedback_us": [0, 3, 20],
        "max_slack_us": [0, 4, 10],
        "max_future_us": [0, 3, 10],
        "cv": [0.0, 0.5, 2.0],
        "max_age_us": [0, 10, 30],
    }
    for name, values in choices.items():
        if draw.random() < 0.25:
            config[name] = draw.choice(values)
    return config


def random_workload(
    seed: int, config: dict[str, PlainData], size: int | None = None, room: str = "slack"
) -> Workload:
    draw = random.Random(seed)
    few, now = draw.randint(1, 40), 1000
    size = size or few
    events: list[Event] = []
    for seq in range(size):
        now += draw.choice([0, 0, 1, 2, draw.randint(0, 5)])
        now += draw.randint(0, 60) if draw.random() < 0.1 else 0
        if events and draw.random() < 0.15:
            events.append(draw.choice(events)._replace(seq=seq, arrival_us=now))
            continue
        late = draw.choice([0, 0, 0, 1, 3, draw.randint(0, 30)])
        value = draw.choice([0.0, 1.0, 2.5, 3.0, float(draw.randint(-3, 9))])
        if draw.random() < 0.03:
            value = float("nan")
        clock = now - draw.choice([0, 0, 4])
        events.append(Event(seq, seq * 7 - 50, draw.choice("aßc"), now - late, value, clock))
    cuts = tuple(sorted(draw.randint(0, size) for _ in range(draw.randint(0, 3))))
    return Workload(
        room, tuple(events), config, cuts, seed=seed, flush=draw.random() < 0.8, name=f"s{seed}"
    )
