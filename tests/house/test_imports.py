"""Rules of imports in docs/architecture.md that import-linter cannot express.

Import-linter needs the names of modules that exist; these rules hold for rooms and modules to
come, and say which third-party packages a folder may use.
"""

import subprocess
import sys
from collections.abc import Callable, Iterable

import pytest

from tests.house.repository import CODE, ROOT, Module, imports, modules, room_names, within

# A folder -> the packages of this project that it may import.
MAY_KNOW = {
    "model.vocabulary": ("model.vocabulary",),
    "model": ("model",),
    "sim": ("sim", "model"),
    "spark_impl": ("spark_impl", "model.vocabulary"),
}
# The model is pure: no clock, no input or output, and no third-party packages but arithmetic and
# the stable hash. Only its vocabulary touches files, to write and read workloads and traces.
MODEL_PACKAGES = {"model", "numpy", "scipy", "xxhash"}
FILES = {"os", "pathlib", "shutil", "tempfile"}
CLOCKS = {"asyncio", "datetime", "sched", "threading", "time"}
# Days of time zones are counted with dates; nothing asks a clock.
CALENDARS = {"model.script.calendar"}
OTHER_PROCESSES = {"multiprocessing", "socket", "subprocess"}
# Simulations run on Spark through a mapper that `properties` hands them.
SIM_REFUSED = {"pyspark", "pandas", "pyarrow"}
# Users of the library need no pytest, but for the plugin, and nobody who installed it has `tests`.
SHIPPED = ("model", "sim", "spark_impl", "properties", "straggler")


def strangers(module: Module) -> Iterable[str]:
    """Return the imports of this project that the module's folder may not use."""
    for folder, known in MAY_KNOW.items():
        if within(module.name, folder):
            for name in imports(module):
                ours = name.split(".")[0] in CODE
                if ours and not any(within(name, friend) for friend in known):
                    yield name


def impurities(module: Module) -> Iterable[str]:
    """Return the imported packages that the module's folder may not use."""
    refused = CLOCKS | OTHER_PROCESSES
    if not within(module.name, "model.vocabulary"):
        refused |= FILES
    if module.name in CALENDARS:
        refused -= {"datetime"}
    for name in imports(module):
        package = name.split(".")[0]
        if within(module.name, "model"):
            known = package in sys.stdlib_module_names or package in MODEL_PACKAGES
            if not known or package in refused:
                yield name
        elif within(module.name, "sim") and package in SIM_REFUSED:
            yield name


def neighbours(module: Module) -> Iterable[str]:
    """Return the imports of another room: of the same folder, or of its model."""
    parts = module.name.split(".")
    for depth, room in enumerate(parts):
        if room in room_names():
            for name in imports(module):
                target = name.split(".")
                near = target[:depth] == parts[:depth] or (parts[0], target[0]) == ("sim", "model")
                if near and room_names().intersection(target[depth : depth + 1]) - {room}:
                    yield name
    if parts[:2] in (["model", "windows"], ["sim", "windows"]):
        for name in imports(module):  # the digest of a run leaves out other rooms
            if room_names().intersection(name.split(".")[1:2]):
                yield name


def machinery(module: Module) -> Iterable[str]:
    """Yield test machinery that shipped code imports; `properties` are tests that are shipped."""
    refused = {"tests"}
    if module.path.parts[0] != "properties" and module.path.name != "pytest_plugin.py":
        refused |= {"pytest", "_pytest"}
    if module.path.parts[0] in SHIPPED:
        for name in imports(module):
            if name.split(".")[0] in refused:
                yield name


Rule = Callable[[Module], Iterable[str]]


@pytest.mark.parametrize(
    ("rule", "broken"),
    [
        (strangers, "may not know"),
        (impurities, "may not use"),
        (neighbours, "is a room and may not look into the next one,"),
        (machinery, "is shipped and may not import"),
    ],
)
def test_every_module_keeps_to_its_folder(rule: Rule, broken: str) -> None:
    findings = [
        f"{module.name} {broken} {name}" for module in modules() for name in sorted(rule(module))
    ]
    assert not findings, "\n".join(findings)


ORACLES_OF_PROMISES = {
    "tests.soak.oracles",
    "tests.properties.calendar_days",
    *(each.name for each in modules() if each.path.parts[:2] == ("properties", "oracles")),
} - {"properties.oracles"}


def test_an_oracle_imports_the_standard_library_and_other_oracles_alone() -> None:
    found = {module.name: imports(module) for module in modules()}
    assert len(ORACLES_OF_PROMISES) > 7, "this test looks in the wrong place"
    for name in ORACLES_OF_PROMISES:
        strange = {
            each
            for each in found[name]
            if each.split(".")[0] not in sys.stdlib_module_names
            and each.rpartition(".")[0] not in ORACLES_OF_PROMISES
        }
        assert not strange, name


START_MAX = 60
"""Most modules of ours that a start imports before it knows its command, or the room of one."""
START = """
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from straggler.cli.main import main
with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
    codes = [main([*sys.argv[1:], word]) for word in ("--help", "nonsense")]
print(*codes, *sys.modules)
"""


@pytest.mark.parametrize("command", ["", "diff", "explore", "sim", "workload"])
def test_a_start_imports_few_modules_before_it_knows_its_command_and_room(command: str) -> None:
    arguments = [sys.executable, "-c", START, *command.split()]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=True)
    helped, refused, *loaded = done.stdout.split()
    assert (helped, refused) == ("0", "2")
    ours = sorted(name for name in loaded if name.split(".")[0] in SHIPPED)
    assert "straggler.cli.main" in ours
    assert len(ours) <= START_MAX, f"{len(ours)} modules: {', '.join(ours)}"
