"""Hypothesis strategies: sets of workflows, and tuples whose order comes out of a network.

Rules of this file:

1. Disorder is never drawn as a shuffle: sources, routes and faults are those of
   ``straggler/strategies/networks.py``, clusters those of ``straggler/strategies/clusters.py``.
2. Sensors, names and windows are few, so that workflows have something in common, and the same
   name means different things in different ones.
3. Stamps often fall on the edges of windows, and together.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

from hypothesis import strategies as st

from model.vocabulary import Event, ScriptConfig, Workload, stable_hash
from model.vocabulary.script.tree import (
    ACROSS_OPS,
    ARITHMETIC_OPS,
    DAY_MS,
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
    is_constant,
)
from sim.kernel.faults import Fail
from sim.kernel.log import simulate_arrivals
from sim.kernel.plan import replay
from sim.script.host import ScriptTuning
from sim.script.placements import PLACEMENTS
from straggler.strategies.clusters import Shape, clusters, faults
from straggler.strategies.networks import SEEDS, plans, sources
from straggler.strategies.streams import cuts
from straggler.strategies.timed_cases import SeededPlan, TimedCase

SCALE_US = 8_000
"""Scale of delays and intervals (us)."""
SENSORS = ("8MD1-AZ", "MD_1", "8MD3-A", "ü 4", "max")
NAMES = ("A", "B", "C", "MD_1", "größe")
SPANS_MS = st.sampled_from([1, 2, 3, 4, 4, 6, 8, 8, 10, 12, 997])
DAYS_MS = st.sampled_from([DAY_MS, 2 * DAY_MS, 7 * DAY_MS])
AGGREGATES = st.sampled_from([*WINDOW_OPS, "avg", "avg"])
"""Aggregates; averages are more frequent because they reveal most mistakes."""
NUMBERS = st.sampled_from([0, 1, 2, 0.5, 3.25, 600_000, 1e-7, 1e300])
RATES = st.sampled_from([60, 3_600, 3_600, 7_200, 72_000, 3_600_000])
IDLE_US = (None, None, None, 1, SCALE_US // 2, 2 * SCALE_US, 8 * SCALE_US)
"""Silences after which a sensor is idle (us); some shorter than its pauses, some longer."""
WAYS = ("all-split", "by-sensor", *PLACEMENTS)
"""Placements; the first ones are drawn most, and their workers exchange most messages."""
DEPTH = 3
"""Depth of generated expressions."""


@st.composite
def constants(draw: st.DrawFn, depth: int) -> Expression:
    """Draw numbers, and sums and products of them that can be computed."""
    if depth <= 1 or draw(st.booleans()):
        return Number(draw(NUMBERS))
    op = draw(st.sampled_from("+-*"))
    return Arithmetic(op, Number(draw(NUMBERS)), Number(draw(st.sampled_from([0, 1, 2]))))


@st.composite
def expressions(
    draw: st.DrawFn, names: Sequence[str], sensors: Sequence[str], depth: int = DEPTH
) -> Expression:
    """Draw a stream."""
    kinds = ["sensor", "window", "window"]
    kinds += ["name"] * 2 if names else []
    kinds += ["union", "across", "arithmetic", "arithmetic"] if depth > 1 else []
    kind = draw(st.sampled_from(kinds))
    part = expressions(names, sensors, depth - 1)
    parts = st.lists(part, min_size=1, max_size=3).map(tuple)
    if kind == "name":
        return Name(draw(st.sampled_from(names)))
    if kind == "sensor":
        return Sensor(draw(st.sampled_from(sensors)))
    if kind == "window":
        # Plain sources are the most frequent, so that windows share slices.
        source = draw(part) if depth > 1 else Sensor(draw(st.sampled_from(sensors)))
        if draw(st.integers(0, 9)) == 9:
            zone = draw(st.sampled_from(["UTC", "America/St_Johns"]))
            return Window(draw(AGGREGATES), source, draw(DAYS_MS), draw(DAYS_MS), zone)
        return Window(draw(AGGREGATES), source, draw(SPANS_MS), draw(SPANS_MS))
    if kind == "union":
        united = draw(parts)
        return Union(united + united[: draw(st.integers(0, 1))])
    if kind == "across":
        return Across(draw(st.sampled_from(ACROSS_OPS)), draw(parts))
    sides = [draw(part), draw(st.one_of(part, constants(depth)))]
    op = draw(st.sampled_from(ARITHMETIC_OPS))
    if op != "/" and draw(st.booleans()):
        sides.reverse()
    return Arithmetic(op, *_computable(op, *sides))


def _computable(op: str, left: Expression, right: Expression) -> tuple[Expression, Expression]:
    """Replace a constant divisor, which may always be zero."""
    if op == "/" and is_constant(right):
        return left, Number(2)
    return left, right


@st.composite
def workflows(draw: st.DrawFn, name: str, sensors: Sequence[str] = SENSORS) -> Workflow:
    """Draw one script."""
    statements: list[Statement] = []
    for each in draw(st.permutations(NAMES))[: draw(st.integers(1, 4))]:
        earlier = [statement.name for statement in statements]
        own = Sensor(each) if each in SENSORS else None  # a name hides a sensor that it reads
        others = [sensor for sensor in sensors if sensor not in earlier]
        said = own and Window(draw(AGGREGATES), own, draw(SPANS_MS), draw(SPANS_MS))
        statements.append(Statement(each, said or draw(expressions(earlier, others))))
    return Workflow(name, tuple(statements))


@st.composite
def sets(draw: st.DrawFn, most: int = 3) -> tuple[Workflow, ...]:
    """Draw workflows that run together; sometimes two of them are equal."""
    asked = st.sampled_from([SENSORS, SENSORS[:2], SENSORS[2:4], SENSORS[4:]])
    number = draw(st.integers(1, most))
    found = [draw(workflows(f"w{each}", draw(asked))) for each in range(number)]
    if draw(st.booleans()):
        found.append(Workflow("again", draw(st.sampled_from(found)).statements))
    return tuple(found)


@st.composite
def configs(draw: st.DrawFn) -> ScriptConfig:
    """Draw workflows, sensors, and workers for them."""
    sensors = tuple((sensor, draw(RATES)) for sensor in SENSORS)
    config = ScriptConfig(
        draw(sets()),
        sensors,
        workers=draw(st.sampled_from([1, 2, 3, 4])),
        lateness_us=draw(st.sampled_from([None, 0, 4_000, 20_000])),
        cap_percent=draw(st.sampled_from([100, 110, 125, 400])),
    )
    watermark = draw(st.sampled_from(["fixed", "fixed", "disorder", "scaled"]))
    if watermark == "fixed":
        return config
    return replace(
        config,
        # The longest wait, of which the disorder takes a share.
        lateness_us=draw(st.sampled_from([4_000, 20_000, 100_000])),
        watermark=watermark,
        # Each sensor has few arrivals; clusters must fill, and lose some.
        cluster=draw(st.sampled_from([1, 2, 3, 5, 50])),
    )


@st.composite
def arrivals(draw: st.DrawFn) -> tuple[Event, ...]:
    """Draw some sources that send through a network; each of them is several sensors."""
    sent = tuple(draw(st.lists(sources(SCALE_US), min_size=1, max_size=3)))
    events = simulate_arrivals(draw(plans(SCALE_US, sent)), draw(SEEDS)).events
    step_us = draw(st.sampled_from([1, 1_000, 2_000, 4_000]))
    unfit = draw(st.sampled_from([0, 0, 7]))
    return tuple(_measured(event, step_us, unfit) for event in events)


def _measured(event: Event, step_us: int, unfit: int) -> Event:
    mark = stable_hash(str(event.source_id))
    # One sensor is unknown.
    sensor = (*SENSORS, "unknown")[mark % (len(SENSORS) + 1)]
    stamp_us = event.event_time_us // step_us * step_us
    value = event.value if not unfit or mark // 8 % unfit else float("nan")
    return event._replace(key=sensor, event_time_us=stamp_us, value=value - 50 * (mark // 8 % 2))


@st.composite
def silences(draw: st.DrawFn, config: ScriptConfig) -> ScriptConfig:
    """Draw whether silence counts in a query, and from when on."""
    if config.lateness_us is None:
        return config
    return replace(config, idle_after_us=draw(st.sampled_from(IDLE_US)))


@st.composite
def cases(draw: st.DrawFn, *, silent: bool = True) -> Workload:
    """Draw workflows and a stream for them, cut into micro-batches.

    ``silent``: in some of the queries the silence of a sensor counts.
    """
    events = draw(arrivals())
    config = draw(configs())
    flush = draw(st.sampled_from([True, True, False]))
    cut = draw(cuts(len(events)))
    if silent:
        config = draw(silences(config))
    return Workload("script", events, config.to_json(), cut, flush=flush, name="generated")


@st.composite
def timed_cases(draw: st.DrawFn, *, fails: bool = False) -> TimedCase[ScriptConfig]:
    """Draw a stream for scripts, the cluster that it meets, a placement, and what goes wrong.

    ``fails``: a worker always fails soon after an arrival, otherwise in half of the cases.
    """
    workload = draw(cases(silent=False))
    config = ScriptConfig.from_json(workload.config)
    if draw(st.booleans()):
        config = replace(config, workers=3)
    events = workload.arrivals
    span_us = events[-1].arrival_us - events[0].arrival_us + 1
    shape = Shape(SCALE_US, config.workers)
    cluster = draw(clusters(shape, config.workers * span_us / len(events)))
    names = [f"worker-{n}" for n, each in enumerate(cluster.workers) if each.place is not None]
    # The placement decides which workers talk to each other; other links stay unused.
    links = [f"log>{name}" for name in names]
    links += [f"{one}>{other}" for one, other in permutations(names, 2)]
    wrong = faults(shape, span_us, 1, links)
    tuning = ScriptTuning(
        draw(st.sampled_from(WAYS)),
        draw(st.sampled_from([0.0, SCALE_US / 40, SCALE_US / 4])),
    )
    plan = replay(events, "drawn", workload.cuts, flush=workload.flush, cluster=cluster)
    troubles = draw(st.lists(wrong, max_size=3))
    if fails or draw(st.booleans()):
        # Soon after an arrival, so that a tuple is served again.
        event = events[draw(st.integers(0, 15)) * (len(events) - 1) // 15]
        worker = f"worker-{draw(st.integers(0, 3)) % config.workers}"
        at_us = event.arrival_us - plan.epoch_us + SCALE_US // 8
        troubles.append(Fail(worker, at_us, SCALE_US))
    timed = replace(plan, faults=tuple(troubles), tuning=tuning)
    case = SeededPlan(timed, draw(SEEDS))
    return TimedCase(draw(silences(config)), case)
