"""A run of the model: the meaning of a workload, and the workers of its sensors (docs/script.md).

Rules of this file:

* This file only connects the parts: arrivals are admitted, workflows are computed from them, and
  sensors are placed.
* The admitted tuples determine everything, so cuts, restarts and kills need nothing here.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from model.script.intake import REDELIVERED, Intake
from model.script.meaning import answers
from model.script.rules import RULES, Rules
from model.script.silence import Silences
from model.script.stream import Point, Stream, before
from model.vocabulary import ScriptConfig, System, Trace, Workload
from model.vocabulary.script.config import END_US, Rejected
from model.vocabulary.script.graph import compile_graph
from model.vocabulary.script.placement import hosted_sensors, place

PRODUCER = "model"


def run(workload: Workload, rules: Rules = RULES) -> Trace:
    """Return the reference trace of a workload.

    Raises ``ValueError`` with one sentence if the configuration is invalid.
    """
    config = ScriptConfig.from_json(workload.config)
    sensors, rejected = admit(workload, config, rules)
    placement = place(
        compile_graph(config), config.workers, config.cap_percent, is_charged=rules.is_charged
    )
    return Trace(
        PRODUCER, [*rejected, *answers(config, sensors, rules), *hosted_sensors(placement)]
    )


def admit(
    workload: Workload, config: ScriptConfig, rules: Rules
) -> tuple[Mapping[str, Stream], Sequence[Rejected]]:
    """Return the streams of all sensors, and the arrivals that are refused.

    The stream of a sensor that no script reads is empty.
    """
    asked_for = config.asked_for
    intake = Intake(config, rules, [sensor for sensor, _ in config.sensors])
    silences = Silences(config)
    points: dict[str, list[Point]] = {sensor: [] for sensor in intake.clocks}
    rejected: list[Rejected] = []
    for event in workload.arrivals:
        if event.key in asked_for:
            reason = intake.admit(event, silences.floor_us(event.key))
            if reason is None:
                points[event.key].append((event.event_time_us, event.value))
            elif reason != REDELIVERED:
                rejected.append(Rejected(event.seq, reason))
        silences.take(event)
    for sensor, floor_us in silences.floors_us(intake.clocks).items():
        intake.raise_to(sensor, floor_us)
    sensors: dict[str, Stream] = {}
    for sensor, clock in intake.clocks.items():
        until_us = END_US if workload.flush else clock.watermark_us
        sensors[sensor] = Stream(tuple(before(sorted(points[sensor]), until_us)), until_us)
    return sensors, rejected


def system(rules: Rules) -> System:
    """Return a System that follows these rules."""
    return partial(run, rules=rules)


def make_system() -> System:
    """Return the reference as a System."""
    return system(RULES)
