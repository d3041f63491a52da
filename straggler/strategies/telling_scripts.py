"""Small cases of scripts, each of which tests one thing that random draws rarely meet.

Each has sensors ``a``, ``b`` and ``c``; times are in milliseconds, a list is a micro-batch.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import Any

from model.vocabulary import Event, ScriptConfig, Workload
from model.vocabulary.script.config import MILLISECOND_US
from model.vocabulary.script.tree import (
    DAY_MS,
    Arithmetic,
    Name,
    Sensor,
    Statement,
    Union,
    Window,
    Workflow,
)
from straggler.rooms.script.language import parse

SECOND = 3_600
"""Tuples an hour of a sensor that sends once a second."""
NAN = float("nan")
LAST_MS = ((1 << 61) - 1) // MILLISECOND_US
"""Last whole millisecond that a tuple may have."""
Measured = tuple[str, int, float]
"""Sensor, time (ms) and value; an equal row is a redelivery."""


def _case(
    script: str,
    *batches: Sequence[Measured],
    beside: str = "",
    per_hour: int = SECOND,
    flush: bool = True,
    **settings: Any,
) -> Workload:
    sensors = tuple((sensor, per_hour) for sensor in "abc")
    scripts = {"w": script, "v": beside}
    flows = tuple(parse(text, name) for name, text in scripts.items() if text)
    config = ScriptConfig(flows, sensors, **settings)
    rows = [row for batch in batches for row in batch]
    arrivals = tuple(
        Event(seq, rows.index(row), sensor, at_ms * MILLISECOND_US, value, seq)
        for seq, row in enumerate(rows)
        for sensor, at_ms, value in [row]
    )
    cuts = tuple(sum(map(len, batches[:number])) for number in range(1, len(batches)))
    return Workload("script", arrivals, config.to_json(), cuts, flush=flush)


SIZES = (
    *(0.0, 1.0, -1.0, 0.1, -0.1, 3.5, 7e8, -7e8, 2.0**-30, 2.0**31, 2.0**50, -(2.0**53)),
    *(2.0**60, -(2.0**60), 2.0**64, -(2.0**70), 1e300),
)
"""Numbers whose sums and squares need 64 bits or more, and numbers that divide them finely."""


def _of_all_sizes(seed: int) -> Workload:
    """Return windows over numbers of some sizes, which come in several micro-batches."""
    random = Random(seed)
    some = random.sample(SIZES, random.randint(2, 4))
    rows = [("a", at_ms, random.choice(some)) for at_ms in range(20)]
    ends = [0, *sorted(random.sample(range(1, 20), random.randint(1, 4))), 20]
    batches = [rows[begin:end] for begin, end in pairwise(ends)]
    return _case(
        'x = sum("a", 4, 2); y = avg("a", 3, 3); z = stddev("a", 6, 2)', *batches, lateness_us=0
    )


def _out_of_order(seed: int) -> Workload:
    """Return a sensor whose disorder decides its watermark, and whose tuples come again."""
    random = Random(seed)
    rows = [("a", at_ms // 2 + random.randrange(6), 1.0) for at_ms in range(24)]
    return _case(
        'x = count("a", 2, 2)',
        *(rows[begin : begin + 8] for begin in range(0, 24, 8)),
        lateness_us=random.choice((2_000, 6_000)),
        watermark=random.choice(("disorder", "scaled")),
        cluster=random.choice((2, 3, 5, 50)),
    )


def _silent(seed: int) -> Workload:
    """Return silent sensors, and arrivals that are not counted or that nobody asks for."""
    random = Random(seed)
    rows = [
        (
            random.choice("aaabbc"),
            max(0, at_ms - random.randrange(5)),
            random.choice((1.0, 1.0, NAN)),
        )
        for at_ms in range(24)
    ]
    case = _case(
        'x = count("a", 2, 2); y = count("b", 2, 2)',
        *(rows[begin : begin + 6] for begin in range(0, 24, 6)),
        lateness_us=random.choice((0, 1_000, 3_000)),
        idle_after_us=random.choice((1, 2, 4)),
        flush=random.choice((False, True)),
    )
    back_us = random.choice((1, 4))  # a clock that is turned back counts as standing still
    return case.with_(
        arrivals=tuple(
            each._replace(arrival_us=each.seq - random.randrange(back_us)) for each in case.arrivals
        )
    )


DAYS = (
    *(("America/Sao_Paulo", 15_392), ("America/Sao_Paulo", 15_630)),  # changes at midnight
    *(("America/St_Johns", 14_916), ("Pacific/Apia", 15_334)),  # a minute later; a day is skipped
    *(("Europe/Berlin", 18_710), ("Europe/Berlin", 18_927), ("Asia/Kathmandu", 15_000)),
)
"""Zones, and days after Monday, 5 January 1970, on which the offsets of most of them change."""


def _calendar(zone: str, day: int) -> Workload:
    """Return windows of days over readings around the begins of some days."""
    near_ms = (at + by for at in range(0, 3 * DAY_MS, 1_800_000) for by in (-1, 0))
    rows = [("a", (day + 3) * DAY_MS + at_ms, float(n)) for n, at_ms in enumerate(near_ms)]
    windows = f'x = sum("a", 1d, 1d, "{zone}"); y = count("a", 2d, 2d, "{zone}")'
    return _case(windows, rows[:150], rows[150:], lateness_us=0)


TELLING: Mapping[str, Workload] = {
    "nothing finite": _case('x = "a" / ("a" - "a")', [("a", 1, 1.0)], [("a", 2, 2.0)]),
    "redelivered in another micro-batch": _case(
        'x = sum("a", 4, 4)', [("a", 1, 1.0)], [("a", 1, 1.0)]
    ),
    "redelivered, where the watermark follows the disorder": _case(
        'x = sum("a", 4, 4)',
        [("a", 1, 1.0), ("a", 1, 1.0), ("a", 0, 1.0), ("a", 3, 1.0)],
        lateness_us=4_000,
        watermark="disorder",
    ),
    "missing values alone, where the watermark follows the disorder": _case(
        'x = sum("a", 4, 4)',
        [("a", 5, 1.0), ("a", 3, 1.0)],
        [("a", 9, NAN)],
        [("a", 8, 1.0), ("a", 7, 1.0), ("a", 2, 1.0)],
        lateness_us=4_000,
        watermark="disorder",
    ),
    "a missing value far ahead": _case(
        'x = sum("a", 4, 4)',
        [("a", 3, 1.0), ("a", 9, NAN), ("a", 2, 1.0)],
        lateness_us=2_000,
    ),
    "as late as may be": _case(
        'x = sum("a", 4, 4)', [("a", 3, 1.0), ("a", 1, 1.0)], lateness_us=2_000
    ),
    "a zero with a sign": _case('x = max("a", 1, 1)', [("a", 0, -0.0)]),
    "several values of a stamp": _case(
        'x = "a" + "b"', [("b", 1, 5.0), ("a", 1, 2.0), ("a", 1, 3.0), ("a", 1, 1.0)]
    ),
    "a value from an earlier micro-batch": _case(
        'x = "a" + "b"',
        [("b", 1, 5.0), ("b", 9, 6.0), ("a", 1, 1.0), ("a", 2, 2.0)],
        [("a", 3, 3.0)],
        lateness_us=0,
    ),
    "one input is known further than the other": _case(
        'x = "a" + "b"; y = max(x, 1, 1)',
        [("a", 1, 1.0), ("a", 2, 2.0), ("b", 1, 5.0), ("b", 2, 6.0), ("b", 3, 7.0)],
        flush=False,
        lateness_us=0,
    ),
    "sides that differ": _case('y = max("a", 1, 1); x = "b" - y', [("a", 0, 1.0), ("b", 1, 5.0)]),
    "the same twice": _case('x = max("a", 1, 1); y = max("a", 1, 1)', [("a", 0, 1.0)]),
    "a name that hides its sensor": _case(
        'a = sum("a", 2, 2); x = max("a", 4, 4)', [("a", 0, 1.0), ("a", 1, 2.0), ("a", 2, 1.0)]
    ),
    "two components": _case(
        'x = max("a", 1, 1); y = max("b", 1, 1)', [("a", 0, 1.0)], workers=2, cap_percent=200
    ),
    "twice in a union": _case(
        'x = sum(union("a", "b", "a"), 4, 4)', [("a", 1, 1.0), ("b", 1, 5.0)]
    ),
    "cut at edges": _case(
        'x = sum("a", 47, 8)',
        [("a", at_ms, float(1 << at_ms)) for at_ms in range(20)],
        per_hour=1_000 * SECOND,
    ),
    "finer values later": _case(
        'x = stddev("a", 8, 8)',
        [("a", 1, 0.5), ("a", 2, 2.0)],
        [("a", 3, 0.125), ("a", 4, 1.0)],
        lateness_us=0,
    ),
    "sums beyond 64 bits": _case(
        'x = sum("a", 16, 16); y = stddev("a", 16, 16)',
        [("a", at_ms, 2.0**60 if at_ms % 2 else 1.0) for at_ms in range(16)],
    ),
    "a larger value later": _case(
        'x = max("a", 8, 8); y = min("a", 8, 8)',
        [("a", 1, 0.5), ("a", 2, 2.0)],
        [("a", 3, 9.0), ("a", 4, -1.0)],
        lateness_us=0,
    ),
    "late for two workers": _case(
        'x = "a" + "b"; y = "a" - "c"',
        [("b", 1, 1.0), ("c", 1, 2.0), ("a", 3, 5.0), ("a", 1, 7.0)],
        lateness_us=1_000,
        workers=2,
        cap_percent=100,
    ),
    "read by two other workers": _case(
        'x = max("a", 2, 2); y = max(union("b", x), 4, 4); z = max(union("c", x), 4, 4)',
        [("a", 1, 5.0), ("b", 1, 1.0), ("c", 2, 1.0)],
        [("a", 6, 7.0), ("b", 5, 1.0), ("c", 6, 1.0)],
        workers=3,
        cap_percent=100,
    ),
    "a slice begins before the first tuple": _case(
        'x = sum("a", 2, 2)', [("a", 1, 1.0), ("a", 2, 1.0)]
    ),
    "at the end of a window": _case('x = sum("a", 1, 1)', [("a", 1, 1.0)]),
    "a slide that does not divide": _case('x = count("a", 3, 2)', [("a", 1, 1.0)]),
    "slices of different sizes": _case(
        'x = avg("a", 2, 1)', [("a", 0, 1.0), ("a", 1, 2.0), ("a", 1, 3.0)]
    ),
    "a silence since the last arrival, not since the first": _case(
        'x = sum("b", 4, 4); y = sum("a", 4, 4)',
        [("b", 0, 1.0), ("a", 9, 1.0), ("b", 1, 1.0)],
        [("a", 10, 1.0), ("b", 2, 1.0)],
        lateness_us=1_000,
        idle_after_us=2,
    ),
    "one name in two scripts": _case(
        'x = max("a", 1, 1)', [("a", 0, 1.0)], beside='x = max("b", 1, 1)'
    ),
    "results at the beginning of time, for other workers": _case(
        'x = max("a", 1, 1); y = max(union("b", x), 4, 4); z = max(union("c", x), 4, 4)',
        [("a", 0, 5.0), ("b", 1, 1.0), ("c", 2, 1.0)],
        [("a", 6, 7.0), ("b", 5, 1.0), ("c", 6, 1.0)],
        workers=3,
        cap_percent=100,
        lateness_us=0,
    ),
    "inputs at the beginning of time": _case(
        'x = "a" - "b"', [("a", 0, 5.0), ("a", 1, 6.0)], [("b", 0, 1.0)], lateness_us=0
    ),
    "some results are undefined": _case(
        'x = 1 / "a"; y = max(x, 4, 4)', [("a", 1, 0.0), ("a", 2, 2.0)]
    ),
    "a product with a sign": _case('x = "a" * 0', [("a", 1, -5.0)]),
    "a sum that no float64 has": _case(
        'x = avg("a", 4, 4)', [("a", 0, 2.0**53), ("a", 1, 1.0), ("a", 2, 0.0)]
    ),
    "the last day of all": _case(
        'x = sum("a", 1d, 1d, "Europe/Berlin"); y = sum("a", 2d, 1d, "America/St_Johns")',
        [("a", LAST_MS - DAY_MS, 1.0), ("a", LAST_MS, 2.0)],
        lateness_us=0,
    ),
    **{f"numbers of all sizes {seed}": _of_all_sizes(seed) for seed in range(12)},
    **{f"silent {seed}": _silent(seed) for seed in range(16)},
    **{f"days of {zone} after {day}": _calendar(zone, day) for zone, day in DAYS},
    **{f"out of order {seed}": _out_of_order(seed) for seed in range(24)},
}

WindowRates = Sequence[tuple[frozenset[str], int]]
"""Sensors of windows, each with the results of the window in an hour."""
Pairs = Sequence[tuple[int, int]]
"""Positions of two windows that an operation reads."""
Shares = tuple[WindowRates, Pairs, Mapping[str, int], int, int]
"""Windows and operations of a script, tuples an hour of its sensors, workers and cap."""


def draw_shares(random: Random) -> Shares:
    """Draw windows over neighbouring sensors, which do not fit into a worker as a whole."""
    names = "abcdefghij"
    read = dict[frozenset[str], int]()
    for _ in range(random.randint(4, 9)):
        first = random.randrange(len(names))
        own = frozenset(names[first : first + random.choice((1, 2, 2, 3))])
        read[own] = random.choice((1, 2, 5))
    pairs = [(n, m) for m in range(len(read)) for n in range(m)]
    pairs = random.sample(pairs, min(len(pairs), random.choice((0, 0, 0, 1, 2))))
    rates = {name: random.choice((1, 2, 3, 4, 6)) for name in names}
    return (
        [*read.items()],
        pairs,
        rates,
        random.choice((1, 2, 2, 3, 4)),
        random.choice((100, 100, 125, 150)),
    )


def script_of(
    windows: WindowRates, pairs: Pairs, rates: Mapping[str, int], workers: int, percent: int
) -> ScriptConfig:
    """Return the script of drawn windows and operations."""
    statements = []
    for number, (sensors, per_hour) in enumerate(windows):
        source, every_ms = Union(tuple(map(Sensor, sorted(sensors)))), 3_600_000 // per_hour
        statements.append(Statement(f"x{number}", Window("avg", source, every_ms, every_ms)))
    for number, pair in enumerate(pairs):
        left, right = (Name(f"x{each}") for each in pair)
        statements.append(Statement(f"y{number}", Arithmetic("-", left, right)))
    flow = Workflow("w", tuple(statements))
    return ScriptConfig((flow,), tuple(rates.items()), workers=workers, cap_percent=percent)
