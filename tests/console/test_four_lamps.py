"""The four lamps: what is known is said, what is not is never good."""

from datetime import UTC, datetime, timedelta

import pytest

from console.four_lamps import FILES_LAST, TABLES_LAST, Fabric, Four, Glow, HostFile, Lit, Tried, together

NOW = datetime(2026, 12, 2, 12, tzinfo=UTC)
BOTH = (HostFile("m1", True), HostFile("m2", True))


def fabric(**fields):
    return Fabric(**({"files": BOTH, "files_at": NOW, "proven_at": NOW} | fields))


@pytest.mark.parametrize(
    ("files", "age", "glow", "word"),
    [
        (BOTH, timedelta(0), Glow.GOOD, "on both hosts"),
        (BOTH[:1], timedelta(0), Glow.GOOD, "on 1 host"),
        ((), timedelta(0), Glow.NONE, "the files were not read yet"),
        (BOTH, FILES_LAST + timedelta(seconds=1), Glow.NONE, "the files were not read lately"),
        ((BOTH[0], HostFile("m2", False)), timedelta(0), Glow.BAD, "another file on m2"),
        ((BOTH[0], HostFile("m2", None)), timedelta(0), Glow.PART, "not known on m2"),
        ((HostFile("m1", None), HostFile("m2", None)), timedelta(0), Glow.NONE, "no host could be read"),
    ],
)
def test_placed(files, age, glow, word):
    assert fabric(files=files, files_at=NOW - age).placed(NOW) == Lit(glow, word)


@pytest.mark.parametrize(
    ("fields", "glow"),
    [
        ({}, Glow.GOOD),
        ({"proven_at": None}, Glow.NONE),
        ({"proven_at": NOW - TABLES_LAST - timedelta(seconds=1)}, Glow.NONE),
        ({"owed": frozenset({1})}, Glow.PART),
        ({"owed": frozenset({2})}, Glow.GOOD),
        ({"wrong": frozenset({1}), "owed": frozenset({1}), "proven_at": None}, Glow.BAD),
    ],
)
def test_proven(fields, glow):
    assert fabric(**fields).proven(1, NOW).glow is glow


@pytest.mark.parametrize(
    ("tests", "glow"),
    [
        ({}, Glow.NONE),
        ({(1, 7): Tried(good=1)}, Glow.GOOD),
        ({(1, None): Tried(good=1)}, Glow.GOOD),
        ({(1, 8): Tried(good=1)}, Glow.NONE),
        ({(1, None): Tried(control=3)}, Glow.HALF),
        ({(1, 7): Tried(good=1), (1, None): Tried(control=3)}, Glow.GOOD),
        ({(1, 7): Tried(good=1, warn=1)}, Glow.PART),
        ({(1, 7): Tried(good=9), (1, None): Tried(bad=1, control=3)}, Glow.BAD),
    ],
)
def test_probed(tests, glow):
    assert fabric(tests=tests).probed(1, 7).glow is glow


def test_what_joins_is_nowhere_yet_and_no_trouble():
    four = fabric(wrong=frozenset({1})).card(
        server=1, partition=7, staged="a change of Olga waits", joins=True, now=NOW
    )
    assert four.css == "d-staged p-ahead r-ahead b-ahead"
    assert (four.trouble, four.state) == (None, "staged")


def four(**lamps):
    every = {name: Lit(Glow.GOOD, "so") for name in ("desired", "placed", "proven", "probed")}
    return Four(**(every | {name: Lit(glow, name) for name, glow in lamps.items()}))


