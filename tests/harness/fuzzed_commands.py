"""Right commands with their files, which :mod:`tests.harness.fuzzing` damages.

Each command needs no Spark and is done in a moment. Files that a command reads are what another
command of ours has written, so that damage goes deep instead of ending at the first brace.
"""

import io
import json
import re
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from itertools import chain
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from model.vocabulary import Workload
from model.vocabulary.trace import kind_of
from sim.sweep.jobs import Done, Job, perform
from straggler.cli import main as cli
from straggler.cli import sweep
from straggler.inputs.protocol import parse_workload
from straggler.judging.counterexamples import Counterexample
from straggler.rooms import find_room
from tests.house.repository import ROOT
from tests.sim.experiments import SMALL
from tests.straggler.small_workloads import ASKED, small_files

FILES: Mapping[str, bytes] = {
    name: "\n".join([*lines, ""]).encode() for name, lines in small_files().items()
}


class Form(NamedTuple):
    """A right command: its words, the number of which name the command, and its files.

    ``outputs`` are files that it writes. A refusal of a command that ``explains`` has several
    lines. ``rewrites`` are inputs that it may change, ``passes_over`` those it need not read or may
    make again. ``keeps_results``: it may write outputs, all of them whole, before it fails.
    """

    words: Sequence[str]
    command: Sequence[str]
    files: Mapping[str, bytes]
    outputs: Sequence[str] = ()
    explains: bool = False
    rewrites: Sequence[str] = ()
    passes_over: Sequence[str] = ()
    keeps_results: bool = False


def make_forms() -> dict[str, Form]:
    """Return right commands by name; the commands are run once to make files for each other."""
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        return dict(chain(_rooms(), _simulations(), _sweeps(), _others()))


def _rooms() -> Iterator[tuple[str, Form]]:
    """Yield the commands that take streams, for every room."""
    for room, asked in ASKED.items():
        words = asked.split()
        files = {name: FILES[name] for name in words if name in FILES}
        head = ("workload", room)
        form = Form((*head, *words, "--output", "w.jsonl"), head, files, ("w.jsonl",))
        yield " ".join(head), form
        work = _made(form)["w.jsonl"]
        workloads = [parse_workload(json.loads(line)) for line in work.splitlines()]
        reference = find_room(room).reference()
        trace = "".join(line for each in workloads for line in reference(each).lines())
        answered = {"w.jsonl": work, "t.jsonl": trace.encode()}
        judged = ("judge", "w.jsonl", "t.jsonl", "--json", "v.json")
        yield f"judge {room}", Form(judged, judged[:1], answered, ("v.json",))
        head, system = ("diff", room), ("--system", f"model.{room}:make_system")
        compared = (*head, *system, *words, "--json", "v.json")
        yield f"diff {room}", Form(compared, head, files, ("v.json",), keeps_results=True)
        stored = {"c.json": _counterexample(room, workloads[0])}
        yield f"replay {room}", Form(("replay", "c.json", *system), ("replay",), stored)


def _simulations() -> Iterator[tuple[str, Form]]:
    sizes: Mapping[str, Sequence[str]] = {
        "slack": ("messages=100", "size_us=2s"),
        "watermark": ("messages=100",),
        "join": ("seconds=1", "workers=2"),
        "grouping": ("tuples=200", "policies=tag,key"),
        "script": ("seconds=1",),
    }
    for room, size in sizes.items():
        sized = [word for each in size for word in ("--set", each)]
        shown = {"--json": "s.json"}
        if room == "slack":  # one picture is enough
            shown["--plot"] = "s.svg"
        words = ("sim", room, "--seed", "7", *sized, *chain(*shown.items()))
        yield f"sim {room}", Form(words, words[:2], {}, tuple(shown.values()))


def _others() -> Iterator[tuple[str, Form]]:
    name = "means.script"
    script = {name: FILES[name]}
    check, explain = (("script", action, name) for action in ("check", "explain"))
    yield "script check", Form(check, check[:2], script, explains=True)
    told = (*explain, "--json", "p.json")
    yield "script explain", Form(told, explain[:2], script, ("p.json",), explains=True)
    engine = ROOT / "engines" / "duckdb"
    paths = [*engine.glob("*.toml"), *engine.glob("*.json"), *engine.rglob("*.py")]
    stored = {str(path.relative_to(ROOT)): path.read_bytes() for path in sorted(paths)}
    unread = tuple(name for name in stored if name.endswith(".py"))
    page = ("conformance", "--stored", "--folder", "engines", "--markdown", "c.md")
    yield "conformance", Form(page, page[:2], stored, ("c.md",), passes_over=unread)
    errata = ("errata", "watermark", "--markdown", "e.md")
    yield "errata", Form(errata, errata[:1], {}, ("e.md",))
    store = dict(_files_of_chain("account|rejected"))
    ledger = ("ledger", "store", "--json", "l.json")
    yield "ledger", Form(ledger, ledger[:1], store, ("l.json",), passes_over=tuple(store))
    known = dict(_files_of_chain("commit|state"))
    status = ("join", "status", "store", "--json", "q.json")
    yield "join status", Form(status, status[:2], known, ("q.json",), passes_over=tuple(known))
    package = ("package", "--output", "p.zip")
    yield "package", Form(package, package[:1], {}, ("p.zip",))


def _files_of_chain(kinds: str) -> Iterator[tuple[str, bytes]]:
    """Yield the log, and the files of some kinds, of a store that is kept for later versions."""
    from tests.golden.__main__ import FOLDER, PRESENT  # imports this module

    with zipfile.ZipFile(FOLDER / PRESENT / "store-join.zip") as kept:
        for name in kept.namelist():
            if re.match(rf"disk/store/(_delta_log|kind=({kinds}))/", name):
                yield name.removeprefix("disk/"), kept.read(name)


def call(words: Sequence[str]) -> int:
    """Run a command in this process, jobs of a sweep included, and return its exit code."""

    def here(jobs: Sequence[Job], processes: int) -> Iterator[Done]:
        return map(perform, jobs)

    with patch.object(sweep, "run_on_processes", here):
        try:
            return cli.main(list(words))
        except SystemExit as left:  # --help
            return int(left.code or 0)


def _sweeps() -> Iterator[tuple[str, Form]]:
    text = {"small.toml": SMALL.replace("tuples = 400", "tuples = 200").encode()}
    words = ("sweep", "small.toml", "--jobs", "1")
    swept = Form(words, words[:1], text, keeps_results=True)
    yield "sweep", swept
    results = {name: each for name, each in _made(swept).items() if name.startswith("sweeps/")}
    others = tuple(name for name in results if name != "sweeps/small-quick.json")
    page = ("report", "sweeps", "--output", "r.md")
    yield "report", Form(page, page[:1], results, ("r.md", "r.json"), passes_over=others)
    names = tuple(results)
    again = swept._replace(files={**results, **text}, rewrites=names, passes_over=names)
    yield "sweep again", again


def _counterexample(room: str, workload: Workload) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        kinds = tuple(kind_of(each) for each in find_room(room).step_types)
        found = Counterexample(f"model.{room}:make_system", workload, kinds, ("nothing",))
        return found.store(Path(folder)).read_bytes()


def _made(form: Form) -> dict[str, bytes]:
    """Run a command in a folder of its own; return the files that are there then."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for name, content in form.files.items():
            Path(name).write_bytes(content)
        assert call(form.words) == 0, form.words
        return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}
