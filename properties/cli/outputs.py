"""Files and folders that a command will write, tried before it does anything else.

A run may take an hour: that its result cannot be written is to be known before, not after.
"""

import os
import tempfile
from argparse import Namespace
from contextlib import ExitStack
from pathlib import Path

from properties.errors import UsageError

WRITTEN = ("json", "junit", "plot", "svg", "markdown", "output", "reproduction")
READ = ("experiments", "files", "input", "r", "s", "script", "scripts")
"""Arguments of commands that name files."""


def refuse_unwritable(option: str, path: Path | None) -> None:
    """Refuse a file that cannot be written; what is there stays as it is.

    Raises :class:`UsageError` with one sentence that names the option and the path.
    """
    if path is None:
        return
    name = f"{option} {str(path)!r}"
    try:
        # Through links: what is removed below is the file that was made, never a link to it.
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
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        raise UsageError(f"{name} cannot be written: {_why(error)}") from error


def refuse_overwriting(args: Namespace) -> None:
    """Refuse to write a file that the command reads, or writes for another option, as well.

    Raises :class:`UsageError` with one sentence that names the option and the path.
    """
    named = [
        (option, os.path.realpath(each))
        for option, value in vars(args).items()
        for each in (value if isinstance(value, list) else [value])
        if option in WRITTEN + READ and isinstance(each, str | Path)
    ]
    for option, path in named:
        if Path(path).is_char_device():
            continue  # such as /dev/null
        if option in WRITTEN and any(path == other for to, other in named if to != option):
            name = str(getattr(args, option))
            raise UsageError(f"--{option} {name!r} is named twice; it would be overwritten")


def refuse_unmakable(option: str, folder: Path) -> None:
    """Refuse a folder in which no file can be made; one that is not there yet is not left there.

    Raises :class:`UsageError` with one sentence that names the option and the path.
    """
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
        raise UsageError(f"{name}: no file can be made there: {_why(error)}") from error


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
