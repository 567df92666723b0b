"""Tables of CSV: what the csv module reads is read, in any pieces, and what is none is refused."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuroshio.errors import Refusal
from kuroshio.perf.traces import csv_file
from kuroshio.perf.traces.csv_file import sheet
from kuroshio.perf.traces.events import ABSENT

_TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\r"), max_size=12)
_NUMBERS = st.integers(-(2**63), 2**63 - 1)


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("csv") / "table.csv"


@given(
    rows=st.lists(st.tuples(_TEXTS, _NUMBERS | st.none(), _TEXTS), max_size=30),
    end=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC]),
    piece=st.sampled_from([3, 17, 1 << 20]),
)
def test_it_reads_what_the_csv_module_writes(path, rows, end, quoting, piece):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=quoting, lineterminator=end)
        writer.writerows([("name", "number", "other"), *rows])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_file, "_PIECE", piece)
        found = sheet(path, ("number",))
    assert found.header == ("name", "number", "other")
    assert found.rows == len(rows)
    assert found.integers["number"].tolist() == [
        ABSENT if number is None else number for _, number, _ in rows
    ]
    for at, name in ((0, "name"), (2, "other")):
        assert [found.text(name, row) for row in range(len(rows))] == [
            row[at] or None for row in rows
        ]
    assert not found.cut


@given(fields=st.lists(st.text("0123456789 -+.eE\"'a_", max_size=20), min_size=1, max_size=8))
def test_whole_numbers_are_those_that_python_reads_or_none(path, fields):
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(
        [["number", "end"], *([f, 1] for f in fields)]
    )
    path.write_text(buffer.getvalue(), encoding="utf-8")
    expected = []
    for field in fields:
        try:
            expected.append(int(field) if field.strip() else ABSENT)
        except ValueError:
            with pytest.raises(Refusal, match="no whole number"):
                sheet(path, ("number",))
            return
    if all(-(2**63) <= each < 2**63 for each in expected):
        assert sheet(path, ("number",)).integers["number"].tolist() == expected
    else:
        with pytest.raises(Refusal, match="damaged"):
            sheet(path, ("number",))


def test_columns_that_are_not_wanted_are_not_held(path):
    path.write_text("a,b,c\n1,2,3\n")
    found = sheet(path, ("a",), without=("b",))
    assert (list(found.integers), list(found.texts)) == (["a"], ["c"])
    assert found.whole("z", "a").tolist() == [1]
    assert found.whole("z") is None
    assert found.triple("a", "a", "z") is None
    assert found.text("z", 0) is None


def test_empty_lines_are_none_and_a_byte_order_mark_is_no_name(path):
    path.write_bytes(b"\xef\xbb\xbfa,b\r\n\r\n1,x\r\n\n2,y\r\n")
    assert sheet(path, ("a",)).integers["a"].tolist() == [1, 2]


@pytest.mark.parametrize("row", ["1", "1,2,3", "1,2,3,4,5"])
def test_an_uneven_row_is_refused_by_number(path, row):
    path.write_text(f"a,b\n1,2\n{row}\n3,4\n")
    with pytest.raises(Refusal, match="row 3 has"):
        sheet(path, ("a",))


def test_a_quote_that_is_never_closed_is_damage(path):
    path.write_text('a,b\n1,2\n"3,4\n5,6\n')
    with pytest.raises(Refusal, match="never closed"):
        sheet(path, ("a",))


@pytest.mark.parametrize(
    ("last", "rows", "cut"),
    [("3,4", 1, True), ("3", 1, True), ('3,"4', 1, True), ("3,4\n", 2, False), ("", 1, False)],
)
def test_a_last_line_without_end_is_left_out(path, last, rows, cut):
    path.write_text(f"a,b\n1,2\n{last}")
    found = sheet(path, ("a",))
    assert (found.rows, found.cut) == (rows, cut)


def test_a_last_line_that_lost_only_its_end_is_kept(path):
    path.write_text("a,End_Timestamp\n1,2\n3,4")
    found = sheet(path, ("a", "End_Timestamp"))
    assert (found.rows, found.cut) == (2, False)


def test_a_line_without_end_is_refused_before_it_is_held(path, monkeypatch):
    monkeypatch.setattr(csv_file, "_LONGEST", 1000)
    monkeypatch.setattr(csv_file, "_PIECE", 100)
    path.write_text("a,b\n" + "x" * 5000)
    with pytest.raises(Refusal, match="more than 1,000 bytes"):
        sheet(path, ("a",))


def test_more_rows_than_a_table_holds_are_refused(path, monkeypatch):
    monkeypatch.setattr(csv_file, "MOST_EVENTS", 2)
    path.write_text("a\n1\n2\n3\n")
    with pytest.raises(Refusal, match="more than 2 rows"):
        sheet(path, ("a",))


def test_numbers_that_a_spreadsheet_rounded_are_refused(path):
    path.write_text("a\n8.1097E+14\n")
    with pytest.raises(Refusal, match="spreadsheet"):
        sheet(path, ("a",))


def test_bytes_that_are_not_utf8_are_shown_as_well_as_can_be(path):
    path.write_bytes(b"a,b\n1,k\xff\xfe\n2,caf\xc3\xa9 de Flore\n")
    found = sheet(path, ("a",))
    assert [found.text("b", row) for row in (0, 1)] == ["k\ufffd\ufffd", "café de Flore"]


def test_a_file_that_cannot_be_read_is_refused(path):
    with pytest.raises(Refusal, match="cannot be read"):
        sheet(path.with_name("none.csv"), ("a",))
