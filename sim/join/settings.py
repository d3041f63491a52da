"""Settings of a run of room ``join``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import lcm

from model.join.load import Limits
from model.vocabulary import JoinConfig
from model.vocabulary.join import Apart, Band, Equi, Ineq, Predicate
from model.vocabulary.settings import require
from sim import clusters
from sim.join.room import ChainRun, simulate
from sim.join.scenarios import SCENARIOS, Rates
from sim.join.tuning import BLOCK_SIZES, SHEDDING, ChainTuning, Control, Costs
from sim.kernel.distributions import Constant
from sim.kernel.link import HERE, Place, Tiers
from sim.kernel.plan import Cluster, Plan
from sim.kernel.trigger import At, Every, When
from sim.settings import (
    NEVER,
    NO,
    YES,
    Setting,
    Word,
    chosen,
    integer,
    is_yes,
    number,
    with_defaults,
)

PREDICATES: Mapping[str, Callable[[float], Predicate]] = {
    "band": partial(Band, "value"),
    "equi": lambda _: Equi("key"),
    "apart": partial(Apart, "value"),
    "less": lambda _: Ineq("value", "<", "value"),
}
"""By name, from an eps; without one for the second and the last."""
DEFAULTS: Mapping[str, Setting] = {
    "scenario": Word("bursts", SCENARIOS),
    "rate_r_hz": 50.0,
    "rate_s_hz": 50.0,
    "seconds": 60.0,
    "amplitude": 0.5,  # of scenario waves
    "wave_us": 10_000_000,
    # The query, by the names of JoinConfig.
    "workers": 4,
    "window_us": 2_000_000,
    "predicate": Word("band", PREDICATES),
    "eps": 50.0,
    "queries": 1,  # of the same kind, each with a larger eps
    "block_size": 32,
    "credit": 4,
    "lateness_us": 200_000,
    # What it runs on.
    "speeds": clusters.DEFAULTS["speeds"],
    # Of the boundaries, in turn; the log stands beside the first worker.
    "tiers": Word("process,node,rack,elsewhere", Tiers._fields, is_list=True),
    **{key: clusters.DEFAULTS[key] for key in ("queue_limit", "when_full", "loss", "retry_us")},
    "faults": clusters.DEFAULTS["faults"],
    "tuple_bytes": clusters.DEFAULTS["tuple_bytes"],
    "header_bytes": 50,
    "message_us": 5.0,
    "tuple_us": 0.2,
    "comparison_us": 0.02,
    "result_us": 0.1,
    "index": YES,
    "intake_us": 10_000,
    "intake_tuples": 256,
    "hint_us": 100_000,
    "pace_us": NEVER,
    "commit_us": 10_000,
    "trigger_interval_us": 10_000_000,  # never: everything is one epoch
    # Load.
    "capacity": 200,
    "tau0": 0.25,
    "tau1": 0.8,
    "tau2": 0.8,
    "out_after_us": 30_000_000,
    "in_after_us": 300_000_000,
    "blocks": Word("adaptive", BLOCK_SIZES),
    "shed": Word("no", SHEDDING),
    "base": 0.0,
    "margin": 0.05,
    "smoothing": 0.3,
    "scale": NO,
    "control_us": 1_000_000,
    "record": NO,
}
"""Every setting with its default."""

STANDARD: Mapping[str, str] = {
    "scenario": "steady",
    "rate_r_hz": "5000",
    "rate_s_hz": "5000",
    "seconds": "10",
    "window_us": "1000000",
    "eps": "1",
    "block_size": "256",
    "capacity": "8000",
    "intake_us": "50000",
}
"""The standard scenario: a chain at work, by which its speed is measured (docs/join.md)."""


def from_settings(settings: Mapping[str, str], seed: int) -> ChainRun:
    """Run with :data:`DEFAULTS`, except for what ``settings`` say.

    Raises ``ValueError`` with one sentence that names the offending key or value.
    """
    given = with_defaults(settings, DEFAULTS)
    return simulate(plan_of(given), config_of(given), seed)


def _real(given: Mapping[str, str], key: str) -> float:
    return float(number(key, given[key], float))


def _optional(given: Mapping[str, str], key: str) -> int | None:
    return None if given[key] == NEVER else int(number(key, given[key], int, other=NEVER))


def plan_of(given: Mapping[str, str]) -> Plan:
    """Return what arrives and what serves it; all settings have to be there."""
    names = [text.strip() for text in given["tiers"].split(",")]
    # Twice as many workers as there are boundaries in turn: then the places begin again, too.
    count = 2 * lcm(len(names), len(given["speeds"].split(",")))
    return replace(
        stream_of(given),
        cluster=Cluster(
            clusters.workers_of(given, _places(names, count)),
            Constant(_real(given, "tuple_us")),
            integer("tuple_bytes", given["tuple_bytes"]),
            clusters.noise_of(given),
        ),
        tuning=_tuning(given),
        faults=clusters.faults_of(given),
        trigger=_trigger(given),
    )


def stream_of(given: Mapping[str, str]) -> Plan:
    """Return what arrives, by the settings of streams; all of them have to be there."""
    names = ("rate_r_hz", "rate_s_hz", "seconds")
    amplitude, wave_us = _real(given, "amplitude"), integer("wave_us", given["wave_us"])
    r_hz, s_hz, seconds = (_real(given, key) for key in names)
    rates = Rates(r_hz, s_hz, seconds, amplitude, wave_us)
    for key, value in zip((*names, "amplitude", "wave_us"), rates, strict=True):
        require(value > 0, key, value, "above 0")
    require(amplitude < 1, "amplitude", amplitude, "below 1")
    return chosen("scenario", given["scenario"], SCENARIOS)(rates)


def _places(tiers: Sequence[str], count: int) -> list[Place]:
    """Return places of which neighbours, in a ring, are that far from each other.

    From one to the next the process, the node or the rack changes, and back the next time.
    """
    steps = {
        "process": HERE,
        "node": Place(process=1),
        "rack": Place(node=1),
        "elsewhere": Place(rack=1),
    }
    places = [HERE]
    for n in range(count - 1):
        step = steps[tiers[n % len(tiers)]]
        places.append(Place(*[one ^ other for one, other in zip(places[-1], step, strict=True)]))
    return places


def _trigger(given: Mapping[str, str]) -> When:
    interval_us = _optional(given, "trigger_interval_us")
    return At(()) if interval_us is None else Every(interval_us)


def config_of(given: Mapping[str, str]) -> JoinConfig:
    """Return the query; all settings have to be there."""
    count = integer("queries", given["queries"])
    require(count > 0, "queries", count, "above 0")
    predicate, eps = PREDICATES[given["predicate"]], _real(given, "eps")
    return JoinConfig(
        window_us=integer("window_us", given["window_us"]),
        queries=tuple((f"q{n}", predicate(eps + n)) for n in range(count)),
        workers=integer("workers", given["workers"]),
        block_size=integer("block_size", given["block_size"]),
        credit=integer("credit", given["credit"]),
        lateness_us=_optional(given, "lateness_us"),
    )


def _tuning(given: Mapping[str, str]) -> ChainTuning:
    times = ("intake_us", "intake_tuples", "hint_us", "commit_us")
    return ChainTuning(
        _costs(given),
        _control(given),
        is_yes("index", given["index"]),
        **{key: integer(key, given[key]) for key in times},
        pace_us=_optional(given, "pace_us"),
        record=is_yes("record", given["record"]),
    )


def _costs(given: Mapping[str, str]) -> Costs:
    message_us, comparison_us, result_us = (
        _real(given, key) for key in ("message_us", "comparison_us", "result_us")
    )
    return Costs(
        message_us, comparison_us, result_us, integer("header_bytes", given["header_bytes"])
    )


def _control(given: Mapping[str, str]) -> Control:
    tau0, tau1, tau2 = (_real(given, key) for key in ("tau0", "tau1", "tau2"))
    out_us, in_us = (integer(key, given[key]) for key in ("out_after_us", "in_after_us"))
    return Control(
        capacity=integer("capacity", given["capacity"]),
        limits=Limits(tau0, tau1, tau2, out_us, in_us),
        blocks=given["blocks"],
        shed=given["shed"],
        scale=is_yes("scale", given["scale"]),
        every_us=integer("control_us", given["control_us"]),
        **{key: _real(given, key) for key in ("base", "margin", "smoothing")},
    )
