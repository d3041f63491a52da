"""A system that is a command: workloads to its standard input, traces from its standard output.

Rules of this file:

1. One process gets many workloads, one after the other. It is started when it is first needed, and
   again after it has failed.
2. Whatever the process does costs one workload. Then it is killed, with its children (not
   with those that moved to a session of their own).
3. Everything is bounded: its time, its memory, the length of a line and of a trace.
"""

import os
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import IO, Any, NamedTuple

from model.vocabulary import Trace, Workload
from model.vocabulary.trace import TraceReader
from straggler.errors import SystemFailedError, UsageError, counted
from straggler.inputs.protocol import workload_line
from straggler.rooms import find_room

PREFIX = "exec:"
"""Start of ``--system exec:COMMAND``."""
LINE_MAX = 1 << 20
"""Most bytes of a line."""
TRACE_MAX = 1 << 28
"""Most bytes of a trace."""
CHUNK = 1 << 16
SHOWN = 200
"""Number of characters of an error message that are shown."""
PATIENCE_S = 2.0
"""Time that a process has to end when nothing more is asked of it."""
_LIMITED = """\
import os, resource, sys
size, parent, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
if parent and sys.platform == "linux":
    import ctypes
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
    os.getppid() == parent or sys.exit()
most = resource.getrlimit(resource.RLIMIT_DATA)[1]
size = size if most == resource.RLIM_INFINITY else min(size, most)
resource.setrlimit(resource.RLIMIT_DATA, (size, size))
os.execvp(command[0], command)
"""
"""Program that runs a command with less memory: the limit must not be that of the judge.

On Linux, the command ends with the judge, even with one that is killed.
"""


class Limits(NamedTuple):
    """Limits of a process, and the fields that it has to write."""

    timeout_us: int = 60_000_000
    """Time for one workload, the start of the process included."""
    memory_bytes: int | None = None
    """Memory for data; by default half of the machine's."""
    whole_steps: bool = False
    """True if every field is needed, not only those of answers."""


DEFAULT_LIMITS = Limits()


class ProcessSystem:
    """A System that is a command."""

    def __init__(self, command: str, limits: Limits) -> None:
        """Check that the command exists; raise :class:`UsageError` if it does not."""
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"the command {command!r} cannot be read: {error}") from error
        if not self._words:
            raise UsageError(f"{PREFIX + command!r} names no command; write {PREFIX}COMMAND")
        if shutil.which(self._words[0]) is None:
            raise UsageError(f"there is no command {self._words[0]!r}")
        self._limits = limits
        self._process: _Process | None = None
        self.timeouts = 0
        """Number of workloads that were not answered in time."""

    def __call__(self, workload: Workload, /) -> Trace:
        """Send a workload, and return the trace that the process answers."""
        reader = find_room(workload.room).trace_reader(self._limits.whole_steps)
        try:
            if self._process is None:
                self._process = _Process(self._words, self._limits)
            return self._process.ask(workload_line(workload).encode(), reader)
        except BaseException as error:
            self.timeouts += isinstance(error, _TimeoutError)
            self.close(0.0)
            raise

    def close(self, patience_s: float = PATIENCE_S) -> None:
        """End the process, which may take a moment to do so itself."""
        process, self._process = self._process, None
        if process is not None:
            process.end(patience_s)


class _TimeoutError(SystemFailedError):
    """A command did not answer in time."""


