"""Admitted tuples of one stream as columns, which grow as tuples are admitted."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.vocabulary import Event
from sim.kernel.disorder import IntArray
from sim.kernel.distributions import FloatArray

_ROWS = 1_024
"""For how many tuples there is room at first."""


class Columns:
    """Admitted tuples by rank; rows behind the last one mean nothing."""

    __slots__ = ("_numbers", "epoch", "event_us", "key", "number", "source_id", "value")

    def __init__(self, numbers: dict[str, int]) -> None:
        self._numbers = numbers  # of keys, by first appearance in either stream
        self.source_id: IntArray = np.zeros(_ROWS, dtype=np.int64)
        self.event_us: IntArray = np.zeros(_ROWS, dtype=np.int64)
        self.value: FloatArray = np.zeros(_ROWS)
        self.key: NDArray[Any] = np.zeros(_ROWS, dtype=np.object_)
        """Strings, which compare by code point."""
        self.number: IntArray = np.zeros(_ROWS, dtype=np.int64)
        """Number of the key: equal for equal keys."""
        self.epoch: IntArray = np.zeros(_ROWS, dtype=np.int64)

    def put(self, rank: int, events: Sequence[Event], epoch: int) -> None:
        """Write tuples that were admitted in an epoch, the first of them with this rank."""
        end = rank + len(events)
        if end > len(self.epoch):
            self._grow(end)
        _, source_id, key, event_us, value, _, _ = zip(*events, strict=True)
        numbers = self._numbers
        self.source_id[rank:end] = source_id
        self.event_us[rank:end] = event_us
        self.value[rank:end] = value
        self.key[rank:end] = key
        self.number[rank:end] = [numbers.setdefault(each, len(numbers)) for each in key]
        self.epoch[rank:end] = epoch

    def _grow(self, rows: int) -> None:
        """Make room for twice as many rows as are needed now."""
        for name in ("source_id", "event_us", "value", "key", "number", "epoch"):
            column = getattr(self, name)
            grown = np.zeros(2 * rows, dtype=column.dtype)
            grown[: len(column)] = column
            setattr(self, name, grown)
