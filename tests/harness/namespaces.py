"""Hosts on one machine: each with namespaces of its own, connected by a switch.

A host is a process that reads its standard input, and is process 1 of its own namespaces of
processes, mounts, network, host name and shared memory. When the input ends, so does that process,
and with it the kernel ends every process of the host and removes its namespaces and links. The
other end of the input is here, so nothing is left of a host when the process that has made it ends,
however it ends.

The switch is a bridge in a network namespace of its own, where no firewall of this machine sees it.
The machine itself has no address in that network: hosts reach each other and nothing else.

Everything here needs root, and ``ip``, ``tc`` and ``bridge`` of iproute2.
"""

import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

PREFLIGHT = Path(__file__).resolve().parents[2] / ".ci" / "preflight"
NAMESPACES = ("--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "--mount-proc")
PRIVATE = ("/tmp", "/var/tmp")
"""Folders of which each host has its own."""

_SWITCH = "ip link add switch type bridge && ip link set switch up && echo ready && exec cat >&2"
_HOST = """
set -e
own="$1"
hostname "$2"
shift 2
for path in "$@"; do mkdir -p "$own$path" && mount --rbind "$path" "$own$path"; done
mount --bind "$own/hosts" /etc/hosts
mount -t tmpfs tmpfs /dev/shm
mount --rbind "$own/var/tmp" /var/tmp
mount --rbind "$own/tmp" /tmp
ip link set lo up
echo ready
trap '' CHLD  # processes whose parent has ended leave no zombies
exec cat >&2
"""
_IN_FOLDER = 'cd "$1" && shift && exec "$@"'


class HostProblem(RuntimeError):  # noqa: N818 (a problem of the machine, not a bug)
    """A requirement of hosts that this machine lacks; the message is one sentence."""


def missing() -> str:
    """Return one sentence about what this machine lacks for hosts, or nothing."""
    done = subprocess.run([PREFLIGHT, "hosts"], capture_output=True, text=True, check=False)
    return done.stderr.strip()


class Switch:
    """A bridge in a network namespace of its own; each host is at a port that bears its name."""

    def __init__(self) -> None:
        self._keeper = _keep(["unshare", "--net", "sh", "-c", _SWITCH])

    def connect(self, host: "Host") -> None:
        """Connect a host; its address stays the same when it is started again."""
        peer = ["peer", "name", "eth0", "address", host.hardware, "netns", str(host.number)]
        self.tool("ip", "link", "add", host.name, "type", "veth", *peer)
        self.tool("ip", "link", "set", host.name, "master", "switch", "up")
        host.tool("ip", "address", "add", f"{host.address}/24", "dev", "eth0")
        host.tool("ip", "link", "set", "eth0", "up")

    def shape(self, host: "Host", mbit: float | None) -> None:
        """Limit what a host sends and receives (Mb/s); ``None`` ends the limit."""
        for tool, port in ((host.tool, "eth0"), (self.tool, host.name)):
            with suppress(HostProblem):  # a port without a limit
                tool("tc", "qdisc", "del", "dev", port, "root")
            if mbit is not None:
                burst = max(16_000, round(mbit * 1e6 / 8 / 100))  # bytes: 10 ms at high rates
                rate = f"tbf rate {round(mbit * 1e6)}bit burst {burst} latency 300ms"
                tool("tc", "qdisc", "add", "dev", port, "root", *rate.split())

    def held_back(self, host: "Host") -> int:
        """Return how often packets of a host, in either direction, had to wait for its rate."""
        said = [host.tool("tc", "-s", "qdisc", "show", "dev", "eth0")]
        said.append(self.tool("tc", "-s", "qdisc", "show", "dev", host.name))
        words = " ".join(said).replace(")", " ").split()
        return sum(int(words[at + 1]) for at, word in enumerate(words) if word == "overlimits")

    def pass_on(self, host: "Host", *, passes: bool) -> None:
        """Let the switch drop everything from and to a host, silently, or pass it on again."""
        state = "3" if passes else "0"
        self.tool("bridge", "link", "set", "dev", host.name, "state", state)

    def disconnect(self, host: "Host") -> None:
        """Remove the port of a host, if it is there."""
        with suppress(HostProblem):
            self.tool("ip", "link", "del", host.name)

    def tool(self, *command: str) -> str:
        """Run a tool in the network namespace of the switch, and return what it prints."""
        return _output(["nsenter", f"--net=/proc/{self._keeper.pid}/ns/net", *command])

    def close(self) -> None:
        """Remove the switch with all of its ports."""
        _release(self._keeper)


class Host:
    """A host that runs: its processes, its files and its connection."""

    def __init__(self, name: str, address: str, own: Path, visible: Sequence[Path]) -> None:
        """Start a host; ``own`` holds its private folders and the file ``hosts``.

        ``visible`` are folders of this machine that the private folders would hide.
        """
        self.name = name
        self.address = address
        self.hardware = "02:00:" + ":".join(f"{int(part):02x}" for part in address.split("."))
        for folder in PRIVATE:
            (own / folder[1:]).mkdir(parents=True, exist_ok=True)
        hidden = [str(path) for path in visible if str(path).startswith(PRIVATE)]
        setup = ["unshare", *NAMESPACES, "sh", "-c", _HOST, "sh", str(own), name, *hidden]
        self._keeper = _keep(setup)
        self._started: list[subprocess.Popen[bytes]] = []

    @property
    def number(self) -> int:
        """Number of a process, of this machine, that is in the network namespace of the host."""
        return self._keeper.pid

    def command(self, folder: str, *command: str) -> list[str]:
        """Return a command of this machine that runs ``command`` on the host in ``folder``."""
        space = f"/proc/{self.number}/ns"
        kinds = {"net": "net", "mount": "mnt", "uts": "uts", "ipc": "ipc"}
        enter = [f"--{kind}={space}/{file}" for kind, file in kinds.items()]
        inside = ["sh", "-c", _IN_FOLDER, "sh", folder, *command]
        return ["nsenter", *enter, f"--pid={space}/pid_for_children", *inside]

    def start(
        self, command: Sequence[str], environment: Mapping[str, str], folder: str, log: Path
    ) -> "subprocess.Popen[bytes]":
        """Start a process on the host that writes its output to ``log``, a file of this machine."""
        with log.open("ab") as out:
            process = subprocess.Popen(
                self.command(folder, *command),
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._started.append(process)
        return process

    def tool(self, *command: str) -> str:
        """Run a tool on the host, and return what it prints."""
        return _output(self.command("/", *command))

    def close(self) -> None:
        """End every process of the host; its files stay."""
        _release(self._keeper)
        for process in self._started:
            process.wait(timeout=60)


def _keep(command: Sequence[str]) -> "subprocess.Popen[str]":
    """Start a process that lives until its input ends; return when it says that it is ready."""
    keeper = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is for the caller, who ends the process
    )
    assert keeper.stdout is not None
    if keeper.stdout.readline() != "ready\n":
        said = keeper.communicate(timeout=10)[1].strip()
        msg = f"a host does not start: {said}"
        raise HostProblem(msg)
    return keeper


def _release(keeper: "subprocess.Popen[str]") -> None:
    """End the input of a process and wait until all processes of its namespace have ended."""
    keeper.communicate(timeout=60)


def _output(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        msg = f"{' '.join(command[-8:])} failed: {done.stderr.strip()}"
        raise HostProblem(msg)
    return done.stdout
