"""Source distribution and wheel: they build, install and run without a network.

The wheel is built from the source distribution, so that whatever one of them lacks is found. An
interpreter that has only the packages of an extra shows that the extra is complete.
"""

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Collection, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement

from model.checking.claims import Outcome
from straggler.cli.render import EXIT_CODES
from tests.harness.standalone import isolate_python
from tests.house.repository import CODE, ROOT, files
from tests.straggler.test_pages import CODES, File, follow, steps_of

BUILD = "import sys; from setuptools import build_meta; build_meta.build_{}(sys.argv[1])"
RUN_IN_PROCESS = """
import straggler
config = straggler.SlackConfig(size_us=10, slide_us=10, control="fixed", gamma_us=0)
events = [straggler.Event(i, i, "a", t, 1.0, i) for i, t in enumerate([3, 12, 1])]
workload = straggler.Workload("slack", tuple(events), config.to_json(), (3,))
print(*straggler.slack.run_in_process(workload).steps())
"""
IMPORT_COMMANDS = """
import pkgutil, straggler.cli, straggler.rooms, straggler.rooms.script.language
for module in pkgutil.iter_modules(straggler.cli.__path__, "straggler.cli."):
    if not module.name.endswith("__main__"):
        __import__(module.name)
straggler.rooms.find_rooms("all")
"""


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, by default with the environment of this process."""
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=environment or None,
        capture_output=True,
        text=True,
        check=False,
    )


def build(kind: str, source: Path, target: Path) -> Path:
    """Build a distribution in a new folder, and return its file."""
    target.mkdir()
    done = run(sys.executable, "-c", BUILD.format(kind), target, cwd=source)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = target.iterdir()
    return found


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from the source distribution of a copy of the repository."""
    if int(version("setuptools").split(".")[0]) < 77:
        pytest.skip("setuptools is too old to build a wheel: pip install 'setuptools>=77'")
    folder = tmp_path_factory.mktemp("distributions")
    for source in files():
        copy = folder / "repository" / source.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
    with tarfile.open(build("sdist", folder / "repository", folder / "sdist")) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (source,) = (folder / "unpacked").iterdir()
    return build("wheel", source, folder / "wheel")


PROGRAMS = {
    "python": "",
    "straggler": "-m straggler",
    "pytest": "-m pytest -p no:cacheprovider",
}


