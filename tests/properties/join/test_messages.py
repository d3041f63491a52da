"""Messages between workers of a chain: what arrives is what was sent, or it is refused."""

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.vocabulary.join import R, S
from spark_impl.join import messages
from spark_impl.join.matching import SCHEMA, Tuples, to_arrow, tuples_from_arrow
from spark_impl.join.messages import Block, BlockAck, End, Frames, Hint, Message

NUMBERS = st.integers(0, 5) | st.integers(-(1 << 63), (1 << 63) - 1)
ROWS: st.SearchStrategy[dict[str, object]] = st.builds(
    dict,
    rank=NUMBERS,
    source_id=NUMBERS,
    ts=NUMBERS,
    value=st.sampled_from((0.0, -0.5, 1e300)),
    key=st.sampled_from(("", "a", "日本")),
)
STREAMS = st.sampled_from((R, S))
BLOCKS = st.builds(
    Block,
    STREAMS,
    NUMBERS,
    NUMBERS,
    NUMBERS,
    st.lists(ROWS, max_size=6).map(
        lambda rows: tuples_from_arrow(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
    ),
)
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    BLOCKS,
    st.builds(BlockAck, STREAMS, NUMBERS, NUMBERS, NUMBERS),
    st.builds(Hint, STREAMS, NUMBERS, NUMBERS, st.booleans()),
    st.builds(End, STREAMS, NUMBERS),
)


def plain(message: Message) -> tuple[object, ...]:
    """Return a message that can be compared."""
    return tuple(
        to_arrow(each).to_pylist() if isinstance(each, Tuples) else each for each in message
    )


def received(data: bytes, pieces: list[int]) -> list[Message]:
    """Return the messages of some bytes that arrive in pieces."""
    frames, found = Frames(messages.FRAME_BYTES_MAX), list[Message]()
    cuts = [0, *sorted(piece % (len(data) + 1) for piece in pieces), len(data)]
    for begin, end in pairwise(cuts):
        for kind, body in frames.feed(data[begin:end]):
            found += messages.decode_messages(kind, body)
    return found


@given(st.lists(MESSAGES, max_size=6), st.lists(st.integers(0, 1 << 16), max_size=6))
def test_messages_arrive_as_they_were_sent(sent: list[Message], pieces: list[int]) -> None:
    data = b"".join(messages.encode_messages(sent))
    assert list(map(plain, received(data, pieces))) == list(map(plain, sent))


@given(st.lists(BLOCKS, min_size=1, max_size=4), st.integers(0, 3), st.integers(-3, 3))
def test_blocks_whose_sizes_do_not_add_up_are_refused(
    blocks: list[Block], at: int, by: int
) -> None:
    blocks = [block._replace(stream=R) for block in blocks]
    sizes = [len(block.tuples) for block in blocks]
    sizes[at % len(sizes)] = max(0, sizes[at % len(sizes)] + by)
    heads = [
        messages._BLOCK.pack(block.number, block.seen, block.wm_us, size)
        for block, size in zip(blocks, sizes, strict=True)
    ]
    tuples = to_arrow(Tuples.concat([block.tuples for block in blocks])).serialize()
    first = messages._BLOCKS.pack(b"R", len(blocks))
    body = b"".join([first, *heads, bytes(tuples)])
    if sum(sizes) == sum(len(block.tuples) for block in blocks):
        assert len(messages.decode_messages(messages.BLOCKS, body)) == len(blocks)
    else:
        with pytest.raises(messages.FrameProblem, match="cannot be read"):
            messages.decode_messages(messages.BLOCKS, body)


MOST = messages.FRAME_BYTES_MAX
LENGTHS = st.sampled_from([0, 1, 2, MOST - 1, MOST, MOST + 1, (1 << 32) - 1])


@given(st.lists(MESSAGES, max_size=3), LENGTHS)
def test_a_length_that_no_frame_has_is_refused_before_its_bytes_come(
    sent: list[Message], length: int
) -> None:
    data = b"".join(messages.encode_messages(sent)) + length.to_bytes(4, "big")
    frames = Frames(MOST)
    if 1 <= length <= MOST:
        assert all(kind for kind, _ in frames.feed(data))
        assert frames.missing == length
    else:
        with pytest.raises(messages.FrameProblem, match=f"^a frame of {length} bytes came"):
            list(frames.feed(data))
