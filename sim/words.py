"""Real skewed streams: the words of Python's standard library, and the lines of a file."""

import re
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from model.vocabulary.settings import require

_WORD = re.compile(r"[A-Za-z]\w*")


def read_words() -> Iterator[tuple[str, int]]:
    """Yield the words of the standard library's modules, by module name, with line numbers.

    The words depend on the version of Python.
    """
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    # Builds and packages of Python add other modules.
    for file in (each for each in files if each.stem in sys.stdlib_module_names):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            for word in _WORD.findall(line):
                yield word, number


def read_keys(file: str) -> list[str]:
    """Return the lines of a file; raise ``ValueError`` if there is none."""
    try:
        lines = Path(file).read_text(encoding="utf-8-sig").removesuffix("\n").split("\n")
    except (OSError, ValueError) as error:  # such as bytes that are no UTF-8
        msg = f"keys_file is {file!r}, which cannot be read ({error})"
        raise ValueError(msg) from error
    require(lines != [""], "keys_file", file, "a file with a key in each line")
    return lines
