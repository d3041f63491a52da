"""Small workloads on which rules that look right, and are wrong, give other steps."""

from typing import Any

from model.vocabulary import Event, Fault, ScriptConfig, Workload
from model.windows import variants
from straggler.rooms.script.language import parse

WINDOWS = {"size_us": 10, "slide_us": 10, "max_wait_us": 10, "k": 3}
Arrived = tuple[int, str, int]
"""Time of arrival (ms), sensor and stamp (ms)."""


def _routed(keys: str, cuts: tuple[int, ...] = (), **config: object) -> Workload:
    """Return a workload with a tuple for each letter, for two instances by default."""
    arrivals = tuple(Event(seq, seq, key, 100, 1.0, 100) for seq, key in enumerate(keys))
    return Workload("grouping", arrivals, {"instances": 2, "window_tuples": 1, **config}, cuts)


def _late(**settings: object) -> Workload:
    return variants.example("watermark", {**WINDOWS, **settings}, (20, 5), (1.0, 2.0), ())


def _read(script: str, *arrived: Arrived, flush: bool = True, **settings: Any) -> Workload:
    sensors = ("a", 1), ("b", 1)
    config = ScriptConfig((parse(script, "w"),), sensors, **{"lateness_us": 0, **settings})
    arrivals = tuple(
        Event(seq, seq, sensor, at_ms * 1_000, 1.0, now_ms * 1_000)
        for seq, (now_ms, sensor, at_ms) in enumerate(arrived)
    )
    return Workload("script", arrivals, config.to_json(), flush=flush)


def _silent(*arrived: Arrived, flush: bool = True) -> Workload:
    """Return a workload whose sensors are idle after 2 ms of silence."""
    script = 'x = sum(union("a", "b"), 1, 1); y = sum("a", 1, 1)'
    return _read(script, *arrived, flush=flush, idle_after_us=2_000)


GROUPING = (
    _routed("abcdeeeeee", (5, 9), theta=0.5, window_tuples=9),
    _routed("cd", policy="pkg"),
    _routed("d", policy="pkg", instances=3),
    _routed("cc", (1,), times_us=((0, (1, 1)), (1, (1, 9)))),
    _routed("d"),
    _routed("aabcaaa", (4,), instances=4, theta=0.3, gamma=1.0, window_tuples=4),
    _routed("aaaaabbbbcccdde" + "f" * 13, (15, 27), theta=0.4, eps=0.2, window_tuples=27),
)
WATERMARK = (
    _late(),
    variants.with_redelivery(variants.example("watermark", WINDOWS, (5,), (1.0,), ())),
    _late(corrections=True).with_(faults=(Fault("kill", 1),)),
)
BEHIND: dict[str, Any] = {"lateness_us": 3_000, "watermark": "disorder"}
SUMS = 'x = sum("a", 1, 1); y = sum("b", 1, 1)'
SCRIPT = (
    _read('x = max("a", 1, 1); y = max("b", 1, 1)', (1, "a", 1), (1, "b", 0)),
    _read(SUMS, (4, "a", 4), (4, "a", 0), (4, "a", 4), (4, "a", 3), **BEHIND),
    _read(SUMS, (0, "b", 0), (4, "a", 4), (4, "a", 3), **BEHIND),
    _silent((0, "b", 0), (3, "a", 3), (6, "b", 1), (6, "b", 2)),
    _silent((0, "b", 0), (0, "a", 4), (0, "b", 1)),
    _silent((0, "b", 0), (3, "c", 3), (3, "b", 1)),
    _silent((0, "a", 0), (3, "a", 1), flush=False),
)
