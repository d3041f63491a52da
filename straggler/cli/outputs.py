"""Output files: checks that they can be written, before a command does anything else, and rows.

A run may take an hour, so that an impossible output has to be refused before it begins.
"""

import json
import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from model.vocabulary.iso_times import write_time
from straggler.errors import UsageError
from straggler.inputs.text_files import cannot_be_replaced, reason_of, write_output
from straggler.options import STDIO, Arguments

if TYPE_CHECKING:
    import pyarrow as pa

WRITTEN = ("json", "plot", "markdown", "output")
ON_STDOUT = ("--json", "--markdown")
"""Options whose file may be :data:`STDIO`."""
READ = (
    "experiments",
    "files",
    "input",
    "r",
    "s",
    "script",
    "scripts",
    "trace",
    "workload",
)
"""Arguments that name files which a command reads."""
FROM_STDIN = ("input", "r", "s", "trace", "workload")
"""Arguments whose file may be standard input, which has the same name as :data:`STDIO`."""
SUFFIXES = (".csv", ".parquet")
"""Endings of files of rows."""


def write_json(path: Path | None, record: object) -> None:
    """Write plain data as :func:`write_output` writes texts."""
    write_output(path, json.dumps(record, indent=1) + "\n")


def refuse_unwritable(option: str, path: Path | None) -> None:
    """Raise :class:`UsageError` if a file cannot be written; an existing file stays as it is.

    :func:`write_output` needs a folder in which another file can be made.
    """
    if path is None or (path == STDIO and option in ON_STDOUT):
        return
    name = f"{option} {str(path)!r}"
    try:
        # Follow links, so that the file created here is removed below, never a link to it.
        target = path.resolve()
        if target.is_dir():
            raise UsageError(f"{name} is a folder; it must be a file")
        if not target.parent.is_dir():
            raise UsageError(f"{name}: there is no such folder")
        existed = target.exists()
        with target.open("a"):
            pass
        if not existed:
            target.unlink()
        if not cannot_be_replaced(target):
            tempfile.TemporaryFile(dir=target.parent).close()
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        raise UsageError(f"{name} cannot be written: {reason_of(error)}") from error


def refuse_overwriting(args: Arguments) -> None:
    """Raise :class:`UsageError` if a command would write a file that it also reads or writes."""
    named = [
        (option, os.path.realpath(each))
        for option, value in vars(args).items()
        for each in (value if isinstance(value, tuple) else [value])
        if option in WRITTEN + READ and isinstance(each, str | Path)
        if option not in FROM_STDIN or each != STDIO
    ]
    for option, path in named:
        if Path(path).is_char_device():
            continue  # such as /dev/null
        if option in WRITTEN and any(path == other for to, other in named if to != option):
            name = str(getattr(args, option))
            raise UsageError(f"--{option} {name!r} is named twice; it would be overwritten")


def refuse_unmakable(option: str, folder: Path) -> None:
    """Raise :class:`UsageError` if no file can be created in ``folder``; leave nothing behind."""
    try:
        target = folder.resolve()
        missing = [each for each in (target, *target.parents) if not each.exists()]
        with ExitStack() as made:
            for each in reversed(missing):
                each.mkdir()
                made.callback(each.rmdir)
            tempfile.TemporaryFile(dir=target).close()
    except (OSError, RuntimeError) as error:
        name = f"{option} {str(folder)!r}"
        raise UsageError(f"{name}: no file can be made there: {reason_of(error)}") from error


# ----------------------------------------------------------------------------------------- rows


def refuse_table(path: Path | None) -> None:
    """Raise :class:`UsageError` if rows cannot be written to the file of ``--output``."""
    refuse_unwritable("--output", path)
    if path is not None and path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"--output {str(path)!r}: its name must end in {' or '.join(SUFFIXES)}")


def write_table(found: "pa.Table", path: Path) -> None:
    """Write rows as Parquet or, without that ending, as CSV; a file is complete, or as it was."""
    # Imported here because pyarrow takes a second that other commands do not need.
    import pyarrow as pa
    from pyarrow import csv, parquet

    from sim.sweep.store import WriteFailed, replace_when_complete

    if path.suffix.lower() == ".parquet":
        try:
            with replace_when_complete(path.resolve()) as beside:
                parquet.write_table(found, beside, compression="zstd")
        except WriteFailed as error:
            raise UsageError(str(error)) from error
    else:
        content = pa.BufferOutputStream()
        csv.write_csv(with_texts(found), content)
        write_output(path, content.getvalue().to_pybytes().decode())


def with_texts(found: "pa.Table") -> "pa.Table":
    """Return rows with times as texts of ISO 8601.

    pyarrow needs a file of the system even for UTC, and has no years above 32767.
    """
    import pyarrow as pa

    for at, field in enumerate(found.schema):
        if pa.types.is_timestamp(field.type):
            times_us = found.column(at).cast(pa.int64()).to_pylist()
            texts = [None if each is None else write_time(each) for each in times_us]
            found = found.set_column(at, field.name, pa.array(texts, pa.string()))
    return found
