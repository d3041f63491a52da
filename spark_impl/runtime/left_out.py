"""Files that Spark's file source has not read and will not read, each with the reason.

Spark says nothing about them. Its log of files is in the checkpoint, ``sources/<n>``: a line for
each file that it has read, with its modification time.
"""

import json
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow.fs as fs
from pyspark.sql import DataFrame

from spark_impl.runtime.storage import Location, locate, reading

_DAY_MS = 86_400_000
_FOREVER_MS = 1 << 62
_BRACES = re.compile(r"\{([^{}]*)\}")
_MAGIC = re.compile(r"[*?\[{]")


class LeftOut(NamedTuple):
    """A file that Spark's file source leaves out."""

    file: str
    """The address."""
    reason: str


class Source(NamedTuple):
    """A source of files of a stream."""

    paths: list[str]
    """Folders and patterns; none for a source that reads no files."""
    pattern: str | None
    """The pattern of names that are read (``pathGlobFilter``), None for any."""
    is_recursive: bool
    """True if folders below are read, whatever their names are (``recursiveFileLookup``)."""
    max_age_ms: int
    """Age beside the newest file at which a file is not read any more (``maxFileAge``)."""


def files_left_out(rows: DataFrame, checkpoint: Location) -> list[LeftOut]:
    """Return the files that the sources of a stream leave out, in the order of their addresses.

    A file that is still to be read is none of them.
    """
    found = set[LeftOut]()
    for number, source in enumerate(_sources(rows)):
        if source is None:
            continue
        known = _read_log(checkpoint / "sources" / str(number))
        for path in source.paths:
            found.update(look_at(path, source, known))
    return sorted(found)


def _sources(rows: DataFrame) -> Iterator[Source | None]:
    """Yield the sources of a stream in the order of their numbers, None if one reads no files."""
    jvm: Any = rows.sparkSession._jvm
    leaves: Any = rows._jdf.queryExecution().analyzed().collectLeaves()
    seen = set()
    for leaf in (leaves.apply(number) for number in range(leaves.length())):
        kind = str(leaf.getClass().getSimpleName())
        if not kind.startswith("StreamingRelation") or leaf.hashCode() in seen:
            continue
        seen.add(leaf.hashCode())
        if kind != "StreamingRelation":  # a source of another interface, which reads no files
            yield None
            continue
        given = leaf.dataSource()
        names = _texts(given.options().keys())
        options = {name.lower(): str(given.options().apply(name)) for name in names}
        path, flags = options.get("path"), {n for n, v in options.items() if v.lower() == "true"}
        # Spark has no maxFileAge then: older files wait for their turn.
        is_limited = not options.keys().isdisjoint(("maxfilespertrigger", "maxbytespertrigger"))
        times = jvm.org.apache.spark.network.util.JavaUtils
        age_ms = int(times.timeStringAsMs(options.get("maxfileage", "7d")))
        yield Source(
            _texts(given.paths()) if path is None else [path],
            options.get("pathglobfilter"),
            "recursivefilelookup" in flags,
            _FOREVER_MS if is_limited and "latestfirst" in flags else age_ms,
        )


def _texts(of_scala: Any) -> list[str]:
    return [each for each in str(of_scala.mkString("\n")).split("\n") if each]


def _read_log(folder: Location) -> dict[str, int]:
    """Return the last modification time (ms) of each file that a source has read, by its path."""
    known: dict[str, int] = {}
    for file in folder.children(r"\d+(\.compact)?"):
        for line in file.read_bytes().decode("utf-8").splitlines()[1:]:
            entry = json.loads(line)
            path = locate(unquote(entry["path"])).path
            known[path] = max(entry["timestamp"], known.get(path, 0))
    return known


def look_at(path: str, source: Source, known: Mapping[str, int]) -> Iterator[LeftOut]:
    """Yield the files at a path that are left out, given those that were read."""
    oldest_ms = max(known.values(), default=0) - source.max_age_ms
    age = f"{source.max_age_ms / _DAY_MS:g} days"
    for file, folders, mtime_ms in _files(path):
        if (read_ms := known.get(file.path)) is not None:
            if read_ms >= oldest_ms and mtime_ms != read_ms:
                reason = "was rewritten under the name of a file that was read before"
                yield LeftOut(str(file), reason)
            continue
        if file.name.startswith(("_", ".")):
            reason = "is hidden: its name begins with _ or ."
        elif not _matches(file.name, source.pattern or "*"):
            reason = f"does not match pathGlobFilter, {source.pattern!r}"
        elif not source.is_recursive and any("=" not in each for each in folders):
            reason = "lies in a folder below, and recursiveFileLookup is not set"
        elif mtime_ms < oldest_ms:
            reason = f"is older than maxFileAge, {age}, beside the newest file that was read"
        else:
            continue  # it is still to be read
        yield LeftOut(str(file), reason)


def _files(path: str) -> Iterator[tuple[Location, list[str], int]]:
    """Yield the files at a path of Spark's, which may be a pattern.

    Each has the names of the folders below the path that it lies in, and its modification time
    (ms). What lies in a hidden folder is left out.
    """
    base = locate(path)
    magic = _MAGIC.search(base.path)
    folder = Location(base.path[: magic.start()].rsplit("/", 1)[0], base.system) if magic else base
    chosen = fs.FileSelector(folder.path, allow_not_found=True, recursive=True)
    with reading(folder):
        entries = folder.files.get_file_info(chosen)
    for each in entries:
        folders = each.path.removeprefix(folder.path).strip("/").split("/")[:-1]
        if each.type != fs.FileType.File or any(name.startswith(("_", ".")) for name in folders):
            continue
        file = Location(each.path, base.system)
        if magic and not any(_matches(at, base.path) for at in (file.path, file.parent.path)):
            continue
        if not file.name.endswith(".crc"):
            yield file, [] if magic else folders, each.mtime_ns // 1_000_000


def _matches(path: str, pattern: str) -> bool:
    """Return whether a path matches a pattern of Hadoop's: ``*`` crosses no /, {a,b} is a or b."""
    found = _BRACES.search(pattern)
    if found is not None:
        start, end = pattern[: found.start()], pattern[found.end() :]
        return any(_matches(path, f"{start}{each}{end}") for each in found[1].split(","))
    names, wanted = path.split("/"), pattern.replace("[^", "[!").split("/")
    return len(names) == len(wanted) and all(map(fnmatchcase, names, wanted))
