"""Messages as bytes: frames with their length in front, tuples as Arrow record batches.

A frame is its length (4 bytes, without these), a kind (1 byte), fixed fields and, for a block, a
record batch without its schema, which both sides know. Nothing here executes what it reads.
"""

import json
import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from model.vocabulary.join import R, S
from spark_impl.join.matching import SCHEMA, to_arrow, tuples_from_arrow
from spark_impl.join.messages import Ack, Block, End, Hint, Message

FRAME_BYTES_MAX = 1 << 26
"""A longer frame is refused on both sides."""
GREETING_BYTES_MAX = 1 << 12
"""The same before the other side has shown that it belongs to the job."""

_LENGTH = struct.Struct(">I")
_BLOCK = struct.Struct(">cqqq")
_ACK = struct.Struct(">cqqq")
_HINT = struct.Struct(">cqq?")
_END = struct.Struct(">cq")
BLOCK, ACK, HINT, END, JSON, PING, BYE = range(1, 8)
_STREAM = {R: b"R", S: b"S"}
_NAME = {code: name for name, code in _STREAM.items()}


class FrameProblem(ValueError):  # noqa: N818 (a problem of the connection, not a bug)
    """Bytes that are no frame of ours; the message says in one sentence why."""


def frame(kind: int, *parts: bytes | pa.Buffer) -> bytes:
    """One frame; :class:`FrameProblem` if it would be too long."""
    body = b"".join([bytes([kind]), *map(bytes, parts)])
    if len(body) > FRAME_BYTES_MAX:
        msg = f"a message of {len(body)} bytes is over the {FRAME_BYTES_MAX} that a frame may have"
        raise FrameProblem(msg)
    return _LENGTH.pack(len(body)) + body


def encode(message: Message) -> bytes:
    """The frame of a message."""
    stream = _STREAM[message.stream]
    if isinstance(message, Block):
        head = _BLOCK.pack(stream, message.number, message.seen, message.wm_us)
        return frame(BLOCK, head, to_arrow(message.tuples).serialize())
    if isinstance(message, Ack):
        return frame(ACK, _ACK.pack(stream, message.number, message.sent_opposite, message.size))
    if isinstance(message, Hint):
        return frame(HINT, _HINT.pack(stream, message.source_wm_us, message.next_seq, message.over))
    return frame(END, _END.pack(stream, message.blocks))


def decode(kind: int, body: bytes) -> Message:
    """The message of a frame; :class:`FrameProblem` for anything else."""
    try:
        if kind == BLOCK:
            stream, number, seen, wm_us = _BLOCK.unpack_from(body)
            batch = pa.ipc.read_record_batch(pa.py_buffer(body[_BLOCK.size :]), SCHEMA)
            return Block(_NAME[stream], number, seen, wm_us, tuples_from_arrow(batch))
        if kind == ACK:
            stream, *numbers = _ACK.unpack(body)
            return Ack(_NAME[stream], *numbers)
        if kind == HINT:
            stream, wm_us, next_seq, over = _HINT.unpack(body)
            return Hint(_NAME[stream], wm_us, next_seq, over)
        if kind == END:
            stream, blocks = _END.unpack(body)
            return End(_NAME[stream], blocks)
    except (struct.error, KeyError, pa.ArrowException, OSError) as error:
        msg = f"a frame of kind {kind} with {len(body)} bytes cannot be read"
        raise FrameProblem(msg) from error
    msg = f"there is no kind {kind} of frame"
    raise FrameProblem(msg)


def encode_json(data: dict[str, Any]) -> bytes:
    """A frame for greetings and meetings."""
    return frame(JSON, json.dumps(data).encode("utf-8"))


def decode_json(kind: int, body: bytes) -> dict[str, Any]:
    """What :func:`encode_json` was given; :class:`FrameProblem` for anything else."""
    try:
        data = json.loads(body) if kind == JSON else None
    except ValueError:
        data = None
    if not isinstance(data, dict):
        msg = f"a frame of kind {kind} is not a greeting"
        raise FrameProblem(msg)
    return data


class Frames:
    """Cuts what a connection delivers into frames."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self._rest = bytearray()

    @property
    def missing(self) -> int:
        """How many bytes may be read without touching the frame behind this one."""
        if len(self._rest) < _LENGTH.size:
            return _LENGTH.size - len(self._rest)
        (length,) = _LENGTH.unpack_from(self._rest)
        return int(_LENGTH.size + length - len(self._rest))

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Kind and body of every frame that is complete now.

        Raises :class:`FrameProblem` as soon as a length is not permitted.
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
