"""Inputs of room ``grouping``: tuples with skewed keys, in order of arrival.

A file needs no times: without them its rows arrive in file order. It needs no values either.
"""

import platform
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice

import numpy as np

from sim.words import read_words
from straggler.errors import UsageError
from straggler.inputs import inputs
from straggler.inputs.columns import Columns
from straggler.inputs.tables import Recording, arrivals

TOKENS = 20_000
"""Number of words that are read."""
FLIGHTS = 100_000


def load(name: str, seed: int, columns: Columns) -> Recording:
    """Return the input called ``name``, or in the file ``name``.

    Raise :class:`UsageError` for an unknown name, and for a file without keys.
    """
    columns = replace(columns, needs_times=False, needs_values=False)
    recording = inputs.load(name, seed, columns, NAMED)
    if not any(event.key for event in recording.events):
        raise UsageError(f"there are no keys in {recording.label}: --key names a column")
    return recording


def tokens(_seed: int) -> Recording:
    """Return the first words of the standard library's modules, by module name; value = line.

    The words depend on the version of Python, so the label names it.
    """
    found = list(islice(read_words(), TOKENS))
    number = np.arange(len(found), dtype=np.int64)
    lines = [float(line) for _, line in found]
    events = arrivals(number, [word for word, _ in found], number, lines, number)
    return Recording("tokens", f"tokens ({platform.python_version()})", events)


def flights(_seed: int) -> Recording:
    """Return the first 100,000 flights of the year, until April, by destination."""
    return Recording("flights", "flights", inputs.flights_by("dest", FLIGHTS))


def tailnum(_seed: int) -> Recording:
    """Return the same flights by the registration of their aircraft: thousands of keys."""
    return Recording("tailnum", "tailnum", inputs.flights_by("tailnum", FLIGHTS))


NAMED: Mapping[str, inputs.Named] = {
    "tokens": tokens,
    "flights": flights,
    "tailnum": tailnum,
}
"""Inputs that need no recording: a function from a seed, by name."""
DEFAULT = (*NAMED, "nasa_http")
