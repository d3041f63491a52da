"""Folders of judged engines: what ``engine.toml`` says, and where the files of an engine are.

Rules of this file:

* An engine is a folder with ``engine.toml``, ``requirements.txt``, ``adapter.py`` and scripts in
  ``trails``. Its environment is another folder of the same name, which has Python and the engine.
* A refusal is one sentence with the name of the file and the offending value.
"""

import subprocess
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model.vocabulary.settings import JsonObject, PlainData, nearest
from straggler.conformance.judgements import ARRIVAL, LATE_BY
from straggler.conformance.promises import PROMISES
from straggler.errors import UsageError

FILE = "engine.toml"
_TEXTS = ("title", "package", "version", "homepage", "about")
_FIELDS = (*_TEXTS, "timeout_s", "unasked", "case", "finding")
_CASE = ("promise", "how", "late_by", "settings", "stream")
_STREAM: Mapping[str, type] = {
    "redeliveries": bool,
    "time_factor": int,
    "arrivals_max": int,
    "batch": int,
}
_FINDING = ("promise", "sentence", "script", "says", "address", "how")


@dataclass(frozen=True, slots=True)
class Asked:
    """A promise that an engine is asked for, and the workloads that it can express."""

    promise: str
    how: str
    """Sentence that says how the adapter expresses the query."""
    settings: Mapping[str, Sequence[PlainData]]
    """Values that a drawn setting may have, by name."""
    redeliveries: bool = True
    """False if no tuple is delivered twice."""
    time_factor: int = 1
    """Number by which every time is multiplied, for engines with a coarser clock."""
    arrivals_max: int | None = None
    """Most arrivals of a stream, for engines that take long for each."""
    batch: int | None = None
    """Arrivals of a micro-batch, instead of the drawn micro-batches."""
    late_by: str = ARRIVAL
    """``arrival`` or ``micro-batch``: whose watermark tells what is late."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A defect of an engine, or a report of one, with a script that tries it on the engine."""

    promise: str
    """Name of the promise that it breaks; empty if it concerns none of ours."""
    sentence: str
    script: str
    """Name of the script in the folder ``trails``."""
    says: str
    """Sentence on what the documentation of the engine, or the report, says about it."""
    address: str
    how: str = ""
    """Sentence of the only case that it explains; empty if it explains all wrong answers."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A judged engine."""

    folder: Path
    environment: Path
    title: str
    package: str
    """Distribution whose installed version must be :attr:`version`."""
    version: str
    homepage: str
    about: str
    timeout_s: int
    """Time for one workload, the start of the engine included (s)."""
    unasked: Mapping[str, str]
    """Reason why a promise is not asked, by promise."""
    cases: tuple[Asked, ...]
    findings: tuple[Finding, ...]

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.folder.name

    @property
    def python(self) -> Path:
        """The interpreter of the environment."""
        return self.environment / "bin" / "python"

    @property
    def adapter(self) -> Path:
        """The adapter, a script."""
        return self.folder / "adapter.py"

    @property
    def results(self) -> Path:
        """The file with what was judged last."""
        return self.folder / "results.json"

    def trail(self, finding: Finding) -> Path:
        """Return the script of a finding."""
        return self.folder / "trails" / finding.script

    def refuse_absent(self) -> None:
        """Raise :class:`UsageError` if the environment lacks the pinned version of the engine."""
        if not self.python.exists():
            raise UsageError(
                f"{self.environment} is no environment of {self.title}; make engines"
                f" NAME={self.name} makes it"
            )
        asked = f"import importlib.metadata as m; print(m.version({self.package!r}))"
        words = [str(self.python), "-I", "-c", asked]
        try:
            run = subprocess.run(words, capture_output=True, text=True, check=False)
        except OSError as error:
            raise UsageError(f"{self.python} cannot be run: {error.strerror}") from error
        found = run.stdout.strip()
        if found != self.version:
            raise UsageError(
                f"{self.environment} has {self.package} {found or 'not at all'}; {FILE} of"
                f" {self.name} says {self.version}"
            )


def engine_names(folder: Path) -> list[str]:
    """Return the names of the engines of a folder, sorted; raise :class:`UsageError` for none."""
    found = sorted(path.parent.name for path in folder.glob(f"*/{FILE}"))
    if not found:
        raise UsageError(f"{str(folder)!r} has no engine; an engine is a folder with {FILE}")
    return found


