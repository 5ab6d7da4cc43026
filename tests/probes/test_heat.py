"""What each cell of the matrix says, and what a block of many cells may not hide."""

from datetime import UTC, datetime, timedelta

import pytest

from probes.cost import costs
from probes.heat import LARGEST, Block, Newest, Node, Scale, draw, draw_blocks, grouped, level_of

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
NODES = [Node(f"k{number}", f"srv-{number}") for number in range(3)]


def newest(one: int, other: int, pct: float | None = 97.0, **more) -> Newest:
    fields = {
        "sender": f"k{one}", "target": f"k{other}", "outcome": "OK", "verdict": "GOOD",
        "at": NOW - timedelta(minutes=5),
        "value": None if pct is None else pct * 4, "pct_line": pct,
    } | more  # fmt: skip
    return Newest(**fields)


def cell(item: Newest | None, **more):
    items = [] if item is None else [item]
    return draw(NODES, items, is_latency=False, now=NOW, **more).rows[0].cells[1]


@pytest.mark.parametrize(
    ("item", "classes", "text", "words"),
    [
        (None, "heat-none", "", "srv-0 to srv-1: not tested"),
        (newest(0, 1, 97.5), "heat-5", "97", "srv-0 to srv-1: 97.5 % of the line, 390 Gb/s, 5 min old"),
        (newest(0, 1, 94.99), "heat-4", "94", "srv-0 to srv-1: 95.0 % of the line, 380 Gb/s, 5 min old"),
        (newest(0, 1, 49.0, verdict="BAD"), "heat-0 heat-bad", "49",
         "srv-0 to srv-1: 49.0 % of the line, 196 Gb/s, 5 min old"),
        (newest(0, 1, 97.0, at=NOW - timedelta(days=3)), "heat-5 heat-old", "97",
         "srv-0 to srv-1: 97.0 % of the line, 388 Gb/s, 3 days old"),
        (newest(0, 1, None, outcome="MEMLOCK", verdict="BAD"), "heat-failed", "✕",
         "srv-0 to srv-1: MEMLOCK, 5 min old"),
        (newest(1, 0, 97.5), "heat-none", "", "srv-0 to srv-1: not tested"),
    ],
)  # fmt: skip
def test_a_cell_says_it_in_colour_number_and_words(item, classes, text, words):
    found = cell(item)
    assert (found.classes, found.text, found.words) == (classes, text, words)
    assert (found.sender, found.target) == ("k0", "k1")


def test_rows_are_senders_and_the_diagonal_is_empty():
    drawn = draw(NODES, [newest(2, 0, 80.0)], is_latency=False, now=NOW)
    assert drawn.rows[2].cells[0].text == "80"
    assert drawn.rows[0].cells[2].classes == "heat-none"
    assert [drawn.rows[place].cells[place].classes for place in range(3)] == ["heat-self"] * 3
    assert (drawn.tested, drawn.failed, drawn.pairs) == (1, 0, 6)


def test_without_a_line_the_best_pair_is_the_measure():
    soft = [newest(0, 1, None, value=5.0), newest(1, 0, None, value=4.0)]
    drawn = draw(NODES, soft, is_latency=False, now=NOW)
    assert drawn.scale is Scale.BEST
    assert (drawn.rows[0].cells[1].text, drawn.rows[1].cells[0].text) == ("100", "80")
    quick = [newest(0, 1, 0.1, value=2000.0), newest(1, 0, 0.1, value=4000.0)]
    drawn = draw(NODES, quick, is_latency=True, now=NOW)
    assert (drawn.rows[0].cells[1].text, drawn.rows[1].cells[0].text) == ("100", "50")
    assert "2.00 µs" in drawn.rows[0].cells[1].words


@pytest.mark.parametrize(
    ("percent", "level"), [(0, 0), (49.9, 0), (50, 1), (70, 2), (80, 3), (90, 4), (95, 5), (101, 5)]
)
def test_colours_begin_where_the_legend_says(percent, level):
    assert level_of(percent) == level


