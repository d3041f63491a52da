"""Schemas of inputs: what Spark makes of DDL."""

import re

from pyspark.sql import types as sql

from straggler.errors import UsageError


def quoted(name: str) -> str:
    """Return the name of a column, whatever its characters are, as expressions and DDL take it."""
    return "`" + name.replace("`", "``") + "`"


def spark_schema(name: str, given: str | sql.StructType) -> sql.StructType:
    """Return the schema of an input, which Spark reads if it is DDL.

    Raise :class:`UsageError` if it is none.
    """
    if isinstance(given, sql.StructType):
        return given
    said = "its columns have no names"
    try:
        found: sql.DataType = sql.StructType.fromDDL(given)
        if isinstance(found, sql.StructType):
            return found
    except Exception as error:  # of a parser in Java
        said = str(error).strip().partition("\n")[0]
    odd = re.search(r"""[^\w\s,:()<>`'"]""", given, re.ASCII)
    hint = f"; a name with {odd[0]!r} needs backticks" if odd else ""
    raise UsageError(f"the schema of {name} is no DDL: {given!r}: {said}{hint}")
