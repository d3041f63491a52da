"""Scripts as files: one of them is one workflow, called by the name of its file."""

from collections.abc import Collection, Sequence
from pathlib import Path

from model.vocabulary.script import Workflow
from properties.errors import UsageError
from properties.script.parser import ScriptError, parse

SIZE_MAX = 1 << 24
"""Bytes of a script."""
FOLDER = Path(__file__).parent / "examples"

Texts = Sequence[tuple[Path, str]]
"""Scripts with the files that they come from."""


class InvalidScriptsError(UsageError):
    """Scripts that mean nothing; the message is the first mistake."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__(lines[0])
        self.lines = lines
        """All mistakes for a terminal, each with its line of the script."""


def examples(network: str) -> tuple[Path, ...]:
    """The scripts that come with a network of sensors."""
    return tuple(sorted((FOLDER / network).glob("*.script")))


def read(path: Path) -> str:
    """The text of a script; :class:`UsageError` if there is none."""
    name = repr(str(path))
    try:
        with path.open("rb") as file:
            data = file.read(SIZE_MAX + 1)
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}") from error
    if len(data) > SIZE_MAX:
        raise UsageError(f"{name} is larger than {SIZE_MAX:,} bytes, which no script is")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        why = f"byte {data[error.start]:#04x} in line {line} is not UTF-8"
        raise UsageError(f"{name} is no text: {why}") from error


def read_all(files: Sequence[Path]) -> Texts:
    """All scripts, as they are written; each is read once, for it may be a pipe."""
    return [(path, read(path)) for path in files]


def read_workflows(files: Sequence[Path], known: Collection[str] | None) -> list[Workflow]:
    """All scripts; :class:`InvalidScriptsError` with the mistakes of all of them."""
    return workflows(read_all(files), known)


def workflows(texts: Texts, known: Collection[str] | None) -> list[Workflow]:
    """What the scripts mean; :class:`InvalidScriptsError` with the mistakes of all of them."""
    found: list[Workflow] = []
    lines: list[str] = []
    for path, text in texts:
        try:
            found.append(parse(text, path.stem, known))
        except ScriptError as error:
            for fault in error.faults:
                lines += fault.told(str(path))
    if lines:
        raise InvalidScriptsError(lines)
    return found
