"""The command line, interrupts and small files as fixtures."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from straggler.cli import main as cli
from straggler.cli import render
from straggler.inputs.inputs import DATA_VARIABLE
from tests.straggler.command import Done, Straggler
from tests.straggler.small_workloads import small_files


@pytest.fixture
def heard() -> Iterator[None]:
    """Let interrupts be heard, even if the tests run in the background, which ignores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler


@pytest.fixture
def straggler(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Straggler:
    """Run the command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(render, "TELL_S", 3_600.0)

    def run(*arguments: str) -> Done:
        try:
            code = cli.main(list(arguments))
        except SystemExit as left:  # --help and --version
            code = int(left.code or 0)
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Write a small input of every room."""
    for name, lines in small_files().items():
        (tmp_path / name).write_text("\n".join([*lines, ""]), encoding="utf-8")
    return tmp_path
