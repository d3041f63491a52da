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
from typing import NamedTuple

from model.vocabulary.settings import PlainData, Setting
from sim.sweep.toml import Table
from straggler.conformance.judgements import ARRIVAL, LATE_BY
from straggler.conformance.promises import PROMISES
from straggler.errors import UsageError, refuse_unknown

FILE = "engine.toml"
_TEXTS = ("title", "package", "version", "homepage", "about")
_FIELDS = (*_TEXTS, "timeout_s", "unasked", "case", "finding")
_CASE = ("promise", "how", "late_by", "settings", "stream")
_POSITIVE = Setting(kind=int, at_least=1)
_STREAM: Mapping[str, Setting] = {
    "redeliveries": Setting(kind=bool),
    **dict.fromkeys(("time_factor", "arrivals_max", "batch"), _POSITIVE),
}


class Asked(NamedTuple):
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


class Finding(NamedTuple):
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
    refuse_unknown("engine", name, engine_names(folder))
    path = folder / name / FILE
    try:
        table = Table(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    try:
        table.refuse_others(_FIELDS)
        cases = tuple(map(_asked, table.tables("case")))
        reasons = table.table("unasked", PROMISES)
        unasked = {promise: reasons.text(promise) for promise in reasons.values}
        _require_all(unasked, cases)
        title, package, version, homepage, about = map(table.text, _TEXTS)
        engine = Engine(
            path.parent,
            environments / name,
            title,
            package,
            version,
            homepage,
            about,
            int(table.checked("timeout_s", _POSITIVE, 60)),
            unasked,
            cases,
            tuple([_finding(each, cases) for each in table.tables("finding")]),
        )
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from error
    for script in (engine.adapter, *map(engine.trail, engine.findings)):
        if not script.is_file():
            raise UsageError(f"{path}: there is no script {str(script)!r}")
    return engine


def _asked(table: Table) -> Asked:
    table.refuse_others(_CASE)
    stream = table.table("stream", _STREAM)
    given = {name: stream.checked(name, _STREAM[name], None) for name in stream.values}
    drawn = table.table("settings")
    settings = {name: drawn.list(name) for name in drawn.values}
    for name, values in settings.items():
        drawn.require(bool(values), name, values, "a list of values that may be drawn")
    late_by = table.word("late_by", LATE_BY, ARRIVAL)
    promise = table.word("promise", PROMISES)
    return Asked(promise, table.text("how"), settings, late_by=late_by, **given)


def _require_all(unasked: Collection[str], cases: Sequence[Asked]) -> None:
    """Raise ``ValueError`` unless every promise is asked, or the reason is given."""
    asked = {case.promise for case in cases}
    for name in PROMISES:
        if (name in asked) == (name in unasked):
            what = "both a case and a reason in unasked" if name in asked else "neither"
            msg = f"promise {name!r} has {what}; it needs a case, or a reason in unasked"
            raise ValueError(msg)


def _finding(table: Table, cases: Sequence[Asked]) -> Finding:
    table.refuse_others(Finding._fields)
    promise, how = table.word("promise", PROMISES, ""), table.text("how", "")
    is_asked = not how or (promise, how) in {(case.promise, case.how) for case in cases}
    table.require(is_asked, "how", how, f"that of a case of promise {promise!r}")
    sentence, script, says, address = map(table.text, Finding._fields[1:-1])
    return Finding(promise, sentence, script, says, address, how)
