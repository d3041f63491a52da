"""Random workloads of room ``watermark``: small numbers, so that everything collides."""

import random
from typing import Any

from model.vocabulary import Workload
from model.vocabulary.settings import PlainData
from model.vocabulary.watermark import READINGS
from model.vocabulary.windows import AGGREGATES
from tests.spark_impl import cases


def random_config(seed: int, **given: Any) -> dict[str, PlainData]:
    draw = random.Random(f"watermark {seed}")
    size = draw.randint(1, 12)
    config: dict[str, PlainData] = {
        "size_us": size,
        "slide_us": draw.choice([size, draw.randint(1, size), draw.randint(1, 15)]),
        "max_wait_us": draw.choice([0, 5, 20, 60]),
        "reading": draw.choice(READINGS),
        "k": draw.choice([1, 2, 3, 5, 8, 50]),
        "aggregate": draw.choice(AGGREGATES),
        "q": draw.choice([0.5, 0.9, 0.1]),
        "keyed": draw.random() < 0.7,
        "tasks": draw.choice([1, 2]),
        "corrections": draw.random() < 0.5,
        "clocks": draw.choice(["arrivals", "arrivals", "batches"]),
        "dedup": draw.random() < 0.8,
        "gamma_us": draw.choice([0, 5, 20]),
    }
    choices: dict[str, list[Any]] = {
        "feedback_us": [0, 3, 20],
        "max_future_us": [0, 3, 10],
        "max_age_us": [0, 10, 30],
    }
    for name, values in choices.items():
        if draw.random() < 0.25:
            config[name] = draw.choice(values)
    return {**config, **given}


def random_workload(seed: int, config: dict[str, PlainData], size: int | None = None) -> Workload:
    return cases.random_workload(seed, config, size, room="watermark")
