"""A Python interpreter without our packages, like those on the machines of a cluster.

Tests run in an environment where Straggler is installed, which would hide whatever an archive
lacks. This interpreter has only what docs/production.md tells a user to install on every machine.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

REQUIRED = ("pyspark", "numpy", "pyarrow", "deltalake", "pandas", "protobuf", "scipy", "xxhash")
"""Packages that every machine of a cluster needs."""


def isolate_python(folder: Path, required: Iterable[str] = REQUIRED) -> dict[str, str]:
    """Make an interpreter in ``folder``; return an environment in which Spark starts it.

    The interpreter has the packages that are ``required`` and those that they need, and no others.
    Spark's scratch files stay in ``folder``.
    """
    packages = folder / "packages"
    packages.mkdir(parents=True)
    for source in _entries(_with_dependencies(required)):
        (packages / source.name).symlink_to(source)
    interpreter = folder / "python"
    interpreter.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n', encoding="utf-8")
    interpreter.chmod(0o755)
    return _environment(
        {
            "PYTHONPATH": str(packages),
            "PYSPARK_PYTHON": str(interpreter),
            "PYSPARK_DRIVER_PYTHON": str(interpreter),
            "SPARK_HOME": str(packages / "pyspark"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(folder),
            "TMPDIR": str(folder),
            "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={folder} -XX:TieredStopAtLevel=1",
        }
    )


def _with_dependencies(names: Iterable[str]) -> set[str]:
    """Return packages with their direct and indirect dependencies."""
    found: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            needs = [Requirement(text) for text in distribution(name).requires or ()]
            left += [
                need.name
                for need in needs
                if need.marker is None or need.marker.evaluate({"extra": ""})
            ]
    return found


def _entries(names: Iterable[str]) -> Iterator[Path]:
    """Yield the top-level files and folders of some installed packages."""
    for name in names:
        found = distribution(name)
        for top in sorted({file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}):
            yield Path(str(found.locate_file(top)))


def _environment(ours: Mapping[str, str]) -> dict[str, str]:
    """Return ``ours`` and the environment of this process without settings of Spark and Python."""
    theirs = ("PYSPARK_", "PYTHON", "SPARK_")
    return {k: v for k, v in os.environ.items() if not k.startswith(theirs)} | dict(ours)
