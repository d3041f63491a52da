"""The pytest plugin of the package, as a user runs it: in an empty folder, without our conftest."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from properties.errors import UsageError
from straggler import Trace, Workload, assert_keeps_promises
from tests.house.repository import ROOT
from tests.properties.test_processes import ADAPTER

PAGE = (ROOT / "docs" / "your-system.md").read_text(encoding="utf-8")
TEST = next(text for text in PAGE.split("```python\n")[1:] if "def test_" in text).partition("```")[
    0
]
WITHOUT_SPARK = "import sys; sys.modules['pyspark'] = None; import pytest; sys.exit(pytest.main())"


def run_tests(folder: Path, system: str) -> str:
    """Run the test of the page in a folder, without Spark, and return what pytest prints."""
    (folder / "test_mine.py").write_text(TEST, encoding="utf-8")
    arguments = ["-p", "properties.pytest_plugin", "-p", "no:cacheprovider"]
    arguments += ["--straggler-system", system]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SPARK, *arguments],
        cwd=folder,
        # Named above, whether or not it is installed: pytest refuses a plugin with two names.
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_the_test_of_the_page_passes_and_fails(tmp_path: Path) -> None:
    general = ADAPTER.replace(
        """    ((query, predicate),) = config["queries"]
    assert predicate == ["equi", "key"], predicate
""",
        """    query = ""
""",
    )
    (tmp_path / "adapter.py").write_text(general, encoding="utf-8")
    assert "1 passed" in run_tests(tmp_path, "model.join.oracle:make_system")
    assert not (tmp_path / "counterexamples").exists()
    said = run_tests(tmp_path, f"exec:{sys.executable} adapter.py")
    assert "1 failed" in said
    assert "breaks a promise of room join" in said
    assert "It takes " in said
    (stored,) = (tmp_path / "counterexamples").iterdir()
    assert f"run it again with: straggler replay counterexamples/{stored.name}" in said
    assert "@reproduce_failure" not in said


def right(workload: Workload) -> Trace:
    from model.join.oracle import make_system

    return make_system()(workload)


def test_a_right_system_passes_and_a_silent_one_does_not(tmp_path: Path) -> None:
    assert_keeps_promises(right, kinds="match", folder=tmp_path)
    assert_keeps_promises("model.slack:make_system", room="slack", level="steps", folder=tmp_path)
    with pytest.raises(AssertionError, match=r"(?s)lost.*straggler replay .*MODULE:FACTORY"):
        assert_keeps_promises(lambda _: Trace("silent", ()), kinds="match", folder=tmp_path)
    with pytest.raises(ValueError, match="effort is 'much'; it must be one of dev, ci, nightly"):
        assert_keeps_promises(right, effort="much")
    with pytest.raises(UsageError, match="level is 'all'; it must be one of answers, steps"):
        assert_keeps_promises(right, level="all")
    with pytest.raises(UsageError, match="system is None; it must be a System"):
        assert_keeps_promises(None)  # type: ignore[arg-type]  # the mistake to refuse