class _Process:
    """A running command."""

    def __init__(self, words: list[str], limits: Limits) -> None:
        self._limits = limits
        half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
        memory = limits.memory_bytes or half
        # Linux means the thread: only the main one ends with the judge.
        is_main = threading.current_thread() is threading.main_thread()
        parent = str(os.getpid() if is_main else 0)
        command = [sys.executable, "-I", "-S", "-c", _LIMITED, str(memory), parent, *words]
        pipe = subprocess.PIPE
        # In a session of its own, it is not interrupted by Ctrl-C but killed, with its children.
        self._popen = subprocess.Popen(
            command, bufsize=0, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        )
        streams: Any = (self._popen.stdin, self._popen.stdout, self._popen.stderr)
        self._stdin: IO[bytes]
        self._stdout: IO[bytes]
        self._stderr: IO[bytes]
        self._stdin, self._stdout, self._stderr = streams
        for stream in streams:
            os.set_blocking(stream.fileno(), False)
        self._unread = b""
        self._unsent = memoryview(b"")
        self._said = b""
        """End of what it wrote to standard error."""

    def ask(self, line: bytes, reader: TraceReader) -> Trace:
        """Send a line and return the trace that comes back.

        Raise :class:`SystemFailedError` if there is none in time.
        """
        ends_s = time.monotonic() + self._limits.timeout_us / 1e6
        self._unsent = memoryview(line)
        progress = _CountedLines(reader)
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdin, selectors.EVENT_WRITE)
            for stream in (self._stdout, self._stderr):
                selector.register(stream, selectors.EVENT_READ)
            while True:
                left_s = ends_s - time.monotonic()
                if left_s <= 0:
                    raise self._describe_silence(progress)
                for key, _ in selector.select(left_s):
                    if key.fileobj is self._stdin:
                        self._send(selector)
                    elif key.fileobj is self._stderr:
                        self._listen(selector)
                    elif (trace := self._read(progress)) is not None:
                        return trace

    def _send(self, selector: selectors.BaseSelector) -> None:
        try:
            self._unsent = self._unsent[os.write(self._stdin.fileno(), self._unsent[:CHUNK]) :]
        except BrokenPipeError:  # it ends, which its output will show
            selector.unregister(self._stdin)
        else:
            if not self._unsent:
                selector.unregister(self._stdin)

    def _listen(self, selector: selectors.BaseSelector) -> None:
        said = os.read(self._stderr.fileno(), CHUNK)
        self._said = (self._said + said)[-CHUNK:]
        if not said:
            selector.unregister(self._stderr)

    def _read(self, progress: "_CountedLines") -> Trace | None:
        """Read what there is, and return the trace if it ends in there."""
        found = os.read(self._stdout.fileno(), CHUNK)
        if not found:
            return self._read_last(progress)
        *lines, self._unread = (self._unread + found).split(b"\n")
        if len(self._unread) > LINE_MAX:
            raise SystemFailedError(f"wrote a line of more than {LINE_MAX:,} bytes")
        for number, line in enumerate(lines, start=1):
            trace = progress.feed(line)
            if trace is None:
                continue
            if number < len(lines) or self._unread:
                raise SystemFailedError("wrote more after the end of its trace")
            if self._unsent:
                raise SystemFailedError("answered before it had read its workload")
            return trace
        return None

    def _read_last(self, progress: "_CountedLines") -> Trace:
        """Return the trace that ends with the output: its last line needs no line break."""
        trace, wrote, last = None, "", self._unread
        self._unread = b""
        try:
            trace = progress.feed(last) if last else None
        except SystemFailedError as error:
            wrote = f"it {error}"
        if trace is None or self._unsent:
            raise SystemFailedError(f"{self._describe_end()}: {wrote or progress.describe()}")
        return trace

    def _describe_silence(self, progress: "_CountedLines") -> "_TimeoutError":
        wrote = progress.describe()
        if self._unread:
            wrote += ", and a line without a line break"
        if self._popen.poll() is not None:
            ended = f"{self._describe_end()}, and a child of it kept its output open"
            return _TimeoutError(f"{ended}: {wrote}")
        return _TimeoutError(f"did not answer in {self._limits.timeout_us / 1e6:g} s: {wrote}")

    def _describe_end(self) -> str:
        """Return how the process came to its end, with its last words."""
        try:
            code = self._popen.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            return "closed its output"
        with suppress(OSError):  # nothing more is there
            self._said += os.read(self._stderr.fileno(), CHUNK)
        words = self._said.decode("utf-8", "replace").strip().splitlines()
        said = f" ({words[-1].strip()[-SHOWN:]})" if words else ""
        if code < 0:
            known = {each.value: each.name for each in signal.Signals}
            return f"was killed by {known.get(-code, f'signal {-code}')}{said}"
        return f"ended with exit code {code}{said}"

    def end(self, patience_s: float) -> None:
        """Close the input, and kill the process and its children after a while."""
        with suppress(OSError):
            self._stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(patience_s)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.wait()
        self._stdout.close()
        self._stderr.close()


class _CountedLines:
    """A reader of a trace that counts lines and bytes."""

    def __init__(self, reader: TraceReader) -> None:
        self._reader = reader
        self._lines = 0
        self._bytes = 0

    def feed(self, line: bytes) -> Trace | None:
        """Take a line; raise :class:`SystemFailedError` if it does not belong there."""
        self._lines += 1
        self._bytes += len(line)
        if self._bytes > TRACE_MAX:
            raise SystemFailedError(f"wrote a trace of more than {TRACE_MAX:,} bytes")
        try:
            return self._reader.feed(line.decode("utf-8"))
        except UnicodeDecodeError as error:
            sentence = f"wrote line {self._lines} of its trace not in UTF-8"
            raise SystemFailedError(sentence) from error
        except ValueError as error:
            sentence = f"wrote a bad line {self._lines} of its trace: {error}"
            raise SystemFailedError(sentence) from error

    def describe(self) -> str:
        """Return how much of the trace there is."""
        wrote = f"{counted(self._lines, 'line')} of its trace" if self._lines else "nothing"
        return f"it wrote {wrote}"
