"""Machine of a simulated stream that runs the senders and instances of the Spark side.

A Spark task routes its part of a micro-batch at once, a simulated sender tuple by tuple. When the
part ends, the routes of single tuples are compared with those of the whole part.
"""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from model.vocabulary import Event, GroupingConfig, Step
from spark_impl.grouping.router import SenderState, choose
from spark_impl.grouping.system import InstancesInProcess, SendersInProcess, rejected
from spark_impl.grouping.windows import is_full, rebalance

ROWS = pa.schema(
    [
        ("window", pa.int64()),
        ("instance", pa.int64()),
        ("key", pa.string()),
        ("value", pa.float64()),
    ]
)
TOGETHER = 16
"""Rows that are aggregated together; on Spark these are the rows of a micro-batch."""


class _Part:
    """The routed part of a sender's current micro-batch."""

    def __init__(self, state: SenderState) -> None:
        self.state = state
        self.keys: list[str] = []
        self.places: list[int] = []


class SparkMachine:
    """Senders whose state is what their store would hold, and the instances behind them."""

    def __init__(self, config: GroupingConfig) -> None:
        self._config = config
        self._senders = SendersInProcess(config)
        self._senders.begin_window(self._senders.table)
        self._parts = [_Part(state) for state in self._senders.states]
        self._instances = InstancesInProcess(config.top)
        self._rows: list[tuple[int, int, str, float]] = []

    # ------------------------------------------------------------------------------- the senders

    def route(self, sender: int, key: str) -> int:
        """Route the next tuple of a sender; return its instance."""
        part, table = self._parts[sender], self._senders.table
        keys = _keys([key]).dictionary_encode()
        (place,), part.state = choose(self._config, table, part.state, keys)
        part.keys.append(key)
        part.places.append(int(place))
        return int(place)

    def end_batch(self, sender: int) -> None:
        """Route the sender's part of the micro-batch as a Spark task does."""
        part = self._parts[sender]
        places = self._senders.route(sender, _keys(part.keys)).tolist()
        if places != part.places:
            msg = (
                f"sender {sender} routed {part.keys} to {part.places} tuple by tuple, but to"
                f" {places} all at once"
            )
            raise RuntimeError(msg)
        self._parts[sender] = _Part(self._senders.states[sender])

    def is_full(self, tuples: int) -> bool:
        """Return whether the window ends after a micro-batch, given its number of tuples."""
        return is_full(self._config, tuples)

    def rebalance(self, times_us: tuple[int, ...], tiers: tuple[int, ...]) -> Sequence[Step]:
        """Begin a window with these times and distances; return its heavy keys."""
        senders = self._senders
        table = rebalance(self._config, senders.table, senders.states, times_us, tiers)
        heavy = senders.begin_window(table)
        self._parts = [_Part(state) for state in senders.states]
        return heavy

    def saved(self) -> object:
        """Return the store's content, and the keys routed since, which will be routed again."""
        return self._senders.saved(), [tuple(part.keys) for part in self._parts]

    def restore(self, saved: object) -> None:
        """Resume from the result of :meth:`saved`."""
        assert isinstance(saved, tuple)
        stored, parts = saved
        self._senders.restore(stored)
        self._parts = [_Part(state) for state in self._senders.states]
        for sender, keys in enumerate(parts):
            for key in keys:
                self.route(sender, key)

    # ----------------------------------------------------------------------------- the instances

    def serve(self, instance: int, window: int, event: Event) -> Sequence[Step]:
        """Let an instance take in a tuple of a window; return the immediate steps."""
        self._rows.append((window, instance, event.key, event.value))
        if len(self._rows) == TOGETHER:
            self._aggregate()
        return [*rejected([event])]

    def results(self) -> Iterable[Step]:
        """Return partial aggregates and answers, once everything has been served."""
        self._aggregate()
        return self._instances.results()

    def _aggregate(self) -> None:
        """Let the instances aggregate the rows that they have."""
        if self._rows:
            columns = zip(*self._rows, strict=True)
            self._instances.take(pa.table([pa.array(each) for each in columns], schema=ROWS))
            self._rows.clear()


def _keys(keys: Sequence[str]) -> pa.StringArray:
    return pa.array(keys, pa.string())
