"""Types of arrays and of plain rows that all pipelines use."""

from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from model.vocabulary.settings import PlainData

Ints: TypeAlias = NDArray[np.int64]
Unsigned: TypeAlias = NDArray[np.uint64]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Texts: TypeAlias = NDArray[np.object_]
"""Strings of Python, of any length."""
NumbersT = TypeVar("NumbersT", int, Ints)
"""One integer or an array of them, for the same arithmetic on both."""
Records: TypeAlias = NDArray[np.void]
"""Structured arrays: several named fields an element."""
Column: TypeAlias = NDArray[Any]
"""An array of any of these types, where the code does not depend on which."""
Values: TypeAlias = tuple[PlainData, ...]
"""Values of some columns in one row, such as the grouping columns."""
PlainRow: TypeAlias = dict[str, PlainData]
"""A row of a table, by column."""