class Installed(NamedTuple):
    """The wheel, installed for an interpreter that has the packages of some extras."""

    folder: Path
    environment: dict[str, str]

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the interpreter in an empty folder."""
        interpreter = self.environment["PYSPARK_PYTHON"]
        return run(interpreter, *arguments, cwd=self.folder, **self.environment)

    def straggler(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command."""
        return self.python("-m", "straggler", *arguments)

    def shell(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a line of a shell, for which the programs of the wheel are installed."""
        return run("sh", "-c", line, cwd=self.folder, **self.environment)

    def print(self, line: str) -> str:
        """Run a line of a shell that ends with a verdict; return what it prints."""
        done = self.shell(line)
        assert done.returncode in CODES, done.stdout + done.stderr
        return done.stdout

    def save(self, page: str) -> dict[str, str]:
        """Save the files that a page shows in the folder, and return them by name."""
        steps = steps_of((ROOT / page).read_text(encoding="utf-8"))
        found = {each.name: each.text for each in steps if isinstance(each, File)}
        for name, text in found.items():
            (self.folder / name).write_text(text, encoding="utf-8")
        return found


def requirements(wheel: Path, extras: Collection[str]) -> Iterator[str]:
    """Yield the names of the packages that the wheel needs with some extras."""
    with zipfile.ZipFile(wheel) as content:
        (name,) = (each for each in content.namelist() if each.endswith(".dist-info/METADATA"))
        metadata = content.read(name).decode()
    for line in re.findall(r"^Requires-Dist: (.*)$", metadata, re.MULTILINE):
        need = Requirement(line)
        if need.marker is None or any(need.marker.evaluate({"extra": each}) for each in extras):
            yield need.name


def install(wheel: Path, folder: Path, *extras: str) -> Installed:
    """Install the wheel in an environment that has the packages of some extras."""
    environment = isolate_python(folder / "isolated", requirements(wheel, extras))
    site = wheel.parent / "site"  # of all environments, so that modules are compiled once
    if not site.exists():
        options = ("--no-index", "--no-deps", "--no-compile", "--quiet", "--target", site)
        done = run(sys.executable, "-m", "pip", "install", *options, wheel, cwd=folder)
        assert done.returncode == 0, done.stderr
    path = f"{site}:{environment['PYTHONPATH']}"
    for name in ("empty", "bin"):
        (folder / name).mkdir()
    for name, module in PROGRAMS.items():
        program = folder / "bin" / name
        line = f'exec "{environment["PYSPARK_PYTHON"]}" {module} "$@"'
        program.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        program.chmod(0o755)
    places = {"PYTHONPATH": path, "PATH": f"{folder / 'bin'}:{environment['PATH']}"}
    return Installed(folder / "empty", {**environment, **places})


@pytest.fixture
def tester(wheel: Path, tmp_path: Path) -> Installed:
    """Install the wheel as somebody does who tests a system of their own, without Spark."""
    return install(wheel, tmp_path, "sim", "test")


def test_the_wheel_has_every_module_and_file_of_the_package(wheel: Path) -> None:
    shipped = set(CODE) - {"tests", "benchmarks"}
    paths = (path.relative_to(ROOT) for path in files())
    expected = {path.as_posix() for path in paths if path.parts[0] in shipped}
    with zipfile.ZipFile(wheel) as content:
        found = {name for name in content.namelist() if ".dist-info/" not in name}
    assert found == expected


def assert_refused(installed: Installed, command: str, package: str, extras: str) -> None:
    """Assert that a command ends with one sentence on its extras."""
    done = installed.straggler(*command.split())
    sentence = f"this command needs the package '{package}': pip install 'straggler[{extras}]'."
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"straggler: {sentence}\n")


def test_without_extras_the_command_says_which_to_install(wheel: Path, tmp_path: Path) -> None:
    installed = install(wheel, tmp_path)
    assert_refused(installed, "sim", "click", "sim")
    assert_refused(installed, "check jobs:minutes", "click", "spark,sim,test")
    helped = installed.straggler("--help")
    assert (helped.returncode, "straggler check jobs:minutes" in helped.stdout) == (0, True)
    assert "pip install 'straggler[spark,sim,test]'" in helped.stdout
    assert installed.straggler().returncode == 2
    shown = installed.straggler("--version")
    assert (shown.returncode, shown.stdout) == (0, f"straggler {version('straggler')}\n")


def test_a_pipeline_needs_the_extra_spark_only(wheel: Path, tmp_path: Path) -> None:
    done = install(wheel, tmp_path, "spark").python("-c", RUN_IN_PROCESS)
    assert done.returncode == 0, done.stderr
    assert "Result(task=0, start_us=0, " in done.stdout


@pytest.mark.long
@pytest.mark.parametrize("chosen", ["routers", "operator", "promise"])
def test_the_promises_are_checked_with_the_wheel_alone(
    wheel: Path, tmp_path: Path, chosen: str
) -> None:
    installed = install(wheel, tmp_path, "spark", "sim", "test")
    done = installed.shell(f"pytest --pyargs properties -k {chosen}")
    assert done.returncode == 0, done.stdout
    assert "what the properties saw" in done.stdout
    assert {path.name for path in installed.folder.iterdir()} <= {".hypothesis"}


@pytest.mark.long
def test_the_tutorial_needs_an_empty_folder_and_the_wheel(tester: Installed) -> None:
    assert follow("docs/your-system.md", tester.folder, tester.print) > 2


@pytest.mark.long
def test_the_workflow_passes_and_fails(tester: Installed) -> None:
    """A CI does with the wheel what the page shows; only the package comes from elsewhere."""
    saved = tester.save("docs/your-system.md") | tester.save("docs/ci.md")
    few = saved["test_pairs.py"].replace('effort="ci"', 'effort="dev"')
    (tester.folder / "test_pairs.py").write_text(few, encoding="utf-8")
    workflow = saved["promises.yml"]
    installing, testing = re.findall(r"- run: (.*)\n", workflow)
    assert installing.startswith('pip install "straggler[sim,test] @ ')
    passed = tester.shell(testing)
    assert (passed.returncode, "1 passed" in passed.stdout) == (0, True), passed.stdout
    wrong = saved["pairs.py"].replace("<= config.window_us", "< config.window_us")
    (tester.folder / "pairs.py").write_text(wrong, encoding="utf-8")
    failed = tester.shell(testing)
    assert (failed.returncode, "1 failed" in failed.stdout) == (1, True), failed.stdout
    assert "pairs:make breaks a promise of room join" in failed.stdout
    assert "It takes 2 arrivals" in failed.stdout
    assert "@reproduce_failure" not in failed.stdout
    # With CI in the environment, pytest prints the whole message in its summary as well.
    (again,) = set(re.findall(r"run it again with: (straggler replay \S+ --trust)", failed.stdout))
    assert tester.shell(again).returncode == EXIT_CODES[Outcome.BROKEN]


def test_the_command_line_needs_the_extra_sim_only(wheel: Path, tmp_path: Path) -> None:
    installed = install(wheel, tmp_path, "sim")
    assert_refused(installed, "package", "pyspark", "spark,sim")
    asked = "check json:dumps --schema at --event-time at"
    assert_refused(installed, asked, "hypothesis", "spark,sim,test")
    run = installed.straggler("sim", "slack", "--set", "messages=100", "--plot", "run.svg")
    assert run.returncode == EXIT_CODES[Outcome.UNDETERMINED], run.stderr  # so few, none late
    helped = installed.straggler("judge", "--help-all")
    assert (helped.returncode, "by room:" in helped.stdout) == (0, True), helped.stderr
    imported = installed.python("-c", IMPORT_COMMANDS)
    assert imported.returncode == 0, imported.stderr
