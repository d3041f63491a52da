"""One life of a room: a store, its input and its oracle, under one fault after the other."""

import json
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from tests.soak import faults
from tests.soak.driver import JAVA, DriverProcess, Ended, Stalled
from tests.soak.faults import Disk, Plan
from tests.soak.oracles import ORACLES, WRONG, Finding
from tests.soak.rooms import Feeder
from tests.soak.tampering import TAMPERINGS, Place

STARTS = 8
"""Most starts of a room's queries until it counts as not recovered."""
SAME_DRIVER = 3
"""Most starts in a driver until another one takes over."""
FEEDS = 4
"""Most files that are fed until a driver comes to a moment that not every micro-batch has."""


class NotRecovered(Exception):  # noqa: N818 (an outcome, not a bug)
    """The queries of a room did not go on; the message says what the last start said."""


class Outcome(NamedTuple):
    """Result of a fault and of the recovery from it."""

    moment: str
    """The moment at which it struck, which may not be the planned one."""
    struck: str
    """Thing that it struck; empty if there was nothing to strike."""
    starts: int
    stalls: int
    """Number of drivers that did not answer in time and had to be killed."""
    said: list[str]
    """Sentences with which queries failed meanwhile."""
    checked: int
    resizes: int
    """Number of epochs of this life that had other workers than the one before."""
    shed: int
    findings: list[Finding]


class Drivers:
    """The driver of the room and a second one, which stands by."""

    def __init__(self, begin: Callable[[], DriverProcess]) -> None:
        self._begin = begin
        self.active = begin()
        self.standby = begin()

    def replace(self) -> None:
        """End the active driver, let the other one take over, and begin another one."""
        self.active.end()
        self.active, self.standby = self.standby, self._begin()
        self.active.wait_until_ready()

    def supersede(self) -> DriverProcess:
        """Suspend the active driver, which is returned, and let the other one take over."""
        late = self.active
        late.signal(signal.SIGSTOP)
        self.active, self.standby = self.standby, self._begin()
        return late

    def replace_standby(self) -> None:
        """End the driver that stands by, and begin another one."""
        self.standby.end()
        self.standby = self._begin()

    def end(self) -> None:
        """End both."""
        for each in (self.active, self.standby):
            each.end()


