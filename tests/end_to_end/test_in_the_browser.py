"""The main job as an operator does it: the real demo, a real drag, and tables that another program reads."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from subnet.diagnostics import parse_smpquery_pkeys
from tests.browser.conftest import browser_type_launch_args  # noqa: F401  a fixture of that folder
from tests.end_to_end.running_demo import SERVERS

pytestmark = pytest.mark.browser

PROVEN_WITHIN_MS = 120_000
SHOWN_WITHIN_S = 90  # one round of the watch (30 s) on a machine that does much else


@pytest.fixture
def operator(demo, context):
    """The demo's operator, signed in with the printed password; no console error is let pass."""
    page = context.new_page()
    page.set_default_timeout(30_000)
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.goto(demo.url)
    page.get_by_label("User name").fill("operator")
    page.get_by_label("Password").fill(demo.password)
    page.keyboard.press("Enter")
    page.wait_for_url(demo.url)
    page.goto(f"{demo.url}board/")
    yield page
    assert not wrong


def tables(site):
    """Every HCA port's table by smpquery: port GUID → the set of its entries."""
    return {
        guid: set(parse_smpquery_pkeys(site.run_tool("smpquery", "pkeys", str(lid))).pkeys.values())
        for guid, lid in site.lids().items()
        if guid in {hca.port_guid for hca in site.fabric.hcas()}
    }


def test_a_drag_goes_out_and_is_proven(demo, operator):
    page = operator
    # The board shows the servers that registered themselves; the guests of the data plane come when they are up.
    expect(page.locator(".card[data-name^=srv-]")).to_have_count(SERVERS)
    before = tables(demo.site)
    source, target = (page.locator(f".cards[data-name={name}]") for name in ("acme-training", "acme-inference"))
    leaving, joining = (int(cards.get_attribute("data-pkey"), 16) | 0x8000 for cards in (source, target))
    server = source.locator(".card").first
    name = server.get_attribute("data-name")
    with page.expect_response("**/board/move/") as answer:
        server.drag_to(target, source_position={"x": 60, "y": 36}, target_position={"x": 100, "y": 40})
    assert answer.value.status == 200
    expect(page.locator("#tray-text")).to_contain_text("1 server, 2 ports staged")
    assert tables(demo.site) == before  # nothing that is dragged touches the fabric

    page.get_by_role("link", name="Review plan").click()
    page.get_by_label("Reason").fill("moved in the browser")
    expect(page.get_by_role("main")).to_contain_text(name)
    expect(page.get_by_role("main")).to_contain_text("0x7fff")
    page.get_by_role("button", name="Roll out").click()
    expect(page.locator("#rollout-state")).to_have_attribute("data-state", "PROVEN", timeout=PROVEN_WITHIN_MS)
    expect(page.locator("#closing")).to_contain_text("14 of 14 ports proven")

    moved = set(demo.site.fabric.server(name).port_guids)
    after = tables(demo.site)
    assert {guid for guid in after if after[guid] != before[guid]} == moved
    for guid in moved:
        assert before[guid] == {0x7FFF, leaving}
        assert after[guid] == {0x7FFF, joining}

    page.goto(f"{demo.url}board/")
    expect(target.locator(".card", has_text=name)).to_be_visible()
    expect(page.locator("#tray-text")).to_contain_text("Nothing is staged")


@pytest.fixture
def shell(demo, operator, tmp_path):
    """Run `fabricui …` as a program of its own; give what it ended with and what it printed."""

    def made_for(name, *scopes):
        """A token of the operator's, made on its page."""
        operator.goto(f"{demo.url}account/tokens/")
        operator.get_by_label("Name", exact=True).fill(name)
        for scope in scopes:
            operator.locator(f"input[value='{scope}']").check()
        operator.get_by_role("button", name="Make the token").click()
        path = tmp_path / name
        path.touch(mode=0o600)
        path.write_text(operator.locator("#new-token").inner_text(), encoding="utf-8")

        def run(*words):
            environment = {
                "PATH": os.environ["PATH"], "HOME": str(tmp_path), "FABRICUI_URL": demo.url,
                "FABRICUI_TOKEN_FILE": str(path),
            }  # fmt: skip
            command = [sys.executable, "-m", "fabricui.client", *words]
            return subprocess.run(command, capture_output=True, text=True, timeout=180, env=environment, check=False)

        return run

    return made_for


