"""Files of ``straggler calibrate``."""

import json
from pathlib import Path

from sim.calibration import Calibration
from straggler.errors import UsageError
from straggler.inputs.text_files import read_json


def read_calibration(path: Path) -> Calibration:
    """Read a calibration; raise :class:`UsageError` with one sentence if the file is not one."""
    name = repr(str(path))
    try:
        data = read_json(path)
    except ValueError as error:
        raise UsageError(f"{name} is no calibration: {error}") from error
    if not isinstance(data, dict):
        raise UsageError(f"{name} is no calibration: it holds no object")
    try:
        return Calibration.from_json(data)
    except ValueError as error:
        raise UsageError(f"{name} is no calibration: {error}") from error


def write_calibration(found: Calibration) -> str:
    """Return the text of a file."""
    return json.dumps(found.to_json(), indent=1) + "\n"
