"""The part of JSON Schema that the published schemas use, as a validator of its own."""

import operator
from collections.abc import Callable, Mapping
from typing import Any

TYPES: Mapping[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "number": (int, float),
    "integer": (int, float),
}
Checks = Mapping[str, Callable[[Any, Any], bool]]
"""Checks of a value by keyword; each gets the value and what the schema asks for."""


def is_valid(value: Any, schema: dict[str, Any]) -> bool:
    """Return whether a value obeys a schema; fail for a keyword that is not known here."""
    known = NOTES | OF_ALL.keys() | OF_NUMBERS.keys() | OF_OBJECTS.keys() | OF_ARRAYS.keys()
    assert schema.keys() <= known, schema.keys() - known
    checks = dict(OF_ALL)
    if isinstance(value, dict):
        checks.update(OF_OBJECTS)
        if not schema.get("additionalProperties", True) and value.keys() - schema["properties"]:
            return False
    elif isinstance(value, list):
        checks.update(OF_ARRAYS)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        checks.update(OF_NUMBERS)
    return all(checks[name](value, asked) for name, asked in schema.items() if name in checks)


def _has_type(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    is_whole = name != "integer" or not isinstance(value, float) or value.is_integer()
    return isinstance(value, TYPES[name]) and is_whole


def _equals(value: Any, other: Any) -> bool:
    return bool(value == other) and type(value) is type(other)


NOTES = {"$schema", "title", "description", "additionalProperties"}
OF_ALL: Checks = {
    "type": _has_type,
    "const": _equals,
    "enum": lambda value, asked: any(_equals(value, each) for each in asked),
    "oneOf": lambda value, asked: sum(is_valid(value, each) for each in asked) == 1,
    "anyOf": lambda value, asked: any(is_valid(value, each) for each in asked),
}
OF_NUMBERS: Checks = {
    "minimum": operator.ge,
    "maximum": operator.le,
    "exclusiveMinimum": operator.gt,
    "exclusiveMaximum": operator.lt,
}
OF_OBJECTS: Checks = {
    "required": lambda value, asked: value.keys() >= set(asked),
    "properties": lambda value, asked: all(
        is_valid(value[name], each) for name, each in asked.items() if name in value
    ),
}
OF_ARRAYS: Checks = {
    "minItems": lambda value, asked: len(value) >= asked,
    "maxItems": lambda value, asked: len(value) <= asked,
    "items": lambda value, asked: all(is_valid(each, asked) for each in value),
    "prefixItems": lambda value, asked: all(map(is_valid, value, asked)),
}
