"""Elements of a large array, some at a time: as if the whole file had been decoded at once."""

from __future__ import annotations

import json
import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuroshio.errors import Refusal
from kuroshio.perf.traces.json_stream import Elements

TEXTS = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    ['"', "\\", '\\"', "},{", '}, {"', "]", "[", '{"ph"', "\\\\", '"},\n{"a"', "é", "\u2028"]
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | FLOATS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
LAYOUTS = st.sampled_from(
    [{}, {"separators": (",", ":")}, {"indent": 1}, {"indent": 4, "ensure_ascii": False}]
)


def elements(data: bytes, size: int = 1 << 20, **options: Any) -> tuple[list[Any], Elements[Any]]:
    """All, and the stream; `size` is what the file gives at a time."""
    found = Elements(
        "trace.json",
        iter([data[i : i + size] for i in range(0, len(data), size)]),
        msgspec.json.Decoder(list[Any]),
        frozenset({"traceEvents"}),
        **{"piece": size, **options},
    )
    return [each for batch in found for each in batch], found


@given(st.lists(VALUES, max_size=30), LAYOUTS, st.integers(1, 200))
def test_a_bare_list_is_as_json_has_it(content, layout, size):
    found, stream = elements(json.dumps(content, **layout).encode(), size)
    assert found == content
    assert not stream.odd
    assert not stream.mended
    assert not stream.unclosed


@given(
    st.dictionaries(TEXTS, VALUES, max_size=4),
    st.lists(st.fixed_dictionaries({"ph": TEXTS, "args": VALUES}), max_size=30),
    st.dictionaries(TEXTS, VALUES, max_size=4),
    LAYOUTS,
    st.integers(1, 300),
)
def test_other_keys_may_stand_on_both_sides(before, events, after, layout, size):
    content = {**before, "traceEvents": events}
    content |= {key: value for key, value in after.items() if key != "traceEvents"}
    found, stream = elements(json.dumps(content, **layout).encode(), size)
    assert found == content.pop("traceEvents")
    assert stream.metadata == content


@given(st.lists(VALUES, min_size=1, max_size=8), LAYOUTS, st.data())
def test_what_is_cut_off_is_never_taken_for_whole(content, layout, data):
    text = json.dumps({"traceEvents": content}, **layout).encode()
    end = data.draw(st.integers(1, len(text) - 1))
    with pytest.raises(Refusal, match=r"cut off|no whole JSON"):
        elements(text[:end], data.draw(st.integers(1, 100)))


@given(st.lists(VALUES, min_size=1, max_size=8), st.data())
def test_a_changed_byte_gives_json_or_a_refusal(content, data):
    text = bytearray(json.dumps({"traceEvents": content}).encode())
    text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    try:
        found, stream = elements(bytes(text), data.draw(st.integers(1, 100)))
    except Refusal:
        return
    if stream.mended or stream.odd:
        return
    expected = json.loads(text.replace(b",]", b"]"))
    assert found == (expected.get("traceEvents", []) if isinstance(expected, dict) else expected)


def test_the_text_between_elements_may_stand_in_a_string():
    # Where it cuts in the wrong place, decoding fails, and brackets are counted.
    chance = random.Random(1)
    events = [
        {"ph": "X", "args": [{"ph": 1}, {"ph": '}, {"ph"' * chance.randrange(5)}]}
        for _ in range(500)
    ]
    found, _ = elements(json.dumps(events).encode(), 1000)
    assert found == events


@pytest.mark.parametrize("text", [b'[{"a":1}', b'[{"a":1},', b'[{"a":1},\n', b'[{"a":1},]'])
def test_a_list_may_lack_its_end_as_chrome_allows(text):
    found, stream = elements(text)
    assert found == [{"a": 1}]
    assert stream.unclosed == (b"]" not in text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'[{"n":"caf\xe9"}]', "caf\ufffd"),
        (b'[{"n":"C:\\Users\\q"}]', "C:\\Users\\q"),
        (b'[{"n":"a\x01b"}]', "a\x01b"),
        (b'[{"n":"\\ud83d!"}]', "\ufffd!"),
        (b'[{"n":NaN}]', None),
        (b'[{"n":-Infinity}]', None),
        (b'[{"n":inf}]', None),
        (b'[{"n":"NaN \\" \\\\"},{"m":nan}]', 'NaN " \\'),
    ],
)
def test_what_is_almost_json_is_mended_and_said_to_be(text, expected):
    found, stream = elements(text)
    assert found[0]["n"] == expected
    assert stream.mended


@pytest.mark.parametrize(
    "text",
    [b"", b" ", b"<html>", b"[{}{}]", b"[,{}]", b'{"a"}', b'{"a":1', b'{"a":1]', b"{1:2}",
     b'{"a":1,}x', b"[]]", b'[{"a":1}}', b'[{"a":]', b"\0\0", b'{"traceEvents":[{}', b'{"a":"b',
     b"[" * 100_000 + b"]" * 100_000, b"[" * 100_000, b'{"a":' * 100_000],
)  # fmt: skip
def test_what_is_no_json_is_refused(text):
    with pytest.raises(Refusal, match=r"trace\.json"):
        elements(text, 1 << 16)


@pytest.mark.parametrize(
    "begin",
    [b"[", b'{"traceEvents":[', b'{"other":', b'{"', b'[{"name":"', b"[1,", b'[{"a":',
     b'{"traceEvents":[{},'],
)  # fmt: skip
@pytest.mark.parametrize("filling", [b" ", b"x", b"1", b"[", b"{"])
def test_memory_is_bounded_whatever_comes(begin, filling):
    """An endless file is refused once a value is larger than allowed."""
    taken = 0

    def endless():
        nonlocal taken
        yield begin
        while True:
            taken += 1
            yield filling * 1000

    decoder = msgspec.json.Decoder(list[Any])
    large = frozenset({"traceEvents"})
    found = Elements("trace.json", endless(), decoder, large, 1000, 50_000)
    with pytest.raises(Refusal):
        for _ in found:
            pass
    assert taken < 60