class Life:
    """A store from its first file to its flush."""

    def __init__(self, room: str, folder: Path, drivers: Drivers, random: Random) -> None:
        self.room = room
        self.folder = folder
        self.ended = False
        self._drivers = drivers
        self._random = random
        folder.mkdir(parents=True)
        self._disk = Disk(folder / "disk")
        self._feeder = Feeder(room, self._disk.folder / "in", random)
        self._oracle = ORACLES[room](room)
        self._asked = ""
        """Command that the driver has not answered yet."""
        self._asked_at = 0
        self._is_running = False
        self._said: list[str] = []
        self._complaints: list[Finding] = []
        """Refusals that were none, or said nothing."""
        self._starts = self._stalls = 0

    @property
    def has_executors(self) -> bool:
        """Return whether the executors of the driver are processes of their own."""
        return self._drivers.active.has_executors

    def stop(self) -> None:
        """Stop the queries."""
        with suppress(Ended, Stalled):
            self._ask("stop")

    def remove(self, *, keeps: bool = False) -> None:
        """Unmount the disk, and remove the folder unless it has to be kept."""
        self._disk.remove()
        if not keeps:
            shutil.rmtree(self.folder, ignore_errors=True)

    def keep(self) -> None:
        """Copy what is on the disk into the folder, where it stays."""
        shutil.copytree(self._disk.folder, self.folder / "kept", symlinks=True)

    def undergo(self, plan: Plan) -> Outcome:
        """Let a fault strike, let the room recover, and check everything."""
        self._said, self._starts, self._stalls, self._complaints = [], 0, 0, []
        if not self._is_running:
            self._recover(ended=False)  # the first start of a life
        is_flush = plan.moment == faults.FLUSHING
        self._starts = 0
        moment = struck = ""
        try:
            moment = self._approach(plan)
            struck = self._strike(plan)
        except (Ended, Stalled):
            moment = moment or faults.ANYTIME
        finally:
            self._open_gate()
        self._recover(ended=is_flush)
        observed = json.loads((self.folder / "observed.json").read_text(encoding="utf-8"))
        findings = self._oracle.check(self._feeder.arrivals, observed, ended=is_flush)
        accounted, read = observed["ledger"]
        if accounted != read:
            findings.append(Finding(WRONG, f"the ledger accounts for {accounted} of {read} rows"))
        findings += self._complaints
        self.ended = is_flush
        reached = (observed.get("resizes", 0), len(observed.get("shed", ())))
        counted = (self._starts, self._stalls, self._said, self._oracle.checked, *reached)
        return Outcome(moment, struck, *counted, findings)

    # Commands

    def _send(self, do: str, **given: Any) -> None:
        self._asked, self._asked_at = do, len(self._drivers.active.lines)
        self._drivers.active.send(do, room=self.room, folder=str(self.folder), **given)

    def _ask(self, do: str, **given: Any) -> bool:
        """Send a command; return whether it was carried out."""
        self._send(do, **given)
        return self._hear()

    def _hear(self) -> bool:
        """Wait for the answer to the last command; return whether it was carried out."""
        if not self._asked:
            return True
        line = self._drivers.active.wait_for(self._asked, "failed")
        done, self._asked = line == self._asked, ""
        if not done:
            self._said.append(line)
            self._is_running = False
        return done

    def _start(self) -> None:
        """Ask for a start, of a chain with some number of workers."""
        self._starts += 1
        self._is_running = True
        self._send("start", workers=self._random.randint(1, 4))

    # Moments

    def _approach(self, plan: Plan) -> str:
        """Bring the driver to the moment of a plan; return the moment to which it came."""
        moment = plan.moment
        within_s = self._random.uniform(0, faults.WITHIN_S.get(moment, 0.0))
        if moment == faults.FLUSHING:
            self._feeder.feed()
            self._send("flush", workers=2)
        elif moment == faults.STARTING:
            self._restart()
        elif moment == faults.ANYTIME:
            self._feed(plan)
        elif moment != faults.IDLE and not self._hold(plan):
            moment = faults.ANYTIME
        if moment in (faults.IN_BATCH, faults.RESIZING):
            self._open_gate()
        time.sleep(within_s)
        return moment

    def _feed(self, plan: Plan) -> None:
        again, jump = plan.kind == faults.REDELIVERED, plan.kind == faults.CLOCK_JUMPED
        for _ in range(self._random.randint(1, 2)):
            self._feeder.feed(again=again, jump=jump)

    def _restart(self) -> None:
        self._ask("stop")
        self._feeder.feed()
        self._start()

    def _hold(self, plan: Plan) -> bool:
        """Let the driver wait at the moment of a plan; return whether it got there."""
        gate = faults.GATES[plan.moment]
        (self.folder / "gate").write_text(gate, encoding="utf-8")
        for _ in range(FEEDS):
            if plan.moment == faults.RESIZING and self.room == "join":
                self._restart()
            else:
                self._feed(plan)
            with suppress(Stalled):
                line = self._drivers.active.wait_for("held", "failed", patience_s=4)
                if self._asked in self._drivers.active.lines[self._asked_at :]:
                    self._asked = ""
                if line.startswith("held"):
                    return True
                self._asked, self._is_running = "", False
                self._said.append(line)
                return False
        return False

    def _open_gate(self) -> None:
        (self.folder / "gate").unlink(missing_ok=True)

    # Faults

    def _strike(self, plan: Plan) -> str:
        """Do what the plan says; return what was struck."""
        driver, draw = self._drivers.active, self._random
        if plan.kind == faults.DISK_FULL:
            struck = self._disk.fill(driver)
            self._open_gate()
            time.sleep(draw.uniform(0.2, 2.5))
            self._disk.free(driver)
            return struck
        if plan.kind == faults.COMMIT_LOST:
            if plan.moment == faults.IDLE:
                self._ask("stop")
            else:
                self._drivers.replace()
                self._asked = ""
            self._is_running = False
            return faults.lose_commit(self._disk.folder, draw)
        if plan.kind == faults.SECOND_DRIVER:
            return self._let_second_driver_start()
        if plan.kind == faults.SUPERSEDED:
            return self._supersede()
        if plan.kind in TAMPERINGS:
            return self._tamper(plan.kind)
        if plan.kind in faults.STRIKES:
            return faults.STRIKES[plan.kind](driver, draw)
        if plan.moment == faults.IDLE:
            self._feed(plan)
        return "input"

    def _let_second_driver_start(self) -> str:
        """Let the other driver start the same queries; return what came of it."""
        try:
            return self._ask_second_driver(self._drivers.standby)
        except (Ended, Stalled) as outcome:
            self._drivers.replace_standby()
            return f"{type(outcome).__name__.lower()} second driver"

    def _ask_second_driver(self, other: DriverProcess) -> str:
        other.wait_until_ready()
        other.send("start", room=self.room, folder=str(self.folder), workers=2)
        said = other.wait_for("start", "failed", patience_s=30)
        if said == "start":  # it is refused when it begins to write
            self._open_gate()
            self._feeder.feed()
            other.send("settle", room=self.room, folder=str(self.folder))
            said = other.wait_for("settle", "failed", patience_s=60)
        other.send("stop", room=self.room, folder=str(self.folder))
        other.wait_for("stop", patience_s=60)
        if said == "settle":  # one of the two had nothing to write
            return "let in, and idle"
        return self._judge_refusal(said)

    def _supersede(self) -> str:
        """Suspend the driver, and let it go on beside its successor; return what came of it."""
        late = self._drivers.supersede()
        try:
            self._open_gate()
            self._asked, self._is_running = "", False
            self._drivers.active.wait_until_ready()
            self._recover(ended=False)
            late.signal(signal.SIGCONT)
            for _ in range(self._random.randint(0, 2)):
                self._feeder.feed()
                time.sleep(self._random.uniform(0, 2))
            late.send("settle", room=self.room, folder=str(self.folder))
            said = late.wait_for("settle", "failed", patience_s=60)
            return "idle" if said == "settle" else self._judge_refusal(said)
        except (Ended, Stalled) as outcome:
            return type(outcome).__name__.lower()
        finally:
            late.end()

    def _judge_refusal(self, said: str) -> str:
        """Return ``refused`` if a sentence refuses a driver that is not alone."""
        self._said.append(said)
        return "refused" if any(word in said for word in faults.REFUSED) else said[:200]

    def _tamper(self, kind: str) -> str:
        """Change files while no query runs, see what a run says, and repair; return the change."""
        self._ask("stop")
        self._is_running = False
        aside = self.folder / "aside"
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        for _ in range(self._random.randint(2, 3)):
            self._feeder.feed()
        disk, draw = self._disk.folder, self._random
        change = TAMPERINGS[kind](Place(self.room, disk, aside, draw, self._go_on))
        if change is None:
            return ""
        said = self._try_to_start(str(disk))
        if said:
            change.repair()
        if change.must is not None and change.must != bool(said):
            wrong = f"{change.struck} was refused: {said}" if said else f"{change.struck} was taken"
            self._complaints.append(Finding(WRONG, f"{kind}: {wrong}"))
        return f"{change.struck}, {'refused' if said else 'taken'}"

    def _go_on(self) -> None:
        """Let the queries process everything, stop them, and write more input."""
        self._recover(ended=False)
        self._ask("stop")
        self._is_running = False
        self._feeder.feed()

    def _try_to_start(self, named: str) -> str:
        """Start the queries and let them settle; return the sentence with which they refuse to.

        A driver that ends, and a sentence that does not name ``named``, is no refusal.
        """
        said = ""
        for _ in range(SAME_DRIVER):
            try:
                self._start()
                if self._hear() and self._ask("settle"):
                    return ""
                said = self._said[-1]
                if named in said and "Traceback" not in said:
                    return said
                self._ask("stop")
            except (Ended, Stalled):
                self._asked, self._is_running = "", False
                self._drivers.replace()
        self._complaints.append(Finding(WRONG, f"no sentence that names {named}: {said}"))
        return said or "nothing"

    # Recovery

    def _recover(self, *, ended: bool) -> None:
        """Do what a cluster manager does: start again what has ended, until all is settled.

        Raise :class:`NotRecovered` after too many starts.
        """
        for attempt in range(STARTS):
            try:
                if self._hear() and self._settle(ended=ended):
                    return
            except (Ended, Stalled) as outcome:
                self._stalls += isinstance(outcome, Stalled)
                self._asked, self._is_running = "", False
                self._drivers.replace()
            else:
                if attempt >= SAME_DRIVER or not self._drivers.active.processes()[JAVA]:
                    self._is_running = False
                    self._drivers.replace()
        raise NotRecovered(self._said[-1] if self._said else "the queries did not settle")

    def _settle(self, *, ended: bool) -> bool:
        if ended:
            if (self.folder / "observed.json").exists():
                (self.folder / "observed.json").unlink()
            self._starts += 1
            return self._ask("flush", workers=2)
        if not self._is_running:
            if not self._feeder.arrivals:
                self._feeder.feed()
            self._start()
            if not self._hear():
                return False
        return self._ask("settle")
