"""Messages between neighbours in the chain (docs/join.md, section 3), and their bytes.

A frame is its length (4 bytes, which do not count themselves), a kind (1 byte), fixed fields and,
for blocks, a record batch without its schema, which both sides know. Blocks of one stream that go
together share a frame, with the fixed fields of each. Nothing here executes what it reads.
"""

import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, groupby, pairwise
from typing import NamedTuple

import pyarrow as pa

from model.vocabulary.join import R, S
from model.vocabulary.settings import JsonObject
from spark_impl.join.matching import Tuples, to_arrow, tuples_from_arrow


class Block(NamedTuple):
    """Tuples of one stream, or a watermark alone."""

    stream: str
    number: int
    """1, 2, 3, ... within epoch, boundary and stream."""
    seen: int
    """Number of blocks of the other stream that the sender had received over this boundary."""
    wm_us: int
    """Watermark: every tuple of the stream below it was at the sender before, or never will be."""
    tuples: Tuples


class BlockAck(NamedTuple):
    """The acknowledgement of a block that was joined and stored."""

    stream: str
    number: int
    sent_opposite: int
    """Number of blocks of the other stream that the sender had sent over this boundary."""
    size: int
    """Number of tuples of this stream in the sender's store."""


class Hint(NamedTuple):
    """News from the source of a stream; safety never depends on it."""

    stream: str
    source_wm_us: int
    """Watermark of the stream at its source."""
    next_seq: int
    """``seq`` of the next arrival; no earlier arrival of the stream is still to come."""
    over: bool
    """The intake of this epoch has ended: both other fields are final."""


class End(NamedTuple):
    """The sender sends no further block of the stream in this epoch."""

    stream: str
    blocks: int
    """Number of blocks that it has sent."""


Message = Block | BlockAck | Hint | End

FRAME_BYTES_MAX = 1 << 26
"""Largest frame that either side accepts."""
GREETING_BYTES_MAX = 1 << 12
"""Largest frame that is accepted before the other side has proved that it belongs to the job."""

_LENGTH = struct.Struct(">I")
_TUPLES_MAX = 1 << 16
"""Most tuples of several blocks that share a frame; a single block may have more."""
_BLOCKS = struct.Struct(">cI")
_BLOCK = struct.Struct(">qqqI")
_ACK = struct.Struct(">cqqq")
_HINT = struct.Struct(">cqq?")
_END = struct.Struct(">cq")
BLOCKS, ACK, HINT, END, JSON, PING, BYE = range(1, 8)
_STREAM = {R: b"R", S: b"S"}
_NAME = {code: name for name, code in _STREAM.items()}


class FrameProblem(ValueError):  # noqa: N818 (a problem of the connection, not a bug)
    """Bytes that are no valid frame; the message is one sentence with the reason."""


def frame(kind: int, *parts: bytes | pa.Buffer) -> bytes:
    """Return one frame. Raise :class:`FrameProblem` if it would be too long."""
    body = b"".join([bytes([kind]), *map(bytes, parts)])
    if len(body) > FRAME_BYTES_MAX:
        msg = f"a message of {len(body)} bytes is over the {FRAME_BYTES_MAX} that a frame may have"
        raise FrameProblem(msg)
    return _LENGTH.pack(len(body)) + body


def encode_messages(messages: Iterable[Message]) -> Iterator[bytes]:
    """Yield the frames of messages, in order."""
    for shared, group in groupby(messages, lambda each: isinstance(each, Block) and each.stream):
        if shared:
            waiting: list[Block] = []
            for block in group:
                assert isinstance(block, Block)
                if sum(len(each.tuples) for each in (*waiting, block)) > _TUPLES_MAX and waiting:
                    yield _blocks(waiting)
                    waiting = []
                waiting.append(block)
            yield _blocks(waiting)
        else:
            yield from map(_other, group)


def _blocks(blocks: Sequence[Block]) -> bytes:
    heads = [_BLOCK.pack(b.number, b.seen, b.wm_us, len(b.tuples)) for b in blocks]
    tuples = to_arrow(Tuples.concat([block.tuples for block in blocks]))
    first = _BLOCKS.pack(_STREAM[blocks[0].stream], len(blocks))
    return frame(BLOCKS, first, *heads, tuples.serialize())


