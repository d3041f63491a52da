"""What room ``slack`` keeps and emits besides windows, as plain arrays."""

from typing import NamedTuple

import numpy as np

from spark_impl.runtime.arrays import Floats, Records

WINDOW = np.dtype([("key", "<i8"), ("j", "<i8"), ("n_rcv", "<i8"), ("n_late", "<i8")])
"""A closed window that is not judged yet."""

HELD = np.dtype([("key", "<i8"), ("pane", "<i8"), ("lo", "<i8"), ("n", "<i8")])
"""How many values of a pane are held because they were counted for the windows ``lo`` and later."""

JUDGED = np.dtype(
    [
        ("order", "<i8"),
        ("key", "<i8"),
        ("j", "<i8"),
        ("n_rcv", "<i8"),
        ("n_late", "<i8"),
        ("n_req", "<i8"),
        ("miss", "?"),
        ("alpha", "<f8"),
    ]
)


class Memory(NamedTuple):
    """What a task remembers of its controller between two micro-batches."""

    max_delay_us: int = 0
    alpha: float = 1.0
    err_prev: float = 0.0
    n: int = 0
    s1: float = 0.0
    s2: float = 0.0
    judged: int = 0
    windows: Records = np.empty(0, WINDOW)
    held: Records = np.empty(0, HELD)
    values: Floats = np.empty(0)
    """The values that ``held`` counts; none unless ``config.needs_values``."""
