"""A real skewed stream: the words of Python's standard library, in their order."""

import re
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

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
