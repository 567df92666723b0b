"""MessagePack as compilers write it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuroshio.perf.compiled import message_pack


def _packed(value) -> bytes:
    """MessagePack as its definition has it, in the shortest forms."""
    if isinstance(value, bool):
        return bytes([0xC3 if value else 0xC2])
    if isinstance(value, int):
        if value < 0x80:
            return bytes([value])
        size = next(s for s in (1, 2, 4, 8) if value < 1 << (8 * s))
        return bytes([0xCC + size.bit_length() - 1]) + value.to_bytes(size, "big")
    if isinstance(value, str):
        text = value.encode()
        if len(text) < 32:
            return bytes([0xA0 | len(text)]) + text
        size = 1 if len(text) < 256 else 2
        return bytes([0xD8 + size]) + len(text).to_bytes(size, "big") + text
    short, long = (0x80, 0xDE) if isinstance(value, dict) else (0x90, 0xDC)
    items = [x for pair in value.items() for x in pair] if isinstance(value, dict) else value
    count = len(value)
    head = bytes([short | count]) if count < 16 else bytes([long]) + count.to_bytes(2, "big")
    return head + b"".join(map(_packed, items))


values = st.recursive(
    st.booleans() | st.integers(0, (1 << 64) - 1) | st.text(max_size=300),
    lambda inner: (
        st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=40), inner, max_size=20)
    ),
    max_leaves=30,
)


@given(values)
def test_message_pack(value):
    packed = _packed(value)
    assert message_pack.unpack(packed + b"more") == value
    with pytest.raises(ValueError, match=r"cut off|do not fit"):
        message_pack.unpack(packed[:-1])
