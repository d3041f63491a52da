"""Workloads and traces as lines of JSON: how systems in any language take part.

Rules of this file:

* A line of a file of workloads is a workload, as :meth:`Workload.to_json` returns it.
* A file of traces has the trace of each workload, in the same order, as :meth:`Trace.lines` yields
  it. A trace has an end, so that one that stops halfway is never taken for a whole one.
* A refusal names the file, the line and the field.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from model.vocabulary import Event, Trace, Workload
from model.vocabulary.settings import PlainData, nearest, require
from model.vocabulary.trace import TraceReader, parse_object, refuse_long_integers
from model.vocabulary.workload import VERSION
from straggler.errors import UsageError, counted
from straggler.inputs.text_files import name_of, read_lines

FAULTS = ("restart", "kill")
_FIELDS: Mapping[str, tuple[type, str]] = {
    "version": (int, "an integer"),
    "room": (str, "a text"),
    "name": (str, "a text"),
    "seed": (int, "an integer"),
    "config": (dict, "an object"),
    "cuts": (list, "an array"),
    "faults": (list, "an array"),
    "flush": (bool, "true or false"),
    "time_unit": (str, "a text"),
    "arrivals": (list, "an array"),
}


def workload_line(workload: Workload) -> str:
    """Return a workload as a line of JSON."""
    text = json.dumps(workload.to_json(), ensure_ascii=False, allow_nan=False)
    return text + "\n"


def read_workloads(path: Path) -> list[Workload]:
    """Read a file of workloads; raise :class:`UsageError` for a bad line, or if there is none."""
    found = []
    for number, line in read_lines(path):
        try:
            data = parse_object(line)
            found.append(parse_workload(data))
            refuse_long_integers({name: data[name] for name in data if name != "arrivals"})
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise UsageError(f"{name_of(path)}, line {number}: {error}") from error
    if not found:
        raise UsageError(f"{name_of(path)} is empty; it must have a workload in every line")
    return found


def read_traces(path: Path, readers: Sequence[TraceReader]) -> list[Trace]:
    """Read a file with one trace for each reader.

    Raise :class:`UsageError` for a bad line, and for too many or too few traces.
    """
    found: list[Trace] = []
    number = 0
    for number, line in read_lines(path):
        if len(found) == len(readers):
            many = counted(len(readers), "workload")
            raise UsageError(f"{name_of(path)}, line {number}: a line after the traces of {many}")
        try:
            trace = readers[len(found)].feed(line)
        except ValueError as error:
            raise UsageError(f"{name_of(path)}, line {number}: {error}") from error
        found += [] if trace is None else [trace]
    if len(found) < len(readers):
        trace_number = f"trace {len(found) + 1} of {len(readers)}"
        what = "is missing" if readers[len(found)].is_between else "has no end"
        end = 'a trace ends with {"end": N}, the number of its steps'
        raise UsageError(f"{name_of(path)}, after line {number}: {trace_number} {what}; {end}")
    return found


# --------------------------------------------------------------------------- checks of a workload


def parse_workload(data: PlainData) -> Workload:
    """Return a workload from plain data, every field of it checked.

    Raise ``ValueError`` with one sentence that names the offending value.
    """
    if not isinstance(data, dict):
        raise ValueError(f"its workload is {data!r}, which is no object")
    if data.get("version") == VERSION:
        _refuse_fields(data)
    workload = Workload.from_json(data)
    for fault in workload.faults:
        if fault.kind not in FAULTS:
            raise ValueError(f"there is no fault {fault.kind!r}, only {', '.join(FAULTS)}")
        if type(fault.at) is not int or fault.at < 0:
            raise ValueError(f"a {fault.kind} is at {fault.at!r}; it must be the number of a batch")
    arrivals = tuple(_event(*item) for item in enumerate(workload.arrivals))
    if any(left.arrival_us > right.arrival_us for left, right in pairwise(arrivals)):
        raise ValueError("its arrivals are not in order of arrival_us")
    return workload.with_(arrivals=arrivals)


def _refuse_fields(data: dict[str, PlainData]) -> None:
    for name in _FIELDS:
        if name not in data and name != "time_unit":
            raise ValueError(f"the field {name!r} of a workload is missing")
    for name, value in data.items():
        if name not in _FIELDS:
            msg = f"a workload has no field {name!r}, only {', '.join(_FIELDS)}"
            raise ValueError(msg + nearest(name, _FIELDS))
        kind, expected = _FIELDS[name]
        require(type(value) is kind, name, value, expected)
    for cut in data["cuts"]:
        require(type(cut) is int, "a cut", cut, "an integer")


def _event(position: int, event: Event) -> Event:
    for name in ("seq", "source_id", "event_time_us", "arrival_us"):
        value = getattr(event, name)
        if type(value) is not int or not -(2**63) <= value < 2**63:
            raise _bad_arrival(position, name, value, "an integer of 64 bits")
    if event.seq != position:
        raise _bad_arrival(position, "seq", event.seq, str(position))
    if not isinstance(event.key, str):
        raise _bad_arrival(position, "key", event.key, "a text")
    if type(event.value) not in (int, float):
        raise _bad_arrival(position, "value", event.value, "a number")
    if not isinstance(event.stream, str):
        raise _bad_arrival(position, "stream", event.stream, "a text")
    for value in event.more:
        good = value is None or isinstance(value, str | bool | float)
        if not good and not (type(value) is int and -(2**63) <= value < 2**63):
            expected = "texts, numbers, true, false and null, with integers of 64 bits"
            raise _bad_arrival(position, "more", event.more, expected)
    return event._replace(value=float(event.value))


def _bad_arrival(position: int, name: str, value: object, expected: str) -> ValueError:
    return ValueError(f"{name} of arrival {position} is {value!r}; it must be {expected}")
