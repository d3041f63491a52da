"""Three hosts on one machine, with a standalone cluster of Spark and one shared folder.

Each host has a worker, or only some do; the first one has the master, and drivers run there.
Whatever connects has to know a secret, which is in a file that only root reads, never in a command
line. Files of a host, logs included, are in the folder of that name.
"""

import fcntl
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home

from tests.harness.namespaces import Host, HostProblem, Switch, missing
from tests.harness.standalone import LOOPBACK, READY, wait_until_ready

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("host-1", "host-2", "host-3")
NETWORK = "10.231.57."
MASTER = "spark://host-1:7077"
CORES = 3
"""Task slots of each worker: a chain of eight, which drawn clusters have, needs eight."""
MEMORY = "4g"
LOCK = Path("/run/lock/straggler-hosts")
LOCK_WAIT_S = 1800
_CONF = "/var/tmp/conf"
_WORK = "/var/tmp/work"
_MASTER, _WORKER = "master.Master", "worker.Worker"
_SIGNED = "org.apache.spark.ui.JWSFilter"
QUICK_NOTICE = {
    "spark.executor.heartbeatInterval": "2s",
    "spark.network.timeout": "20s",
    "spark.network.timeoutInterval": "2s",
    "spark.worker.timeout": "20",
}
"""Settings with which Spark takes a silent host for dead after 20 seconds, not after 60 to 120."""


