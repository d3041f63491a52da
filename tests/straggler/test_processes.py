"""``--system exec:COMMAND``: whatever a command does ends in a verdict, and the judge lives on."""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from model.checking.claims import Outcome
from model.vocabulary import Workload
from straggler.errors import SystemFailedError
from straggler.judging.judge import MODEL, judge_workload
from straggler.judging.processes import Limits, ProcessSystem
from tests.house.repository import ROOT
from tests.straggler.command import Straggler
from tests.straggler.small_workloads import pairs
from tests.straggler.test_protocol import ASK, ORDERS, TRADES

PAGE = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
ADAPTER = PAGE.partition("```python adapter.py\n")[2].partition("```")[0]
PRINTS = """print('{"trace": 1}', flush=True)"""
SECOND_US = 1_000_000
LONG_US = 60 * SECOND_US


Command = Callable[[str], str]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Return a function that returns a command that runs some Python."""

    def write(code: str) -> str:
        path = tmp_path / "adapter.py"
        path.write_text(code, encoding="utf-8")
        return shlex.join([sys.executable, str(path)])

    return write


def failing_first(code: str) -> str:
    """Return an adapter that fails on the first workload of all, and then answers rightly."""
    head, _, rest = ADAPTER.partition("for line in sys.stdin:\n")
    fails = f"""\
import os, pathlib, time
once = pathlib.Path(__file__).with_suffix('.once')
for line in sys.stdin:
    if not once.exists():
        once.touch()
        {code}
"""
    return head + fails + rest


FAILURES = {
    "sys.exit(3)": "the system ended with exit code 3: it wrote nothing",
    "os.kill(os.getpid(), 9)": "the system was killed by SIGKILL",
    "print('hello', flush=True)": "bad line 1 of its trace: 'hello' is no JSON object",
    "sys.stdout.buffer.write(b'\\xff\\n'); sys.stdout.flush()": "line 1 of its trace not in UTF-8",
    f"{PRINTS}; sys.exit()": "exit code 0: it wrote 1 line of its trace",
    "print('x' * 2_000_000, flush=True)": "wrote a line of more than 1,048,576 bytes",
    """os.write(1, b'{"trace": 1}\\n{"end": 0}\\nmore\\n')""": "wrote more after the end",
    "os.close(1); time.sleep(60)": "the system closed its output",
    "x = [bytes(10_000_000) for _ in range(1_000)]": "(MemoryError)",
}


@pytest.mark.parametrize(("code", "sentence"), FAILURES.items())
def test_a_failure_costs_one_workload(command: Command, code: str, sentence: str) -> None:
    limits = Limits(LONG_US, memory_bytes=400_000_000)
    with closing(ProcessSystem(command(failing_first(code)), limits)) as system:
        failed = judge_workload(pairs(), system, reference=MODEL)
        assert failed.agreement.outcome is Outcome.BROKEN
        assert sentence in failed.agreement.sentence
        again = judge_workload(pairs(), system, reference=MODEL)
        assert again.outcome is Outcome.HOLDS, again.broken


def test_a_large_workload_and_a_large_trace_pass_at_once(command: Command) -> None:
    """Neither side waits for the other while the pipes are full."""
    few = pairs()
    arrivals = tuple(
        each._replace(seq=seq, source_id=seq, event_time_us=seq, arrival_us=seq)
        for seq, each in ((n, few.arrivals[n % 2]) for n in range(4_000))
    )
    config = {**few.config, "window_us": 9, "lateness_us": None}
    many = Workload("join", arrivals, config)
    echo = ADAPTER.replace("    workload =", "    sys.stderr.write('x' * 200_000)\n    workload =")
    echo = echo.replace("sys.stdout.flush()", "print(end='', flush=True)")
    with closing(ProcessSystem(command(echo), Limits(LONG_US))) as system:
        assert len(system(many)) > 10_000


def test_children_of_a_command_are_killed_with_it(command: Command, tmp_path: Path) -> None:
    code = "import subprocess; p = subprocess.Popen(['sleep', '600'])"
    code += f"; pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(p.pid)); time.sleep(600)"
    system = ProcessSystem(command(failing_first(code)), Limits(SECOND_US))
    with pytest.raises(SystemFailedError, match="did not answer"):
        system(pairs())
    pid = int((tmp_path / "pid").read_text(encoding="utf-8"))
    assert is_gone(pid)


def test_a_command_that_never_answers_is_asked_twice(straggler: Straggler, files: Path) -> None:
    """A search for a smaller counterexample would wait once for each workload that it tries."""
    adapter = "import sys, time\nfor _ in sys.stdin:\n    print('asked', file=open('asked', 'a'))\n"
    (files / "adapter.py").write_text(f"{adapter}    time.sleep(600)\n", encoding="utf-8")
    system = ("--system", f"exec:{sys.executable} -u adapter.py", "--timeout", "1s")
    done = straggler(*OWN, *system)
    assert done.code == 1
    assert "the system did not answer in 1 s: it wrote nothing" in done.out
    assert "It takes 9 arrivals" in done.out
    assert (files / "asked").read_text(encoding="utf-8") == 2 * "asked\n"


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such signal")
def test_a_command_ends_with_a_judge_that_is_killed(command: Command, tmp_path: Path) -> None:
    code = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
    words = command(code + "time.sleep(600)\n")
    judge = f"""\
from straggler.judging.processes import Limits, ProcessSystem
from tests.straggler.small_workloads import pairs
ProcessSystem({words!r}, Limits())(pairs())
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", judge], env=environment) as running:
        for _ in range(600):
            if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(encoding="utf-8"):
                break
            time.sleep(0.1)
        running.kill()
    assert is_gone(int((tmp_path / "pid").read_text(encoding="utf-8")))


def is_gone(pid: int) -> bool:
    """Return whether a process is gone after a while, in which init takes it."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Write the two files of a join, and the adapter of the page."""
    (tmp_path / "orders.csv").write_text(ORDERS, encoding="utf-8")
    (tmp_path / "trades.csv").write_text(TRADES, encoding="utf-8")
    (tmp_path / "adapter.py").write_text(ADAPTER, encoding="utf-8")
    return tmp_path


OWN = ("diff", "join", "--r", "orders.csv", "--s", "trades.csv", *ASK[4:], "--on", "key")


def test_the_adapter_of_the_page_is_right(straggler: Straggler, files: Path) -> None:
    line = PAGE.partition("    straggler diff ")[2].partition("\n\n")[0].replace("\\", "")
    done = straggler("diff", *shlex.split(line.replace("python3", sys.executable)))
    assert (done.code, done.err) == (0, ""), done.out
    assert "agrees with the reference. Seed 0.\njoin: 4 matches" in done.out
