"""The part of JSON Schema that the published schemas use, as a validator of its own."""

from typing import Any

TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "number": (int, float),
    "integer": (int, float),
}
KNOWN = {
    *("$schema", "title", "description", "type", "const", "enum", "oneOf", "anyOf"),
    *("properties", "required", "additionalProperties", "items", "prefixItems"),
    *("minItems", "maxItems", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
}


def is_valid(value: Any, schema: dict[str, Any]) -> bool:
    """Return whether a value obeys a schema; fail for a keyword that is not known here."""
    assert schema.keys() <= KNOWN, schema.keys() - KNOWN
    return all(
        (
            _has_type(value, schema),
            _equals(value, schema),
            _is_within(value, schema),
            "oneOf" not in schema or sum(is_valid(value, each) for each in schema["oneOf"]) == 1,
            "anyOf" not in schema or any(is_valid(value, each) for each in schema["anyOf"]),
            not isinstance(value, dict) or _is_object(value, schema),
            not isinstance(value, list) or _is_array(value, schema),
        )
    )


def _has_type(value: Any, schema: dict[str, Any]) -> bool:
    name = schema.get("type")
    if name is None:
        return True
    if isinstance(value, bool) and name != "boolean":
        return False
    whole = name != "integer" or not isinstance(value, float) or value.is_integer()
    return isinstance(value, TYPES[name]) and whole


def _equals(value: Any, schema: dict[str, Any]) -> bool:
    allowed = schema.get("enum", [schema["const"]] if "const" in schema else None)
    return allowed is None or any(value == each and type(value) is type(each) for each in allowed)


def _is_within(value: Any, schema: dict[str, Any]) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return True
    return (
        ("minimum" not in schema or value >= schema["minimum"])
        and ("maximum" not in schema or value <= schema["maximum"])
        and ("exclusiveMinimum" not in schema or value > schema["exclusiveMinimum"])
        and ("exclusiveMaximum" not in schema or value < schema["exclusiveMaximum"])
    )


def _is_object(value: dict[str, Any], schema: dict[str, Any]) -> bool:
    fields = schema.get("properties", {})
    return (
        value.keys() >= set(schema.get("required", ()))
        and (schema.get("additionalProperties", True) or value.keys() <= fields.keys())
        and all(is_valid(value[name], each) for name, each in fields.items() if name in value)
    )


def _is_array(value: list[Any], schema: dict[str, Any]) -> bool:
    one_by_one = zip(value, schema.get("prefixItems", ()), strict=False)
    return (
        schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value))
        and all(is_valid(each, schema["items"]) for each in value if "items" in schema)
        and all(is_valid(each, item) for each, item in one_by_one)
    )
