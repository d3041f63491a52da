"""Columns of tables, and columns over time, made of when things began and ended."""

from collections.abc import Collection
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.kernel.distributions import FloatArray


def ratio(dividend: FloatArray, divisor: FloatArray) -> FloatArray:
    """Element by element; ``nan`` where there is nothing to divide by."""
    quotient: FloatArray = np.full(len(divisor), nan)
    return np.divide(dividend, divisor, out=quotient, where=divisor != 0)


def worked_us(began_us: FloatArray, ended_us: FloatArray, time_us: FloatArray) -> FloatArray:
    """Work done by each of some times, of one who does one thing after the other."""
    began_us, ended_us = np.sort(began_us), np.sort(ended_us)
    # What has begun, less what is still to do of it.
    began = np.searchsorted(began_us, time_us, side="right")
    ended = np.searchsorted(ended_us, time_us, side="right")
    done_us: FloatArray = (
        began * time_us
        - np.append(0.0, np.cumsum(began_us))[began]
        - ended * time_us
        + np.append(0.0, np.cumsum(ended_us))[ended]
    )
    return done_us


def columns_of(rows: Collection[tuple[Any, ...]], *types: Any) -> list[NDArray[Any]]:
    """Rows of as many fields as there are types, column by column."""
    columns = zip(*rows, strict=True) if rows else [()] * len(types)
    return [np.array(column, dtype=each) for column, each in zip(columns, types, strict=True)]
