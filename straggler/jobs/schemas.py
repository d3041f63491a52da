"""Schemas of inputs: what Spark makes of DDL, and what is known of it before Spark starts."""

import re
from contextlib import suppress

from pyspark.sql import types as sql

from model.vocabulary.settings import nearest
from straggler.errors import UsageError

_NAMES = "binary boolean byte date decimal double float integer long short string timestamp"
_PLAIN = {
    **{name: name for name in (*_NAMES.split(), "timestamp_ntz")},
    **dict.fromkeys(("dec", "numeric"), "decimal"),
    **dict.fromkeys(("char", "character", "varchar"), "string"),
    "bigint": "long",
    "int": "integer",
    "real": "float",
    "smallint": "short",
    "timestamp_ltz": "timestamp",
    "tinyint": "byte",
}
"""Names of plain types in DDL, and what PySpark calls them."""
_OTHERS = {"array", "geography", "geometry", "interval", "map", "struct", "time", "variant", "void"}
"""Types that are left to Spark."""
_COLUMN = re.compile(
    r"(\w+|`[^`]+`)(?:\s*:\s*|\s+)(\w+)\s*(?:\([\d\s,]*\))?(\s+not\s+null)?", re.IGNORECASE
)


def quoted(name: str) -> str:
    """Return the name of a column, whatever its characters are, as expressions and DDL take it."""
    return "`" + name.replace("`", "``") + "`"


def spark_schema(name: str, given: str | sql.StructType) -> sql.StructType:
    """Return the schema of an input, which Spark reads if it is DDL.

    Raise :class:`UsageError` if it is none.
    """
    if isinstance(given, sql.StructType):
        return given
    found: sql.DataType | None = None
    with suppress(Exception):
        found = sql.StructType.fromDDL(given)
    if not isinstance(found, sql.StructType):
        flat_schema(name, given)  # which names a wrong word
        odd = re.search(r"""[^\w\s,:()<>`'"]""", given, re.ASCII)
        hint = f"; a name with {odd[0]!r} needs backticks" if odd else ""
        raise UsageError(f"the schema of {name} is no DDL: {given!r}{hint}")
    return found


def flat_schema(name: str, ddl: str) -> sql.StructType | None:
    """Return the schema of an input whose columns are plain; ``None`` if only Spark can read it.

    Types are without their lengths. Raise :class:`UsageError` for a word that is no type.
    """
    found = sql.StructType()
    for text in re.split(r",(?![^(]*\))", ddl):
        column = _COLUMN.fullmatch(text.strip())
        if column is None:
            return None
        word = column[2].lower()
        if word not in _PLAIN and word not in _OTHERS:
            hint = nearest(word, sorted([*_PLAIN, *_OTHERS]))
            raise UsageError(f"the schema of {name} is no DDL: {column[2]!r} is no type{hint}")
        if word not in _PLAIN:
            return None
        found.add(column[1].strip("`"), _PLAIN[word], nullable=column[3] is None)
    return found