def test_above_64_a_block_shows_its_worst_pair():
    nodes = [Node(f"k{number}", f"srv-{number}") for number in range(130)]
    items = [newest(one, other, 97.0) for one in range(6) for other in range(6, 12)]
    items[3] = newest(0, 9, 31.0, verdict="BAD")
    drawn = draw(nodes, items, is_latency=False, now=NOW)
    assert drawn.blocks
    assert len(drawn.rows) == -(-130 // 3) <= LARGEST
    assert drawn.rows[0].title == "srv-0 … srv-2"
    assert (drawn.rows[0].cells[3].text, drawn.rows[0].cells[3].classes) == ("31", "heat-0 heat-bad")
    assert drawn.rows[0].cells[3].sender == ""
    items[3] = newest(0, 9, None, outcome="PEER_LOST")
    assert draw(nodes, items, is_latency=False, now=NOW).rows[0].cells[3].text == "✕1"


def test_a_host_that_left_is_not_drawn():
    assert draw(NODES, [newest(0, 99)], is_latency=False, now=NOW).tested == 0
    assert draw([], [], is_latency=False, now=NOW).rows == ()


def test_a_cost_needs_a_rate_of_its_own_piece_size():
    found = {cost.model.name: cost for cost in costs({"link": 390.0}, tokens=8192, ranks=8, ttft_ms=500, line_gbps=400)}
    assert {cost.ms for cost in found.values()} == {None}
    assert found["llama-3.1-8b"].floor_ms == pytest.approx(21.5 / 8, rel=0.01)
    rates = {"kv-scatter-4k": 100.0, "kv-64k": 200.0}
    found = {cost.model.name: cost for cost in costs(rates, tokens=8192, ranks=8, ttft_ms=500, line_gbps=None)}
    assert found["llama-3.1-8b"].ms == pytest.approx((1 << 30) / 8 * 8 / 100e9 * 1e3)
    assert found["llama-3.1-8b"].share == pytest.approx(found["llama-3.1-8b"].ms / 5)
    assert found["deepseek-v3"].ms is None
    whole = {cost.model.name: cost for cost in costs(rates, tokens=8192, ranks=1, ttft_ms=500, line_gbps=None)}
    assert whole["llama-3.1-8b"].profile == "kv-64k"  # pieces of 32 KiB
    own = costs({"model:llama-3.1-8b@8192": 50.0}, tokens=8192, ranks=8, ttft_ms=500, line_gbps=None)
    assert own[0].gbps == 50.0


def many(count: int) -> list[Node]:
    return [Node(f"k{number}", f"srv-{number}") for number in range(count)]


def counted_in_python(nodes, items, *, is_latency=False):
    """The blocks as `probes.blocks` counts them, the slow way."""
    place = {node.key: number for number, group in enumerate(grouped(nodes)) for node in group}
    found: dict[tuple[int, int], list[Newest]] = {}
    for item in items:
        found.setdefault((place[item.sender], place[item.target]), []).append(item)
    blocks = []
    for (row, column), inside in found.items():
        values = sorted(item.value for item in inside if item.value is not None)
        shares = [item.pct_line for item in inside if item.pct_line is not None]
        if is_latency:
            values.reverse()
        blocks.append(
            Block(
                row, column, len(inside), sum(item.outcome != "OK" for item in inside),
                sum(item.verdict == "BAD" for item in inside), min(item.at for item in inside),
                values[0] if values else None, min(shares, default=None), values[-1] if values else None,
            )
        )  # fmt: skip
    return blocks


@pytest.mark.parametrize("is_latency", [False, True])
def test_counted_blocks_look_as_those_of_all_pairs(is_latency):
    nodes = many(LARGEST * 2 + 5)
    items = [
        newest(one, other, None if is_latency else 99.0 - (one * other) % 60, value=1000.0 + (one * 7 + other) % 90)
        for one in range(0, 130, 3) for other in range(1, 130, 4) if one != other
    ]  # fmt: skip
    items[5] = newest(0, 21, None, outcome="PEER_LOST", verdict="BAD")
    items[9] = newest(3, 1, 80.0, value=900.0, verdict="BAD", at=NOW - timedelta(days=2))
    slow = draw(nodes, items, is_latency=is_latency, now=NOW)
    items = list({(item.sender, item.target): item for item in items}.values())
    quick = draw_blocks(nodes, counted_in_python(nodes, items, is_latency=is_latency), is_latency=is_latency, now=NOW)
    assert (quick.scale, quick.columns, quick.tested, quick.failed, quick.pairs) == (
        slow.scale, slow.columns, slow.tested, slow.failed, slow.pairs,
    )  # fmt: skip
    for mine, theirs in zip(quick.rows, slow.rows, strict=True):
        assert [(cell.classes, cell.text) for cell in mine.cells] == [
            (cell.classes, cell.text) for cell in theirs.cells
        ]
