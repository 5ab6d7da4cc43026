"""A running house beside the two RDMA guests: they register by the agent, and beat alone fills their chart."""

import contextlib
import http.cookiejar
import json
import os
import sqlite3
import subprocess
import sys
import urllib.parse
import urllib.request
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest

from lab.data_plane import INTERVAL_S, LABEL
from lab.layout import wait_until
from lab.processes import descendants
from tests.__main__ import TOO_LONG

pytestmark = pytest.mark.rdma
ROOT = Path(__file__).resolve().parents[2]
# Not the environment of the tests: it names their own data folder.
A_RUN_TAKES_S = 5.0  # of 1 MiB; longer means that others have the processors
UNDER_WAY = "pgrep -cf fabricui-probe/on_host.py || true\n"
PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR", "FABRICUI_SECRET_KEY")


@pytest.fixture(scope="module")
def house(guests, tmp_path_factory):
    """What the running house says of itself; nobody asks it for a probe."""
    folder = tmp_path_factory.mktemp("house")
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.probes.house_beside_guests", folder / "house", guests.directory],
            cwd=ROOT, env={**environment, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True,
        )  # fmt: skip
    line = process.stdout.readline()
    if not line:
        process.communicate()
        pytest.fail(f"the house did not come up: {(folder / 'said').read_text()[-2000:]}")
    yield json.loads(line)
    process.communicate(timeout=60)  # closes its input; it ends its processes and the site
    for guest in guests.guests:  # a run that was cut ends in the guest as well, and leaves the port to other tests
        wait_until(
            lambda guest=guest: guest.admin(UNDER_WAY) == "0\n", timeout_s=60, what=f"the probe in {guest.name} to end"
        )


class Table(HTMLParser):
    """The attributes of each row of points, newest first."""

    def __init__(self):
        super().__init__()
        self.rows = []

    def handle_starttag(self, tag, attributes):
        if tag == "tr" and "data-gbps" in dict(attributes):
            self.rows.append({name: value for name, value in attributes if name.startswith("data-")})


class Browser:
    """Signs in with the form and reads pages, as a person's browser does without scripts."""

    def __init__(self, house):
        self.jar = http.cookiejar.CookieJar()
        handlers = (urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor(self.jar))
        self.opener = urllib.request.build_opener(*handlers)
        landed, _ = self.read(house["url"])
        token = next(cookie.value for cookie in self.jar if cookie.name == "csrftoken")
        form = {"csrfmiddlewaretoken": token, "login": "operator", "password": house["password"]}
        self.read(landed, urllib.parse.urlencode(form).encode())

    def read(self, url, form=None):
        with self.opener.open(url, data=form, timeout=30) as answer:
            return answer.url, answer.read().decode()


def rows(house, query, *values):
    with contextlib.closing(sqlite3.connect(f"file:{house['database']}?mode=ro", uri=True, timeout=20)) as database:
        return database.execute(query, values).fetchall()


ENDED = "SELECT finished_at, gbps, p50_ns, state FROM probes_proberun WHERE pair_id = ? AND finished_at IS NOT NULL"


def epoch(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def test_two_points_appear_by_themselves_and_the_page_shows_what_is_stored(house):
    def fullest():
        found = rows(house, "SELECT pair_id, count(*) FROM probes_proberun WHERE finished_at > '' GROUP BY pair_id")
        return next((pair for pair, count in found if count >= 2), None)

    pair = wait_until(fullest, timeout_s=2 * INTERVAL_S * TOO_LONG, what="two points of a pair", pause_s=0.5)
    stored = rows(house, f"{ENDED} ORDER BY finished_at DESC, id DESC", pair)
    assert [state for *_, state in stored] == ["DONE"] * len(stored)
    # Where a run of 1 MiB takes long, others share the processors that emulate: then as patient as a stage is.
    [(began, ended)] = rows(
        house, "SELECT started_at, finished_at FROM probes_proberun WHERE finished_at > '' ORDER BY id LIMIT 1"
    )
    times = 1 if epoch(ended) - epoch(began) < A_RUN_TAKES_S else TOO_LONG
    assert epoch(stored[-2][0]) - house["begun"] < 2 * INTERVAL_S * times
    assert rows(house, "SELECT DISTINCT asked_by FROM probes_proberun") == [("",)]  # nobody pressed anything

    [ends] = rows(
        house,
        "SELECT a.public_id, b.public_id FROM probes_probepair p JOIN probes_probehost a ON a.id = p.sender_id"
        " JOIN probes_probehost b ON b.id = p.target_id WHERE p.id = ?", pair,
    )  # fmt: skip
    browser = Browser(house)
    _, overview = browser.read(house["scope"])
    assert LABEL in overview
    _, page = browser.read(f"{house['scope']}pairs/{ends[0]}/{ends[1]}/?profile=link")
    table = Table()
    table.feed(page)
    newest = int(table.rows[0]["data-at"])
    stored = [
        row for row in rows(house, f"{ENDED} ORDER BY finished_at DESC, id DESC", pair) if epoch(row[0]) < newest + 1
    ]
    shown = [(int(row["data-at"]), float(row["data-gbps"]), float(row["data-p50"])) for row in table.rows]
    assert shown == [(int(epoch(at)), gbps, p50) for at, gbps, p50, _ in stored]
    assert len(shown) >= 2


def test_only_the_probe_worker_knows_where_the_probe_key_lies(house, guests):
    key = str(guests.guests[0].probe_key).encode()
    knowing = set()
    for pid in descendants([house["tree"]]):
        with contextlib.suppress(OSError):
            if key in Path(f"/proc/{pid}/environ").read_bytes():
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                knowing.add(words[words.index(b"-Q") + 1] if b"-Q" in words else words[:4][-1])
    assert knowing == {b"probe", b"processes"}  # the latter starts all the others, and hands it to the one


def test_the_guests_came_through_the_door_and_are_no_members(house, guests):
    found = rows(house, "SELECT hostname, report FROM inventory_server WHERE hostname LIKE 'rdma-%' ORDER BY hostname")
    assert [name for name, _ in found] == sorted(guest.name for guest in guests.guests)
    reported = [json.loads(report)["ports"] for _, report in found]
    assert {port["node_guid"] for ports in reported for port in ports} == {guest.node_guid for guest in guests.guests}
    assert {(port["link_layer"], port["partition_candidate"]) for ports in reported for port in ports} == {
        ("Ethernet", False)
    }
    assert rows(house, "SELECT guid FROM inventory_port WHERE hca_id IS NOT NULL") == []  # nothing to stage
    [(events,)] = rows(
        house,
        "SELECT count(*) FROM audit_event WHERE action = 'inventory:server:enrol' AND subject_label LIKE 'rdma-%'",
    )
    assert events == 2