@pytest.mark.parametrize(
    ("lamps", "trouble", "state"),
    [
        ({}, None, "good"),
        ({"probed": Glow.NONE}, None, "good"),
        ({"probed": Glow.HALF}, None, "good"),
        ({"proven": Glow.NONE}, None, "unknown"),
        ({"placed": Glow.NONE}, None, "unknown"),
        ({"desired": Glow.STAGED}, None, "staged"),
        ({"desired": Glow.STAGED, "proven": Glow.BAD}, "proven", "bad"),
        ({"placed": Glow.PART, "probed": Glow.BAD}, "probed", "bad"),
        ({"placed": Glow.PART}, "placed", "bad"),
    ],
)
def test_what_disagrees_is_said_the_gravest_first(lamps, trouble, state):
    found = four(**lamps)
    assert (None if found.trouble is None else found.trouble.word, found.state) == (trouble, state)


def test_every_glow_has_a_colour_and_a_shape_of_its_own():
    from pathlib import Path

    style = (Path(__file__).parents[2] / "static" / "board.css").read_text(encoding="utf-8")
    shapes = [line for line in style.splitlines() if line.startswith("  --shape-")]
    assert len({line.split("url(")[1] for line in shapes}) == len(shapes)
    for glow in Glow:
        for letter in "dprb":
            assert f".{letter}-{glow} {{ --{letter}s: var(--shape-{glow}); --{letter}c:" in style


def port(site, guid="0xa", **fields):
    asked = {"server": 1, "partitions": (7,), "staged": "", "joins": False, "now": NOW}
    return site.port(guid=guid, **(asked | fields))


def test_a_port_speaks_for_itself_and_its_probes_are_its_servers():
    site = fabric(wrong=frozenset({1}), wrong_ports=frozenset({"0xa"}), owed_ports=frozenset({"0xb"}),
                  tests={(1, 7): Tried(good=1), (1, 9): Tried(bad=1)})  # fmt: skip
    assert port(site).proven == Lit(Glow.BAD, "other keys on the fabric")
    assert port(site, "0xb").proven.glow is Glow.PART
    assert port(site, "0xc").proven.glow is Glow.GOOD  # another port of the same server
    assert port(site, "0xc", is_there=False).proven == Lit(Glow.NONE, "not on the fabric when it was read")
    assert port(site, "0xa", is_there=False).proven.glow is Glow.BAD
    assert port(site).probed.glow is Glow.GOOD
    assert port(site, partitions=(7, 9)).probed.glow is Glow.BAD
    assert port(site, partitions=()).probed.glow is Glow.NONE
    assert port(site, staged="a change of Olga waits").desired.glow is Glow.STAGED
    assert {port(site, joins=True).placed.glow, port(site, joins=True).proven.glow} == {Glow.AHEAD}


def test_a_card_with_a_port_that_is_down_is_not_good():
    here = {"partition": 7, "staged": "", "joins": False, "now": NOW}
    assert fabric().card(server=1, **here).proven.glow is Glow.GOOD
    assert fabric().card(server=1, down=1, **here).proven == Lit(Glow.NONE, "1 port down, which nobody can read")
    assert fabric().card(server=1, down=2, **here).state == "unknown"
    assert fabric(wrong=frozenset({1})).card(server=1, down=2, **here).proven.glow is Glow.BAD


def test_together_the_gravest_speaks_and_says_how_many():
    site = fabric(wrong=frozenset({2}), tests={(1, 7): Tried(good=1), (3, 7): Tried(good=1)})
    here = {"partition": 7, "staged": "", "joins": False, "now": NOW}
    some = [site.card(server=server, **here) for server in (1, 2, 3)]
    four = together(some)
    assert four.proven == Lit(Glow.BAD, "other keys on the fabric: 1 of 3")
    assert four.placed == Lit(Glow.GOOD, "on both hosts")
    assert four.probed == Lit(Glow.NONE, "not probed: 1 of 3")  # what is not known is never hidden by what is good
    joins = site.card(server=4, partition=7, staged="a change of Olga waits", joins=True, now=NOW)
    assert together([*some, joins]).proven == four.proven
    assert together([*some, joins]).desired == Lit(Glow.STAGED, "a change of Olga waits: 1 of 4")
    assert together([joins]).proven.glow is Glow.AHEAD
    assert together([]) is None
