"""Help, completion, and arguments that no command has."""

import re
import subprocess
import sys
from itertools import product

import pytest

from straggler.rooms import room_names
from tests.straggler.command import Straggler, assert_refused


@pytest.mark.parametrize(
    ("command", "room"),
    [*product(("diff", "explore", "sim"), room_names()), ("diff", "all")],
)
def test_help_on_a_room_fits_a_screen(straggler: Straggler, command: str, room: str) -> None:
    done = straggler(command, room, "--help")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100


def test_help_names_rare_options_and_help_all_describes_them(straggler: Straggler) -> None:
    short, whole = (straggler("diff", "slack", f"--help{end}").out for end in ("", "-all"))
    described = [
        set(re.findall(r"^  (--?[a-z-]+) ", text, re.MULTILINE)) for text in (short, whole)
    ]
    (named,) = re.findall(r"More, described by --help-all:\n((?:  --.*\n)+)", short)
    rare = set(re.split(r",\s+", named.strip()))
    assert {"--kinds", "--max-age", "--separator"} <= rare
    assert described[1] == described[0] | rare
    assert not described[0] & rare
    assert "age of a pending tuple that starts a correction (4 W)" in whole


@pytest.mark.parametrize("words", [(), ("diff",), ("sim", "slack"), ("errata", "join")])
def test_help_all_of_a_command_without_rare_options_is_its_help(
    straggler: Straggler, words: tuple[str, ...]
) -> None:
    assert straggler(*words, "--help-all") == straggler(*words, "--help")


@pytest.mark.parametrize("command", ["diff", "explore", "sim"])
def test_help_on_a_room_is_about_that_room(straggler: Straggler, command: str) -> None:
    done = straggler(command, "join", "--help")
    assert (done.code, done.err) == (0, "")
    assert "straggler diff slack" not in done.out
    assert "--json" in done.out
    assert ("--block-size" in done.out) == (command == "diff")
    for other in ("--slide", "--policy", "--script", "lost_update"):
        assert other not in done.out


def test_only_the_room_that_is_asked_for_is_loaded() -> None:
    program = (
        "import sys; from straggler.cli.main import main; main(['diff', 'join', '--help']);"
        "print(sorted(name for name in sys.modules if name.endswith('.room')), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stderr == b"['sim.join.room', 'straggler.rooms.join.room']\n"


@pytest.mark.parametrize(
    ("shell", "words", "completed"),
    [
        ("bash", "straggler di", "plain,diff"),
        ("zsh", "straggler diff j", "plain\njoin"),
        ("fish", "straggler diff join --block", "plain,--block-size"),
        ("bash", "straggler diff slack --control pd-", "plain,pd-clamped"),
        ("bash", "straggler diff nowhere --j", ""),
    ],
)
def test_words_are_completed(
    straggler: Straggler, monkeypatch: pytest.MonkeyPatch, shell: str, words: str, completed: str
) -> None:
    monkeypatch.setenv("_STRAGGLER_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    last = words.split()[-1]
    monkeypatch.setenv("COMP_CWORD", last if shell == "fish" else str(words.count(" ")))
    done = straggler()
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(completed)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_the_program_that_completes(
    straggler: Straggler, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    monkeypatch.setenv("_STRAGGLER_COMPLETE", f"{shell}_source")
    done = straggler()
    assert done.code == 0
    assert "_straggler_completion" in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("diff --seed 3 slack", ("'--seed'; options follow the room",)),
        ("diff slack umts", ("unknown argument 'umts'",)),
        ("diff slack --input", ("'--input' requires an argument",)),
        ("diff slack --json --seed 3", ("--json needs a value, and '--seed' is an option",)),
        ("diff slack --seed x", ("--seed: 'x' is not a valid integer",)),
        ("diff slack --reference all", ("--reference: 'all' is not one of 'sim', 'model'",)),
        ("diff grouping --window 5s", ("--window is a length of time",)),
        (
            "workload slack --idle-after 5s",
            ("--idle-after is an option of rooms join, watermark and script, not of slack.",),
        ),
        ("diff join --slide 5s", ("--slide is an option of rooms slack and watermark, not",)),
        ("explore all", ("'all'", "only grouping, join")),
        ("replay", ("FILE is missing",)),
        ("script chek", ("'chek'", "did you mean 'check'?")),
    ],
)
def test_an_argument_that_does_not_fit_is_refused_in_one_sentence(
    straggler: Straggler, arguments: str, words: tuple[str, ...]
) -> None:
    assert_refused(straggler(*arguments.split()), *words)
