"""Help, completion, and what is imported for them."""

import os
import subprocess
import sys

import pytest
from syrupy.assertion import SnapshotAssertion

from straggler.cli.main import COMMANDS
from straggler.rooms import room_names
from tests.straggler.command import Straggler


def test_help_of_all_commands(straggler: Straggler, snapshot: SnapshotAssertion) -> None:
    for command in ("", *COMMANDS):
        done = straggler(*command.split(), "--help")
        assert (done.code, done.err) == (0, "")
        assert done.out == snapshot(name=command or "straggler")
    assert straggler("--version").out.startswith("straggler ")


@pytest.mark.parametrize("room", room_names())
def test_help_on_a_room_fits_a_screen_and_is_about_that_room(
    straggler: Straggler, room: str
) -> None:
    for command in ("diff", "explore", "sim"):
        done = straggler(command, room, "--help")
        assert (done.code, done.err) == (0, "")
        assert len(done.out.splitlines()) <= 40
        others = set(room_names()) - {room}
        assert not [each for each in others if f"straggler {command} {each}" in done.out]
    few, every = (straggler("diff", room, option).out for option in ("--help", "--help-all"))
    assert len(every.splitlines()) > len(few.splitlines())


def test_words_are_completed(straggler: Straggler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_STRAGGLER_COMPLETE", "bash_source")
    assert "_straggler_completion" in straggler().out
    monkeypatch.setenv("_STRAGGLER_COMPLETE", "bash_complete")
    for words, completed in (
        ("straggler di", "plain,diff"),
        ("straggler diff j", "plain,join"),
        ("straggler diff slack --control pd-", "plain,pd-clamped"),
    ):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
        done = straggler()
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith(completed)


def test_the_version_is_printed_without_heavy_imports() -> None:
    """Ctrl-C is understood before anything heavy is imported."""
    program = (
        "import sys; from straggler.cli.main import main; main(['--version']);"
        "print(*{'numpy', 'rich', 'pandas', 'simpy'} & set(sys.modules), file=sys.stderr)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == "\n"