def test_a_move_from_a_shell_is_proven(demo, operator, shell):
    """The other way round than the drag, so that either may come first."""
    writing = ("inventory:read", "partitions:read", "partitions:write", "deploy:read", "deploy:write")
    columns = {name: operator.locator(f".cards[data-name={name}]") for name in ("acme-training", "acme-inference")}
    keys = {name: int(cards.get_attribute("data-pkey"), 16) | 0x8000 for name, cards in columns.items()}
    fabricui = shell("writing", *writing)
    listed = json.loads(fabricui("servers", "--json", "--partition", "acme-inference").stdout)["servers"]
    name = listed[0]["hostname"]
    before = tables(demo.site)
    moved = fabricui("move", name, "--to", "acme-training", "--reason", "moved from a shell")
    assert moved.returncode == 0, moved.stderr
    assert tables(demo.site) == before
    drawn = json.loads(fabricui("plan", "--json").stdout)
    digest, hazards = drawn["plan"]["digest"], {one["kind"] for one in drawn["plan"]["hazards"]}
    accepted = [word for kind in sorted(hazards) for word in ("--accept", kind)]

    other = f"{digest[:-1]}{'0' if digest[-1] != '0' else '1'}"
    stale = fabricui("rollout", "--digest", other, "--reason", "moved from a shell", *accepted)
    assert (stale.returncode, "any more" in stale.stderr) == (3, True), stale.stderr
    assert fabricui("move", "nobody", "--to", "acme-training").returncode == 6
    reading = shell("reading", "inventory:read", "partitions:read", "deploy:read")
    assert reading("rollout", "--reason", "moved from a shell", *accepted).returncode == 5
    assert tables(demo.site) == before

    rolled_out = fabricui("rollout", "--wait", "--digest", digest, "--reason", "moved from a shell", *accepted)
    assert rolled_out.returncode == 0, rolled_out.stderr
    assert "PROVEN" in rolled_out.stdout
    after, ports = tables(demo.site), set(demo.site.fabric.server(name).port_guids)
    assert {guid for guid in after if after[guid] != before[guid]} == ports
    for guid in ports:
        assert before[guid] == {0x7FFF, keys["acme-inference"]}
        assert after[guid] == {0x7FFF, keys["acme-training"]}


def breaks(demo, *words):
    """What a person types in a second terminal: `./run lab break …`."""
    command = [sys.executable, "-m", "lab", "break", *words, "--dir", str(demo.lab)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def lines(page, text: str) -> int:
    """How many lines of the server's history hold `text`."""
    return page.locator("#history").get_by_text(text).count()


def shown(page, *seen: Callable[[], bool]) -> None:
    """Load the page again, as a person would, until it shows all of `seen` at once."""
    deadline = time.monotonic() + SHOWN_WITHIN_S
    while not all(one() for one in seen):
        assert time.monotonic() < deadline, page.locator("main").inner_text()
        page.wait_for_timeout(500)
        page.reload()


def test_a_pulled_cable_and_a_reboot_show_on_the_servers_page(demo, operator):
    page, server = operator, demo.site.fabric.servers[-1]
    page.goto(f"{demo.url}servers/")
    page.get_by_role("link", name=server.hostname).first.click()
    witnesses = page.locator("#witnesses summary").first
    expect(witnesses).to_contain_text("both agree")
    # The first hour of a demo may have lines of its own: what counts is what comes now.
    lost, rebooted = lines(page, "not there"), lines(page, "reboot")
    breaks(demo, "cut-link", f"{server.hostname}:0")
    try:
        # The fabric says so: nobody asked the server. Of its two ports the other may have a line of its own, so that
        # a new line alone does not say that the page knows of this one.
        shown(page, lambda: lines(page, "not there") > lost, lambda: "link down" in witnesses.inner_text())
        breaks(demo, "reboot", server.hostname)
        shown(page, lambda: lines(page, "reboot") > rebooted)
        pulled = page.get_by_role("region", name="Ports").get_by_role("row").nth(1)
        expect(pulled).to_contain_text(str(server.hcas[0].port_guid))
        expect(pulled.get_by_role("cell").nth(1)).to_contain_text("down")
    finally:
        breaks(demo, "restore-link", f"{server.hostname}:0")
