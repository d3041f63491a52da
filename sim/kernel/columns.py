"""Columns of tables."""

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


def columns_of(rows: Collection[tuple[Any, ...]], *types: Any) -> list[NDArray[Any]]:
    """Rows of as many fields as there are types, column by column."""
    columns = zip(*rows, strict=True) if rows else [()] * len(types)
    return [np.array(column, dtype=each) for column, each in zip(columns, types, strict=True)]
