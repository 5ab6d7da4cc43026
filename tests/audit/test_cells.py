"""What goes out as CSV is text to every spreadsheet, and numbers stay numbers."""

import csv
import io

import pytest

from audit.cells import harmless, line, lines


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1", "|x", "%x", "\uff1d1", "\uff20A1"])
def test_no_cell_is_a_formula(text):
    assert harmless(text) == f"'{text}"
    assert next(csv.reader(io.StringIO(line(["a", text]), newline=""))) == ["a", f"'{text}"]


@pytest.mark.parametrize(("value", "cell"), [(-1.5, -1.5), (0, 0), (True, True), (None, ""), ("a=1", "a=1")])
def test_what_is_no_text_or_no_formula_stays(value, cell):
    assert harmless(value) == cell


def test_rows_stand_under_their_columns():
    assert list(lines(["name", "why"], [["a", 'b "c"\nd'], [1, None]])) == [
        "name,why\r\n", 'a,"b ""c""\nd"\r\n', "1,\r\n"
    ]  # fmt: skip
