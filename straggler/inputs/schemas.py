"""JSON Schemas of the lines of workloads and traces, derived from the declared fields.

A schema describes one line. It is necessary, not sufficient: what belongs together, such as the
number of steps at the end of a trace, is checked by the reader alone.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import MISSING
from inspect import getdoc
from pathlib import Path
from typing import Any, TypeAlias

from model.vocabulary import Event
from model.vocabulary.settings import TOO_LONG_US, Setting, Settings, defaults_of, settings_of
from model.vocabulary.trace import VERSION, FieldType, field_types, kind_of
from model.vocabulary.workload import NOT_FINITE
from model.vocabulary.workload import VERSION as WORKLOAD_VERSION
from sim.calibration import COSTS, Calibration
from sim.calibration import VERSION as CALIBRATION_VERSION
from straggler.rooms import Room

Schema: TypeAlias = dict[str, Any]

FOLDER = Path(__file__).parent / "schemas"
"""Folder of the published files, which a test compares with this module."""
DIALECT = "https://json-schema.org/draft/2020-12/schema"
INTEGER: Schema = {"type": "integer", "minimum": -(1 << 63), "maximum": (1 << 63) - 1}
_TYPES: Mapping[type, Schema] = {
    int: INTEGER,
    float: {"type": "number"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
}
_BOUNDS = {
    "at_least": "minimum",
    "above": "exclusiveMinimum",
    "at_most": "maximum",
    "below": "exclusiveMaximum",
}


def trace_schema(room: Room) -> Schema:
    """Return the schema of a line of a trace: the header, a step of the room, or the end.

    Fields that only level ``steps`` compares are optional in kinds of steps that are answers.
    """
    header = _object({"trace": {"const": VERSION}, "producer": {"type": "string"}}, ["trace"])
    end = _object({"end": {"type": "integer", "minimum": 0}}, ["end"])
    steps = [_step(word, room.answers.get(word)) for word in room.words]
    title = f"A line of a trace of room {room.name}"
    return {"$schema": DIALECT, "title": title, "oneOf": [header, *steps, end]}


def _step(word: Any, answers: Collection[str] | None) -> Schema:
    declared = field_types(word)
    fields = {"kind": {"const": kind_of(word)}}
    fields |= {name: _field(each) for name, each in declared.items()}
    needed = declared if answers is None else answers
    return {"description": getdoc(word), **_object(fields, ["kind", *needed])}


def _field(declared: FieldType) -> Schema:
    one = _TYPES[declared.kind]
    return {"type": "array", "items": one} if declared.is_tuple else one


def workload_schema(configs: Mapping[str, type[Settings]]) -> Schema:
    """Return the schema of a workload; ``configs`` maps each room to its settings."""
    rooms = [
        {"properties": {"room": {"const": room}, "config": _config(config)}}
        for room, config in configs.items()
    ]
    fields: Schema = {
        "version": {"const": WORKLOAD_VERSION},
        "room": {"enum": list(configs)},
        "name": {"type": "string"},
        "seed": {"type": "integer"},
        "config": {"type": "object"},
        "cuts": {"type": "array", "items": {"type": "integer", "minimum": 0}},
        "faults": {"type": "array"},
        "flush": {"type": "boolean"},
        "arrivals": {"type": "array", "items": _arrival()},
    }
    whole = _object(fields, list(fields))
    return {"$schema": DIALECT, "title": "A workload", **whole, "oneOf": rooms}


def calibration_schema() -> Schema:
    """Return the schema of a file of ``straggler calibrate``."""
    schema = _config(Calibration)
    for name in COSTS:
        schema["properties"][name] |= {"minItems": 3, "maxItems": 3}
    schema["properties"]["version"] = {"const": CALIBRATION_VERSION}
    return {"$schema": DIALECT, "title": "A calibration", **schema}


def _arrival() -> Schema:
    fields = [_field(each) for each in field_types(Event).values()]
    fields[Event._fields.index("value")] = {
        "anyOf": [{"type": "number"}, {"enum": list(NOT_FINITE)}],
    }
    named = [{"title": name, **each} for name, each in zip(Event._fields, fields, strict=True)]
    return {"type": "array", "prefixItems": named, "minItems": len(named), "maxItems": len(named)}


def _config(kind: type[Settings]) -> Schema:
    known = settings_of(kind)
    defaults = defaults_of(kind)
    fields = {
        name: _setting(known[name]) if name in known else {"type": "array"} for name in defaults
    }
    return _object(fields, [name for name, default in defaults.items() if default is MISSING])


def _setting(setting: Setting) -> Schema:
    one: Schema = dict(_TYPES[setting.kind]) if setting.kind is not int else {"type": "integer"}
    if setting.choices:
        one["enum"] = list(setting.choices)
    for name, keyword in _BOUNDS.items():
        if getattr(setting, name) is not None:
            one[keyword] = getattr(setting, name)
    if setting.name.endswith("_us") and setting.at_most is None:
        one["exclusiveMaximum"] = TOO_LONG_US
    if setting.is_tuple:
        one = {"type": "array", "items": one}
    if setting.is_optional:
        one = {"anyOf": [one, {"type": "null"}]}
    return {"description": setting.help, **one}


def _object(fields: Schema, required: Collection[str]) -> Schema:
    return {
        "type": "object",
        "properties": fields,
        "required": list(required),
        "additionalProperties": False,
    }


def write(schema: Schema) -> str:
    """Return the text of a schema file."""
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
