"""The exchange of blocks between the workers of a chain, judged by counting, without a model.

Source: docs/join.md, section 15.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby
from math import ceil
from typing import Any, NamedTuple

Steps = Mapping[str, Sequence[Mapping[str, Any]]]
Report = Mapping[str, Any]
"""Report of a worker on one run of an epoch: the epoch, and how often each message came."""
TUPLE_BYTES, KEY_BYTES = 32, 12
"""Bytes of a tuple without its key on a connection, and most bytes of a text with its offset."""
WIDE, WIDE_BYTES = ("number", "integer", "time"), 8
"""Kinds of columns whose values have so many bytes each."""
FRAME_BYTES, HEAD_BYTES = 448, 28
"""Most bytes of a block's frame without its tuples, and the least of a block in a shared frame."""
SMALL_BYTES: Mapping[str, int] = {"BlockAck": 30, "Hint": 23, "End": 14}
"""Bytes of the messages that are no blocks, by their kind."""
IDLE_BYTES = 64
"""Most bytes by which two neighbours tell each other in an epoch that they live, and goodbye."""
ALIKE = 1.5
"""Most blocks, acknowledgements and tuples of a run, as a multiple of those of another."""


class Exchange(NamedTuple):
    """Totals of one exchange."""

    blocks: int
    acks: int
    tuples: int
    """Tuples that went from one worker to the next."""


class Bounds(NamedTuple):
    """Limits of a total, which hold for every behaviour of the protocol."""

    least: int
    most: int


def count_exchange(steps: Steps) -> Exchange:
    """Count the exchange in recorded steps."""
    return Exchange(
        len(steps["forward"]),
        len(steps["ack"]),
        sum(each["tuples"] for each in steps["forward"]),
    )


def bound_tuples(workload: Mapping[str, Any], steps: Steps) -> Bounds:
    """Return limits of the number of tuples forwarded, from decisions, admissions and pairs."""
    workers = [number for number, _ in decisions_by_epoch(workload)]
    epochs = _epochs_of_tuples(workload, steps)
    used = set[tuple[str, int]]()
    least = 0
    for pair in sorted(steps["match"], key=lambda each: (each["r_id"], each["s_id"])):
        both = ("R", pair["r_id"]), ("S", pair["s_id"])
        span = workers[min(epochs[each] for each in both) : pair["batch"] + 1]
        if used.isdisjoint(both) and len({*span}) == 1:
            used.update(both)
            least += span[0] - 1
    crossings = [sum(m - 1 for m, _ in groupby(workers[epoch:])) for epoch in range(len(workers))]
    most = sum(each["tuples"] * crossings[each["epoch"]] for each in steps["admit"])
    return Bounds(least, most)


def bound_bytes(workload: Mapping[str, Any], steps: Steps, came: Sequence[Report]) -> Bounds:
    """Return limits of the bytes that the workers sent, from what came to them.

    Epochs that were run again count in the upper limit only: their messages came, too.
    """
    found = count_exchange(steps)
    boundaries = sum(workers - 1 for workers, _ in decisions_by_epoch(workload))
    messages = chain.from_iterable(report["messages"] for report in came)
    small = sum(SMALL_BYTES.get(each["kind"], 0) * each["times"] for each in messages)
    kinds = [kind for _, kind in workload["config"].get("r_columns", ())]  # S has the same
    row = TUPLE_BYTES + WIDE_BYTES * sum(kind in WIDE for kind in kinds)
    texts = 1 + kinds.count("text")
    return Bounds(
        row * found.tuples + HEAD_BYTES * found.blocks + SMALL_BYTES["BlockAck"] * found.acks,
        # Each column has a bit for missing values, and adds to a frame what a built-in one does.
        (row + KEY_BYTES * texts + len(kinds)) * found.tuples
        + FRAME_BYTES * found.blocks * (2 if kinds else 1)
        + small
        + IDLE_BYTES * boundaries,
    )


def wrong_sends(steps: Steps, came: Sequence[Report], repeated: int) -> Iterator[str]:
    """Yield blocks that were sent more than once over a boundary, or never.

    The network sends nothing again: a worker whose connection breaks runs its epoch again, and
    tells of each run. Trouble delivers ``repeated`` messages once more behind the connection; a
    block that does so is acknowledged once more.
    """
    once = set[tuple[int, int, str, int]]()
    acks = 0
    for report in came:
        for each in report["messages"]:
            if each["kind"] == "Block":
                once.add((report["epoch"], each["sender"], each["stream"], each["number"]))
                if each["times"] > 1:
                    yield (
                        f"worker {each['sender']} sent block {each['number']} of {each['stream']} "
                        f"{each['times']} times in epoch {report['epoch']}"
                    )
            acks += (each["times"] - 1) * (each["kind"] == "BlockAck")
    if acks > repeated:
        yield f"{acks} acknowledgements were sent again, for {repeated} messages that came again"
    for each in steps["forward"]:
        name = each["epoch"], each["worker"], each["stream"], each["block"]
        if name not in once:
            yield f"block {name} of (epoch, worker, stream, number) was never sent"


