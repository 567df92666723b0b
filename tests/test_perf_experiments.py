"""Experiments as values and text: round trips, the seal, the judgement, the folder."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from math import comb

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kuroshio.errors import Refusal
from kuroshio.perf.experiments import (
    Prediction,
    Record,
    Result,
    broken,
    concluded,
    from_text,
    judge,
    now,
    parse_prediction,
    parse_rows,
    sealed,
    to_text,
)
from kuroshio.perf.experiments.sides import quantile_interval
from kuroshio.perf.statistics import median_interval

NUMBERS = st.floats(-1e12, 1e12, allow_subnormal=False)
TIMES = st.datetimes(
    datetime(1990, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)
)  # with microseconds, which seals do not have, but records may
WORDS = st.text(min_size=1).filter(lambda text: text.strip() and "\n" not in text)
# Lines that resemble the file's own syntax come up more often than chance would have it.
LINES = st.one_of(
    st.text(),
    st.sampled_from(["+++", "# a title", "## Results", "### Result", "<!-- x -->", "[seal]", "  "]),
)
PROSE = st.lists(LINES, max_size=4).map("\n".join)
ROWS = st.dictionaries(st.sampled_from(["case", "size", "dtype", "device"]), st.integers() | WORDS)


def built(make):
    """What `make` gives, or another example where it is refused."""
    try:
        return make()
    except Refusal:
        assume(False)


@st.composite
def predictions(draw):
    low, high = sorted((draw(NUMBERS), draw(NUMBERS)))
    value = draw(st.booleans())
    return built(
        lambda: Prediction(
            figure=draw(WORDS),
            low=draw(st.sampled_from([low, None])),
            high=high,
            compare="new" if value else "new/old",
            before=draw(NUMBERS) if value else None,
            exact=draw(st.booleans()),
            new=draw(ROWS),
            old={} if value else draw(ROWS),
        )
    )


@st.composite
def results(draw, prediction: Prediction, seal: str):
    low, high = sorted((draw(NUMBERS), draw(NUMBERS)))
    verdict = judge(prediction, low, high)
    kind = draw(st.sampled_from(["judged", "not correct", "no interval"]))
    if kind != "judged":
        verdict = "not judged" if kind == "not correct" else "undecided"
    numbers = {"not correct": {}, "no interval": {"value": low}}.get(
        kind, {"value": low, "low": low, "high": high, "moved": "up"}
    )
    return Result(
        at=draw(TIMES),
        correct="no" if kind == "not correct" else draw(st.sampled_from(["yes", "not checked"])),
        verdict=verdict,
        seal=seal,
        because=draw(WORDS),
        sources=tuple(draw(st.lists(WORDS, max_size=2))),
        new=draw(st.dictionaries(WORDS, st.booleans() | NUMBERS | WORDS, max_size=3)),
        old=draw(st.just({}) | st.just({"values": [1.0, 2.0]})),
        **numbers,
    )


@st.composite
def drafts(draw, complete: bool = False):
    def make():
        texts = [draw(PROSE) for _ in range(4)]
        if complete:
            texts = [f"{text}\nwords" for text in texts]
        return Record(
            title=draw(WORDS),
            created=draw(TIMES),
            observation=texts[0],
            hypothesis=texts[1],
            change=texts[2],
            reasoning=texts[3],
            prediction=draw(predictions()) if complete else draw(st.none() | predictions()),
            follows=draw(st.none() | st.integers(1, 99)),
        )

    return built(make)


@st.composite
def sealed_records(draw):
    """Sealed, perhaps measured, perhaps concluded."""
    record = sealed(draw(drafts(complete=True)))
    found = draw(st.lists(results(record.prediction, record.seal.sha256), max_size=2))
    record = record.but(results=tuple(found), remarks=draw(PROSE.filter(lambda t: "## R" not in t)))
    return concluded(record, "roll back", "so") if draw(st.booleans()) else record


# -- the text --------------------------------------------------------------------------------------


@given(drafts() | sealed_records())
def test_any_record_is_read_as_it_was_written(record):
    text = to_text(record)
    assert from_text(text) == record
    assert to_text(from_text(text)) == text


@given(sealed_records())
def test_line_ends_and_blanks_of_an_editor_are_no_change(record):
    text = to_text(record)
    front, fence, body = text.partition("\n+++\n")
    changed = front + fence + body.replace("\n", "  \n") + "\n\n"
    again = from_text("\ufeff" + changed.replace("\n", "\r\n"))
    assert again == record
    assert broken(again) == []


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"title": "two\nlines"}, "one line"),
        ({"title": "  "}, "one line"),
        ({"observation": "a\n## Hypothesis\nb"}, "'## Hypothesis'"),
        ({"change": "\udcff"}, "UTF-8"),
    ],
)
def test_what_cannot_be_written_is_no_record(fields, words):
    with pytest.raises(Refusal, match=words):
        Record(**{"title": "t", "created": now(), **fields})


# -- the seal --------------------------------------------------------------------------------------

CHANGES = {
    "observation": PROSE,
    "hypothesis": PROSE,
    "change": PROSE,
    "reasoning": PROSE,
}


@given(sealed_records(), st.data())
def test_every_change_of_what_is_sealed_is_named(record, data):
    where = data.draw(st.sampled_from([*CHANGES, "prediction"]))
    if where == "prediction":
        other = data.draw(predictions())
        assume(other != record.prediction)
        changed = record.but(prediction=other)
        fields = {n for n in Prediction.__dataclass_fields__
                  if getattr(other, n) != getattr(record.prediction, n)}  # fmt: skip
        named = {line.partition(":")[0] for line in broken(changed)}
        assert named == {f"prediction.{name}" for name in fields}
        return
    changed = built(lambda: record.but(**{where: data.draw(PROSE)}))
    assume(getattr(changed, where) != getattr(record, where))
    section = "prediction" if where == "reasoning" else where
    assert broken(changed) == [f"the section '{section}'"]


@given(sealed_records(), WORDS, TIMES, PROSE)
def test_no_change_outside_is(record, title, created, prose):
    changed = built(
        lambda: record.but(
            title=title, created=created, follows=7, remarks=prose, reason=prose, conclusion=None
        )
    )
    assert broken(changed) == []


@settings(max_examples=300)
@given(sealed_records(), st.data())
def test_a_character_changed_in_the_file_is_refused_or_noticed_or_outside(record, data):
    text = to_text(record)
    place = data.draw(st.integers(0, len(text) - 1))
    put = data.draw(st.sampled_from(["", "x", "7", '"', "#", "\n", "=", " "]))
    try:
        changed = from_text(text[:place] + put + text[place + data.draw(st.integers(0, 1)) :])
    except Refusal:
        return
    names = ("observation", "hypothesis", "change", "reasoning", "prediction", "seal")
    same = all(getattr(changed, name) == getattr(record, name) for name in names)
    same &= [r.seal for r in changed.results] == [r.seal for r in record.results][
        : len(changed.results)
    ]
    assert (broken(changed) == []) == same


@given(sealed_records())
def test_a_seal_that_was_moved_taken_off_or_put_on_anew_is_noticed(record):
    early = replace(record.seal, at=record.seal.at - timedelta(days=1))
    assert broken(record.but(seal=early)) == ["the seal itself"]
    anew = sealed(record.but(seal=None, observation="something else"))
    assert bool(broken(anew)) == bool(broken(record.but(seal=None))) == bool(record.results)


def test_only_what_is_complete_is_sealed_and_only_once():
    record = Record(title="t", created=now(), hypothesis="h", change="c")
    with pytest.raises(Refusal, match=r"'observation'.*\[prediction\]"):
        sealed(record)
    prediction = parse_prediction("host_s.median new/old in ..0.9")
    record = sealed(record.but(observation="o", prediction=prediction))
    with pytest.raises(Refusal, match="sealed already"):
        sealed(record)


# -- the prediction and its judgement --------------------------------------------------------------


@given(*[st.integers(-6, 6)] * 4, st.booleans(), st.booleans())
def test_the_judgement_is_the_rule_of_sets(a, b, c, d, open_low, open_high):
    assume(not (open_low and open_high))
    (least, most), (low, high) = sorted((a, b)), sorted((c, d))
    prediction = built(
        lambda: Prediction(
            "x",
            low=None if open_low else least,
            high=None if open_high else most,
            compare="new",
            before=-100 if open_high else 100,
        )
    )
    within = set(range(-9 if open_low else least, 10 if open_high else most + 1))
    measured = set(range(low, high + 1))
    if measured <= within:
        expected = "confirmed"
    else:
        expected = "undecided" if measured & within else "refuted"
    assert judge(prediction, low, high) == expected


@given(*[st.integers(-3, 3)] * 2, st.integers(-3, 3))
def test_the_direction_follows_from_the_range(a, b, before):
    low, high = sorted((a, b))
    direction = Prediction("x", low, high, compare="new", before=before).direction
    assert direction == (
        "down" if low < before and high <= before
        else "up" if high > before and low >= before
        else "same"
    )  # fmt: skip
    for wrong in {"up", "down", "same"} - {direction}:
        with pytest.raises(Refusal, match=f"says '{direction}'"):
            Prediction("x", low, high, compare="new", before=before, direction=wrong)


@given(
    st.from_regex(r"[$A-Za-z_][A-Za-z0-9_.\[\]=]{0,20}", fullmatch=True),
    *[st.none() | st.decimals(-1000, 1000, places=3).map(float)] * 3,
    st.booleans(),
)
def test_a_prediction_in_words_is_read_back(figure, low, high, before, exact):
    compare = "new/old" if before is None else "new"
    prediction = built(lambda: Prediction(figure, low, high, "", compare, before, exact))
    assert parse_prediction(str(prediction)) == prediction


def test_predictions_as_people_write_them():
    ratio = parse_prediction("host_s.median new/old in 0.70..0.85")
    assert (ratio.figure, ratio.low, ratio.high) == ("host_s.median", 0.7, 0.85)
    assert (ratio.compare, ratio.direction, ratio.exact) == ("new/old", "down", False)
    count = parse_prediction("$.registers in ..64 from 72 exact")
    assert (count.compare, count.low, count.high, count.before) == ("new", None, 64, 72)
    assert count.exact
    assert parse_prediction("x new/old in 0.98..1.02").direction == "same"
    assert parse_rows("case='my case' size=64") == {"case": "my case", "size": 64}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("faster", "no prediction"),
        ("x new/old in 2..1", "exchange"),
        ("x new/old in ..", "range"),
        ("x new/old in 0.5..", "open end"),
        ("x new in 1..2", "before"),
        ("x in 1..2", "does not say what it is compared with"),
        ("20% faster", "20 % less is 0.8"),
        ("x new/old in nan..1", "no prediction"),
        ("x new/old in 1..2 from 3", "before is for a value"),
        ("x new/old in 1..1e999", "finite"),
    ],
)
def test_what_is_no_prediction_is_refused(text, words):
    with pytest.raises(Refusal, match=words):
        parse_prediction(text)


@given(st.integers(1, 25), st.sampled_from([Fraction(1, 2), Fraction(9, 10)]))
def test_order_statistics_cover_as_much_as_said(n, q):
    """The chance of each place by exact arithmetic; the interval is the narrowest that will do."""
    tail = Fraction(1, 40)
    below = [sum(comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(m + 1)) for m in range(n)]
    lows = [m for m in range(n) if below[m] <= tail]
    highs = [m for m in range(n) if 1 - below[m] <= tail]
    expected = (max(lows), min(highs)) if lows and highs else None
    assert quantile_interval(range(n), float(q), 0.95) == expected


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=80))
def test_a_median_has_the_interval_that_bench_gives(samples):
    assert quantile_interval(samples, 0.5, 0.95) == median_interval(samples)