def load_engine(folder: Path, name: str, environments: Path) -> Engine:
    """Read an engine; raise :class:`UsageError` if there is none, or a field is wrong."""
    known = engine_names(folder)
    if name not in known:
        raise UsageError(
            f"there is no engine {name!r}, only {', '.join(known)}{nearest(name, known)}"
        )
    path = folder / name / FILE
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    try:
        _require_known(data, _FIELDS, "a field")
        cases = tuple([_asked(each) for each in _tables(data, "case")])
        unasked = {_promise(key): str(why) for key, why in _table(data, "unasked").items()}
        _require_all(unasked, cases)
        title, package, version, homepage, about = [_text(data, field) for field in _TEXTS]
        engine = Engine(
            path.parent,
            environments / name,
            title,
            package,
            version,
            homepage,
            about,
            _number(data, "timeout_s", 60),
            unasked,
            cases,
            tuple([_finding(each, cases) for each in _tables(data, "finding")]),
        )
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from error
    for script in (engine.adapter, *map(engine.trail, engine.findings)):
        if not script.is_file():
            raise UsageError(f"{path}: there is no script {str(script)!r}")
    return engine


def _asked(data: JsonObject) -> Asked:
    _require_known(data, _CASE, "a field of a case")
    stream = _table(data, "stream")
    _require_known(stream, _STREAM, "a field of a stream")
    for field, kind in _STREAM.items():
        if field in stream and type(stream[field]) is not kind:
            msg = f"{field} is {stream[field]!r}; it must be {kind.__name__}"
            raise ValueError(msg)
        if kind is int:
            _number(stream, field, 1)
    late_by = data.get("late_by", ARRIVAL)
    if late_by not in LATE_BY:
        msg = f"late_by is {late_by!r}; it must be one of {', '.join(LATE_BY)}"
        raise ValueError(msg)
    settings = _table(data, "settings")
    for field, values in settings.items():
        if not (isinstance(values, list) and values):
            msg = f"{field} is {values!r}; it must be a list of values that may be drawn"
            raise ValueError(msg)
    promise = _promise(_text(data, "promise"))
    return Asked(promise, _text(data, "how"), settings, late_by=late_by, **stream)


def _require_all(unasked: Collection[str], cases: Sequence[Asked]) -> None:
    """Raise ``ValueError`` unless every promise is asked, or the reason is given."""
    asked = {case.promise for case in cases}
    for name in PROMISES:
        if (name in asked) == (name in unasked):
            what = "both a case and a reason in unasked" if name in asked else "neither"
            msg = f"promise {name!r} has {what}; it needs a case, or a reason in unasked"
            raise ValueError(msg)


def _finding(data: JsonObject, cases: Sequence[Asked]) -> Finding:
    _require_known(data, _FINDING, "a field of a finding")
    promise = _promise(_text(data, "promise")) if "promise" in data else ""
    how = _text(data, "how") if "how" in data else ""
    if how and (promise, how) not in {(case.promise, case.how) for case in cases}:
        msg = f"a finding's how is {how!r}; it must be that of a case of promise {promise!r}"
        raise ValueError(msg)
    sentence, script, says, address = [_text(data, field) for field in _FINDING[1:-1]]
    return Finding(promise, sentence, script, says, address, how)


def _promise(name: Any) -> str:
    if name not in PROMISES:
        msg = f"promise is {name!r}; it must be one of {', '.join(PROMISES)}"
        raise ValueError(msg)
    return str(name)


def _table(data: JsonObject, field: str) -> dict[str, Any]:
    found = data.get(field, {})
    if not isinstance(found, dict):
        msg = f"{field} is {found!r}; it must be a table"
        raise ValueError(msg)
    return found


def _tables(data: JsonObject, field: str) -> list[dict[str, Any]]:
    found = data.get(field, [])
    if not (isinstance(found, list) and all(isinstance(each, dict) for each in found)):
        msg = f"{field} is {found!r}; it must be a list of tables"
        raise ValueError(msg)
    return found


def _text(data: JsonObject, field: str) -> str:
    found = data.get(field)
    if not (isinstance(found, str) and found):
        msg = f"{field} is {found!r}; it must be a text"
        raise ValueError(msg)
    return found


def _number(data: JsonObject, field: str, default: int) -> int:
    found = data.get(field, default)
    if type(found) is not int or found <= 0:
        msg = f"{field} is {found!r}; it must be an integer, at least 1"
        raise ValueError(msg)
    return found


def _require_known(data: JsonObject, known: Collection[str], what: str) -> None:
    for name in data:
        if name not in known:
            msg = f"{name!r} is not {what}, only {', '.join(known)}{nearest(name, known)}"
            raise ValueError(msg)