class Hosts:
    """Three hosts that run; :func:`three_hosts` makes them."""

    master = MASTER
    """Address of Spark's master."""
    names = NAMES
    """Names of the hosts; the first one has the master."""

    settings_file = f"{_CONF}/spark-defaults.conf"
    """Path of the settings of Spark, with the secret, on each host."""

    def __init__(self, folder: Path, cores: int, workers: Sequence[str]) -> None:
        self._folder = folder
        self._cores = cores
        self._workers = workers
        self._secrets = [secrets.token_urlsafe(48) for _ in range(2)]
        self._stack = ExitStack()
        self._running: dict[str, Host] = {}
        self._faults: set[str] = set()
        self.shared = folder / "shared"
        """The folder that all hosts share, under the same path everywhere, also on this machine."""
        self.shared.mkdir(parents=True)
        self._switch = Switch()
        self._stack.callback(self._switch.close)

    # ------------------------------------------------------------------------------- commands

    def run(
        self,
        host: str,
        *command: str,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command on a host and return what it prints and its exit code.

        The folder of the project is the working directory if no ``folder`` is given. After ten
        minutes all processes of the command end, with ``subprocess.TimeoutExpired``.
        """
        process = self.start(host, *command, environment=environment, folder=folder)
        try:
            out, err = process.communicate(timeout=600)
        finally:
            self.stop(process)
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def start(
        self,
        host: str,
        *command: str,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> "subprocess.Popen[str]":
        """Start a command on a host, with pipes for its output; it leads a group of processes."""
        return subprocess.Popen(
            self._running[host].command(str(folder or ROOT), *command),
            env={**_environment(), "PYTHONPATH": str(ROOT), **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def stop(self, process: "subprocess.Popen[str]") -> None:
        """End a command that was started, with all processes of its group."""
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()

    # --------------------------------------------------------------------------------- faults

    def cut(self, host: str) -> None:
        """Cut the link of a host: what it sends and what is sent to it is lost, silently."""
        self._faults.add(host)
        self._switch.pass_on(self._running[host], passes=False)

    def mend(self, host: str) -> None:
        """Mend the link of a host that was cut."""
        self._switch.pass_on(self._running[host], passes=True)

    def shape(self, host: str, mbit: float | None) -> None:
        """Limit the link of a host to ``mbit`` Mb/s in each direction; ``None`` ends the limit."""
        self._faults.add(host)
        self._switch.shape(self._running[host], mbit)

    def kill(self, host: str) -> None:
        """End a host as a power failure does: at once, and without a word to the others."""
        gone = self._running.pop(host)
        self._switch.pass_on(gone, passes=False)
        gone.close()
        self._switch.disconnect(gone)

    def restart(self, host: str) -> None:
        """Start a host that was killed, with the same private folders, and its part of Spark."""
        self._boot(host)
        self._begin(host)

    def recover(self) -> None:
        """End all faults: restart hosts that were killed, and undo the rest."""
        for host in NAMES:
            if host not in self._running:
                self.restart(host)
            elif host in self._faults:
                self.mend(host)
                self.shape(host, None)
        self._faults.clear()

    def waits_of_link(self, host: str) -> int:
        """Return how often packets had to wait because of the rate of a host's link."""
        return self._switch.held_back(self._running[host])

    # ------------------------------------------------------------------------------- starting

    def open(self) -> None:
        """Start all hosts and Spark."""
        for name in NAMES:
            self._boot(name)
        self._begin(*NAMES)

    def close(self) -> None:
        """End everything on all hosts, and remove the network."""
        for host in self._running.values():
            self._stack.callback(host.close)
        self._running.clear()
        self._stack.close()

    def address_of(self, host: str) -> str:
        """Return the address of a host, which stays the same when the host is started again."""
        return f"{NETWORK}{11 + NAMES.index(host)}"

    def _boot(self, name: str) -> None:
        """Start a host, connect it, and write its settings of Spark."""
        own = self._folder / name
        own.mkdir(exist_ok=True)
        lines = ["127.0.0.1 localhost", *(f"{self.address_of(each)} {each}" for each in NAMES)]
        (own / "hosts").write_text("\n".join(lines) + "\n", encoding="ascii")
        data = [os.environ["STRAGGLER_DATA"]] if os.environ.get("STRAGGLER_DATA") else []
        visible = [ROOT, self.shared, *map(Path, (sys.prefix, sys.base_prefix, *data))]
        host = Host(name, self.address_of(name), own, visible)
        self._running[name] = host
        self._switch.connect(host)
        conf = own / self.settings_file[1:]
        conf.parent.mkdir(mode=0o700, exist_ok=True)
        conf.touch(mode=0o600)
        conf.write_text(self._configuration(), encoding="ascii")
        (own / _WORK[1:]).mkdir(exist_ok=True)

    def _configuration(self) -> str:
        """Return Spark's settings: nothing answers to anybody without a secret."""
        settings = {
            "spark.authenticate": "true",
            "spark.authenticate.secret": self._secrets[0],
            "spark.ui.enabled": "false",
            "spark.ui.filters": _SIGNED,
            f"spark.{_SIGNED}.param.secretKey": self._secrets[1],
            "spark.master.rest.enabled": "false",
            **QUICK_NOTICE,
        }
        return "".join(f"{name} {value}\n" for name, value in settings.items())

    def _begin(self, *names: str) -> None:
        """Start the master, if its host is named, and the workers of these hosts."""
        if NAMES[0] in names:
            wait_until_ready(*self._daemon(NAMES[0], _MASTER, "--port", "7077"))
        size = ("--cores", str(self._cores), "--memory", MEMORY, "--work-dir", _WORK)
        chosen = [name for name in names if name in self._workers]
        begun = [self._daemon(name, _WORKER, *size, MASTER) for name in chosen]
        for each in begun:
            wait_until_ready(*each)

    def _daemon(
        self, host: str, name: str, *arguments: str
    ) -> "tuple[subprocess.Popen[bytes], Path, re.Pattern[str]]":
        log = self._folder / host / f"{name}.log"
        log.unlink(missing_ok=True)
        program = f"{_find_spark_home()}/bin/spark-class"
        at = ("--host", host, "--webui-port", "0")
        command = [program, f"org.apache.spark.deploy.{name}", *at, *arguments]
        environment = {
            **_environment(),
            **LOOPBACK,  # for web pages; everything else listens where --host says
            "SPARK_DAEMON_MEMORY": "512m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData",
        }
        return self._running[host].start(command, environment, _WORK, log), log, READY[name]


def _environment() -> dict[str, str]:
    """Return the environment of a process on a host."""
    kept = ("PATH", "LANG", "LC_ALL", "JAVA_HOME", "STRAGGLER_DATA", "HYPOTHESIS_PROFILE")
    own = {"HOME": "/tmp", "SPARK_CONF_DIR": _CONF, "SPARK_HOME": _find_spark_home()}
    return {name: os.environ[name] for name in kept if name in os.environ} | own


@contextmanager
def three_hosts(
    folder: Path,
    *,
    cores: int = CORES,
    workers: Sequence[str] = NAMES,
) -> Iterator[Hosts]:
    """Yield three hosts with a standalone cluster of Spark, and remove them at the end.

    ``folder`` takes all of their files. Hosts in ``workers`` have a worker with ``cores`` task
    slots, whatever the machine has. One machine has one such cluster at a time: another one waits.
    Raise :class:`HostProblem` with one sentence if this machine cannot do it, and
    :class:`RuntimeError` with the log of a process that does not start.
    """
    if problem := missing():
        raise HostProblem(problem)
    with _only_one(), ExitStack() as stack:
        hosts = Hosts(folder, cores, workers)
        stack.callback(hosts.close)
        hosts.open()
        yield hosts


@contextmanager
def _only_one() -> Iterator[None]:
    """Wait until no other process has hosts on this machine."""
    LOCK.parent.mkdir(parents=True, exist_ok=True)
    ends_s = time.monotonic() + LOCK_WAIT_S
    with LOCK.open("a") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > ends_s:
                    msg = f"other hosts have been running on this machine for {LOCK_WAIT_S} s."
                    raise HostProblem(msg) from None
                time.sleep(0.5)
        yield
