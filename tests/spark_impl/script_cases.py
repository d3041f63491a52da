"""Random workflows and workloads of room ``script``: few sensors, names and small windows."""

import random
from collections.abc import Sequence

from model.vocabulary import Event, ScriptConfig, Workload
from model.vocabulary.script.tree import (
    ACROSS_OPS,
    ARITHMETIC_OPS,
    WINDOW_OPS,
    Across,
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

SENSORS = ("A", "B", "ü 3", "D")
SPANS_MS = (1, 2, 3, 4, 6, 8, 12, 997)


def _expression(draw: random.Random, names: Sequence[str], depth: int) -> Expression:
    kinds = ["sensor", "window", "window", *(["name"] * 2 if names else [])]
    kinds += ["union", "across", "arithmetic", "constant"] if depth > 1 else []
    kind = draw.choice(kinds)
    if kind == "name":
        return Name(draw.choice(names))
    if kind == "sensor":
        return Sensor(draw.choice(SENSORS))
    if kind == "window":
        source = _expression(draw, names, depth - 1) if depth > 1 else Sensor(draw.choice(SENSORS))
        return Window(draw.choice(WINDOW_OPS), source, draw.choice(SPANS_MS), draw.choice(SPANS_MS))
    if kind == "constant":
        number = Number(draw.choice([0.5, 3.0, 1e-7, 1e300]))
        return Arithmetic(draw.choice("+-*/"), _expression(draw, names, depth - 1), number)
    parts = tuple(_expression(draw, names, depth - 1) for _ in range(draw.randint(1, 3)))
    if kind == "union":
        return Union(parts + parts[: draw.randint(0, 1)])
    if kind == "across":
        return Across(draw.choice(ACROSS_OPS), parts)
    return Arithmetic(draw.choice(ARITHMETIC_OPS), parts[0], parts[-1])


def random_config(seed: int) -> ScriptConfig:
    draw = random.Random(f"config {seed}")
    flows = []
    for number in range(draw.randint(1, 3)):
        statements: list[Statement] = []
        for name in draw.sample("wxyz", draw.randint(1, 4)):
            names = [statement.name for statement in statements]
            statements.append(Statement(name, _expression(draw, names, 3)))
        flows.append(Workflow(f"flow {number}", tuple(statements)))
    return ScriptConfig(
        tuple(flows),
        tuple((sensor, draw.choice([60, 3_600, 7_200])) for sensor in SENSORS),
        workers=draw.choice([1, 2, 3]),
        lateness_us=draw.choice([None, 0, 3_000, 15_000]),
        cap_percent=draw.choice([100, 125]),
    )


def random_workload(seed: int, config: ScriptConfig, size: int | None = None) -> Workload:
    draw = random.Random(f"arrivals {seed}")
    now_us = 20_000
    events: list[Event] = []
    for seq in range(size or draw.randint(1, 40)):
        now_us += draw.choice([0, 500, 1_000, 2_000, draw.randint(0, 9_000)])
        if events and draw.random() < 0.15:
            events.append(draw.choice(events)._replace(seq=seq, arrival_us=now_us))
            continue
        late_us = draw.choice([0, 0, 0, 1_000, draw.randint(0, 20_000)])
        value = draw.choice([0.0, -0.0, 1.0, 2.5, 0.1, float(draw.randint(-9, 9)), 1e200])
        if draw.random() < 0.03:
            value = float("nan")
        sensor = draw.choice([*SENSORS, "nobody's"])
        events.append(Event(seq, seq * 7 - 50, sensor, now_us - late_us, value, now_us))
    cuts = tuple(sorted(draw.randint(0, len(events)) for _ in range(draw.randint(0, 3))))
    flush = draw.random() < 0.7
    return Workload("script", tuple(events), config.to_json(), cuts, flush=flush, name=f"s{seed}")
