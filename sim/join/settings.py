"""Settings of a run of room ``join``."""

from collections.abc import Callable, Mapping
from functools import partial

from model.join.load import Limits
from model.vocabulary import JoinConfig
from model.vocabulary.join import Apart, Band, Equi, Ineq, Predicate
from model.vocabulary.settings import require
from sim.join.crew import BLOCK_SIZES, SHEDDING, TIERS, Control, Costs, Crew
from sim.join.run import Run, simulate
from sim.join.scenarios import SCENARIOS, Rates
from sim.kernel.faults import Fail, Schedule
from sim.kernel.plan import Plan
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
    "speeds": "1,0.5",  # of the workers, in turn
    # Of the boundaries, in turn.
    "tiers": Word("process,node,rack,elsewhere", TIERS._fields, is_list=True),
    "message_us": 5.0,
    "tuple_us": 0.2,
    "comparison_us": 0.02,
    "result_us": 0.1,
    "index": YES,
    "tuple_bytes": 100,
    "header_bytes": 50,
    "intake_us": 10_000,
    "intake_tuples": 256,
    "hint_us": 100_000,
    "pace_us": NEVER,
    "commit_us": 10_000,
    "trigger_interval_us": 10_000_000,
    "fail_at_us": NEVER,  # worker 0
    "fail_for_us": 1_000_000,
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


def from_settings(settings: Mapping[str, str], seed: int) -> Run:
    """Run with :data:`DEFAULTS`, except for what ``settings`` say.

    Raises ``ValueError`` with one sentence that names the offending key or value.
    """
    given = with_defaults(settings, DEFAULTS)
    run = simulate(
        plan_of(given),
        _config(given),
        seed,
        crew=_crew(given),
        control=_control(given),
        faults=_faults(given),
        epoch_us=integer("trigger_interval_us", given["trigger_interval_us"]),
        record=is_yes("record", given["record"]),
    )
    end_us = run.summary["duration_us"]
    if given["fail_at_us"] != NEVER and not run.summary["failures"]:
        msg = f"fail_at_us is {given['fail_at_us']}; the run is over at {end_us:.0f}, before that"
        raise ValueError(msg)
    return run


def _real(given: Mapping[str, str], key: str) -> float:
    return float(number(key, given[key], float))


def _optional(given: Mapping[str, str], key: str) -> int | None:
    return None if given[key] == NEVER else int(number(key, given[key], int, other=NEVER))


def plan_of(given: Mapping[str, str]) -> Plan:
    """What arrives, by the settings of streams; all of them have to be there."""
    names = ("rate_r_hz", "rate_s_hz", "seconds")
    amplitude, wave_us = _real(given, "amplitude"), integer("wave_us", given["wave_us"])
    r_hz, s_hz, seconds = (_real(given, key) for key in names)
    rates = Rates(r_hz, s_hz, seconds, amplitude, wave_us)
    for key, value in zip((*names, "amplitude", "wave_us"), rates, strict=True):
        require(value > 0, key, value, "above 0")
    require(amplitude < 1, "amplitude", amplitude, "below 1")
    return chosen("scenario", given["scenario"], SCENARIOS)(rates)


def _config(given: Mapping[str, str]) -> JoinConfig:
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


def _crew(given: Mapping[str, str]) -> Crew:
    tiers = TIERS._asdict()
    names = [name.strip() for name in given["tiers"].split(",")]
    speeds = [float(number("speeds", text, float)) for text in given["speeds"].split(",")]
    return Crew(
        speeds=tuple(speeds),
        tiers=tuple([chosen("tiers", name, tiers) for name in names]),
        costs=_costs(given),
        is_indexed=is_yes("index", given["index"]),
        pace_us=_optional(given, "pace_us"),
        **{
            key: integer(key, given[key])
            for key in ("intake_us", "intake_tuples", "hint_us", "commit_us")
        },
    )


def _costs(given: Mapping[str, str]) -> Costs:
    message_us, tuple_us, comparison_us, result_us = (
        _real(given, key) for key in ("message_us", "tuple_us", "comparison_us", "result_us")
    )
    sizes = (integer(key, given[key]) for key in ("tuple_bytes", "header_bytes"))
    return Costs(message_us, tuple_us, comparison_us, result_us, *sizes)


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


def _faults(given: Mapping[str, str]) -> Schedule:
    at_us = _optional(given, "fail_at_us")
    if at_us is None:
        return ()
    return (Fail("worker-0", at_us, integer("fail_for_us", given["fail_for_us"])),)
