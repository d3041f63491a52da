"""The rule of room ``watermark``: how long a task waits (docs/watermark.md, sections 1 to 3).

The disorder of the last arrivals does not depend on the watermark. So the path of all arrivals is
known in advance and needs no guess, unlike that of room ``slack``.
"""

from typing import NamedTuple

import numpy as np

from model.vocabulary import WatermarkConfig
from spark_impl.runtime.arrays import Ints, Records
from spark_impl.windows.disorder import cluster_sizes, count_inversions, wait_us
from spark_impl.windows.records import Rows, fill_records
from spark_impl.windows.room import Path, Rule, Stretch

CLOCK = np.dtype(
    [("seq", "<i8"), ("t_max_us", "<i8"), ("inv", "<i8"), ("wait_us", "<i8"), ("wm_us", "<i8")]
)
"""The clock of a task after an arrival."""


class Memory(NamedTuple):
    """The micro-cluster of a task between two micro-batches."""

    inv: int = 0
    """Number of pairs out of order in the cluster."""
    wait_us: int = 0
    """Wait after the last arrival (us)."""
    cluster: Ints = np.empty(0, np.int64)
    """The last k event times in the order of arrival."""


class WatermarkRule(Rule):
    """The micro-cluster of one task during one micro-batch."""

    def __init__(self, config: WatermarkConfig, task: int, n_keys: int, memory: Memory) -> None:
        del task, n_keys  # a wait does not depend on them
        self._config = config
        self._memory = memory
        self._clocks: list[Records] = [np.empty(0, CLOCK)]

    def look(self, rows: Rows, t_max: Ints) -> None:
        """Compute the disorder after each of the next arrivals, and the wait that follows."""
        before = self._memory.cluster
        self._times = np.concatenate((before, rows.event_time_us))
        self._t_max = t_max
        self._inv = count_inversions(self._config.k, before, self._memory.inv, rows.event_time_us)
        n = cluster_sizes(self._config.k, len(before), len(self._inv))
        self._wait = wait_us(self._config.reading, self._config.max_wait_us, self._inv, n)

    def path(self, start: int, wm_us: int) -> Path:
        """Return the path from arrival ``start`` to the last one."""
        self._start = start
        wait = self._wait[start:]
        wm = np.maximum(np.maximum.accumulate(self._t_max[start:] - wait), wm_us)
        return Path(wait, wm)

    def settle(self, done: Stretch) -> int | None:
        """Add the arrivals of a correct path to the cluster, and record their clocks."""
        if not done.size:  # a flush moves the watermark and leaves the cluster unchanged
            return None
        stop = self._start + done.size
        here = slice(self._start, stop)
        known = len(self._times) - len(self._inv)
        cluster = self._times[max(known + stop - self._config.k, 0) : known + stop]
        self._memory = Memory(int(self._inv[stop - 1]), int(self._wait[stop - 1]), cluster)
        clocks = fill_records(
            CLOCK,
            done.size,
            seq=done.rows.seq,
            t_max_us=self._t_max[here],
            inv=self._inv[here],
            wait_us=self._wait[here],
            wm_us=done.path.wm,
        )
        if self._config.clocks == "arrivals":
            self._clocks.append(clocks)
        else:
            self._clocks = [clocks[-1:]]
        return None

    def slack_us(self) -> int:
        """Return the wait after the last arrival (us)."""
        return self._memory.wait_us

    def memory(self) -> Memory:
        """Return the cluster."""
        return self._memory

    def records(self) -> dict[str, Records]:
        """Return the clocks."""
        return {"clock": np.concatenate(self._clocks)}