def _other(message: Message) -> bytes:
    stream = _STREAM[message.stream]
    if isinstance(message, BlockAck):
        return frame(ACK, _ACK.pack(stream, message.number, message.sent_opposite, message.size))
    if isinstance(message, Hint):
        return frame(HINT, _HINT.pack(stream, message.source_wm_us, message.next_seq, message.over))
    assert isinstance(message, End)
    return frame(END, _END.pack(stream, message.blocks))


def decode_messages(kind: int, body: bytes, schemas: Mapping[str, pa.Schema]) -> list[Message]:
    """Return the messages of a frame; ``schemas`` are the columns of tuples, by stream.

    Raise :class:`FrameProblem` if it cannot be read.
    """
    try:
        if kind == BLOCKS:
            return _decode_blocks(body, schemas)
        if kind == ACK:
            stream, *numbers = _ACK.unpack(body)
            return [BlockAck(_NAME[stream], *numbers)]
        if kind == HINT:
            stream, wm_us, next_seq, over = _HINT.unpack(body)
            return [Hint(_NAME[stream], wm_us, next_seq, over)]
        if kind == END:
            stream, blocks = _END.unpack(body)
            return [End(_NAME[stream], blocks)]
    except (struct.error, KeyError, ValueError, OSError) as error:
        msg = f"a frame of kind {kind} with {len(body)} bytes cannot be read"
        raise FrameProblem(msg) from error
    msg = f"there is no kind {kind} of frame"
    raise FrameProblem(msg)


def _decode_blocks(body: bytes, schemas: Mapping[str, pa.Schema]) -> list[Message]:
    stream, count = _BLOCKS.unpack_from(body)
    end = _BLOCKS.size + count * _BLOCK.size
    heads = list(_BLOCK.iter_unpack(body[_BLOCKS.size : end]))
    schema = schemas[_NAME[stream]]
    batch = pa.ipc.read_record_batch(pa.py_buffer(memoryview(body)[end:]), schema)
    tuples = tuples_from_arrow(batch)
    ends = [0, *accumulate(size for *_, size in heads)]
    if ends[-1] != len(tuples):
        msg = f"{len(tuples)} tuples came instead of {ends[-1]}"
        raise ValueError(msg)
    return [
        Block(_NAME[stream], number, seen, wm_us, tuples.take(slice(*span)))
        for (number, seen, wm_us, _), span in zip(heads, pairwise(ends), strict=True)
    ]


def encode_json(data: JsonObject) -> bytes:
    """Return a frame for greetings and meetings."""
    return frame(JSON, json.dumps(dict(data)).encode("utf-8"))


def decode_json(kind: int, body: bytes) -> JsonObject:
    """Read a frame of :func:`encode_json`. Raise :class:`FrameProblem` for any other frame."""
    try:
        data = json.loads(body) if kind == JSON else None
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        msg = f"a frame of kind {kind} is not a greeting"
        raise FrameProblem(msg)
    return data


class Frames:
    """Splits the bytes of a connection into frames."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self._rest = bytearray()

    @property
    def missing(self) -> int:
        """Number of bytes to read that certainly belong to the present frame."""
        if len(self._rest) < _LENGTH.size:
            return _LENGTH.size - len(self._rest)
        (length,) = _LENGTH.unpack_from(self._rest)
        return int(_LENGTH.size + length - len(self._rest))

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield kind and body of every frame that is complete now.

        Raise :class:`FrameProblem` for a length that is not permitted, before the frame is read.
        """
        rest = self._rest
        rest += data
        while len(rest) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(rest)
            if not 1 <= length <= self.bytes_max:
                msg = f"a frame of {length} bytes came, at most {self.bytes_max} are permitted"
                raise FrameProblem(msg)
            end = _LENGTH.size + length
            if len(rest) < end:
                return
            kind, body = rest[_LENGTH.size], bytes(rest[_LENGTH.size + 1 : end])
            del rest[:end]
            yield kind, body