def wrong_exchange(workload: Mapping[str, Any], steps: Steps) -> Iterator[str]:
    """Yield what no behaviour of the protocol has: a block lost, met too often, or too large."""
    sent, came, known = (
        _by_boundary(steps[kind], turn)
        for kind, turn in (("forward", 0), ("receive", -1), ("ack", 0))
    )
    for where in sorted({*sent, *came, *known}):
        blocks = list(range(1, len(sent[where]) + 1))
        for name, numbers in (("sent", sent), ("received", came), ("acknowledged", known)):
            if sorted(numbers[where]) != blocks:
                yield f"{name} blocks of (epoch, worker, stream) {where}: {numbers[where]}"
    yield from _wrong_loads(workload, steps)
    limits, total = bound_tuples(workload, steps), count_exchange(steps).tuples
    if not limits.least <= total <= limits.most:
        yield f"{total} tuples were forwarded; {limits.least} to {limits.most} are possible"


def _wrong_loads(workload: Mapping[str, Any], steps: Steps) -> Iterator[str]:
    """Yield blocks that are too large or too few, and those that met more copies than possible."""
    sizes = [size for _, size in decisions_by_epoch(workload)]
    blocks = Counter((each["epoch"], each["worker"], each["stream"]) for each in steps["forward"])
    loads = defaultdict[tuple[int, int, str], int](int)
    for each in steps["forward"]:
        loads[each["epoch"], each["worker"], each["stream"]] += each["tuples"]
        if each["tuples"] > sizes[each["epoch"]]:
            yield f"a block has {each['tuples']} tuples in epoch {each['epoch']}"
    for where, load in loads.items():
        if blocks[where] < ceil(load / sizes[where[0]]):
            yield f"{load} tuples went in {blocks[where]} blocks at {where}"
    credit = workload["config"]["credit"]
    for each in steps["receive"]:
        if each["copies"] > (credit if each["stream"] == "R" else 0):
            yield f"a block of {each['stream']} met {each['copies']} copies, credit {credit}"


def compare_totals(one: Steps, other: Steps) -> Iterator[str]:
    """Yield the totals in which two runs of the same decisions differ more than by timing."""
    if _admitted_by_epoch(one) != _admitted_by_epoch(other):
        yield "some epochs of the two runs admit different numbers of tuples"
    for name in ("blocks", "acks", "tuples"):
        a, b = (getattr(count_exchange(each), name) for each in (one, other))
        if max(a, b) > ALIKE * min(a, b):
            yield f"{name}: {a} and {b}"


def _admitted_by_epoch(steps: Steps) -> Counter[tuple[int, str]]:
    """Count tuples that were admitted, by epoch and stream."""
    found = Counter[tuple[int, str]]()
    for each in steps["admit"]:
        found[each["epoch"], each["stream"]] += each["tuples"]
    return found


def _epochs_of_tuples(workload: Mapping[str, Any], steps: Steps) -> dict[tuple[str, int], int]:
    """Return the epoch in which each tuple was admitted, by stream and identity."""
    away = {each["seq"] for each in steps["rejected"]}
    found: dict[tuple[str, int], int] = {}
    for seq, source_id, _, _, _, _, stream, *_ in workload["arrivals"]:
        if seq not in away:
            found.setdefault((stream, source_id), bisect_right(workload["cuts"], seq))
    return found


def decisions_by_epoch(workload: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return workers and largest block of each epoch, the flush included."""
    config = workload["config"]
    decided = {epoch: (workers, size) for epoch, workers, size, _ in config.get("decisions", ())}
    found = [(config["workers"], config["block_size"])]
    for epoch in range(len(workload["cuts"]) + 1 + workload["flush"]):
        found.append(decided.get(epoch, found[-1]))
    return found[1:]


def _by_boundary(
    steps: Sequence[Mapping[str, Any]], turn: int
) -> defaultdict[tuple[int, int, str], list[int]]:
    """Return numbers of blocks by epoch, worker that sent them, and stream."""
    found = defaultdict[tuple[int, int, str], list[int]](list)
    for each in steps:
        sender = each["worker"] + (turn if each["stream"] == "R" else -turn)
        found[each["epoch"], sender, each["stream"]].append(each["block"])
    return found
