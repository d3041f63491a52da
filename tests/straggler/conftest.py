"""The command line, interrupts and a short input as fixtures."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from straggler.cli import main as cli
from straggler.inputs import inputs
from straggler.inputs.inputs import DATA_VARIABLE
from straggler.inputs.tables import Recording
from tests.straggler.command import Done, Straggler


@pytest.fixture
def short_umts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the simulated input of room ``slack`` to a fifth, in which tuples are still late."""

    def shorten(seed: int) -> Recording:
        whole = inputs.umts(seed)
        return whole._replace(events=whole.events[: len(whole.events) // 5])

    monkeypatch.setattr(inputs, "NAMED", {**inputs.NAMED, "umts": shorten})


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

    def run(*arguments: str) -> Done:
        try:
            code = cli.main(list(arguments))
        except SystemExit as left:  # --help and --version
            code = int(left.code or 0)
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run
