"""Calibrations for tests."""

from dataclasses import replace
from typing import Any

from sim.calibration import COSTS, Calibration

_COSTS: dict[str, Any] = dict.fromkeys(COSTS, (1.0, 2.0, 3.0))
_SIZES: dict[str, Any] = {"message_bytes": 50.0, "tuple_bytes": 100.0}
CALIBRATION = Calibration("local[2]", 0, speeds=(1.0, 0.5), hosts=(0, 0), **_SIZES, **_COSTS)


def with_costs(work_us: float, **costs: float) -> Calibration:
    """Return a calibration whose work and starts cost ``work_us``, except for ``costs``."""
    times_us = {name: work_us for name in COSTS if name.endswith("_us")}
    given = {name: (cost,) * 3 for name, cost in {**times_us, **costs}.items()}
    return replace(CALIBRATION, **given)  # type: ignore[arg-type]  # costs alone
