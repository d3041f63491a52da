"""Calibrations for tests."""

from typing import Any

from sim.calibration import COSTS, Calibration

_COSTS: dict[str, Any] = dict.fromkeys(COSTS, (1.0, 2.0, 3.0))
_SIZES: dict[str, Any] = {"message_bytes": 50.0, "tuple_bytes": 100.0}
CALIBRATION = Calibration("local[2]", 0, speeds=(1.0, 0.5), hosts=(0, 0), **_SIZES, **_COSTS)
