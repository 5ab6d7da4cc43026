"""A tenant by itself, on the real demo: its move ends PROVEN without an operator, and what is forbidden is refused.

Accounts, roles and the policy are made by an administrator in the browser; the tables are read by another program.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from playwright.sync_api import Locator, Page, expect

from subnet.diagnostics import parse_smpquery_pkeys
from tests.browser.conftest import browser_type_launch_args  # noqa: F401  a fixture of that folder

pytestmark = pytest.mark.browser

TENANT, PARTITIONS = "Acme Robotics", 2
UNTIL_MS = 90_000  # gathered for ten seconds, the fabric rests, is read, rolled out and read again


@dataclass
class Pages:
    """A browser of its own for each person."""

    admin: Page
    operator: Page
    max: Page
    vera: Page


@contextmanager
def at_the_door(browser, demo) -> Iterator[Page]:
    """A page in a new browser. A broken script or a refused resource fails the test; a refusal is none."""
    with browser.new_context() as context:
        page = context.new_page()
        page.set_default_timeout(30_000)
        wrong: list[str] = []
        page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(demo.url)
        yield page
    assert not [text for text in wrong if not re.search(r"409 \(Conflict\)|404 \(Not Found\)|403 \(Forbidden\)", text)]


def sign_in(page: Page, name: str, password: str) -> None:
    page.get_by_label("User name").fill(name)
    page.get_by_label("Password").fill(password)
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "/account/login" not in url)


def sign_in_first(page: Page, name: str, given: str) -> None:
    """The administrator knows the password that it gave: nothing opens before another is chosen."""
    sign_in(page, name, given)
    expect(page.get_by_role("heading", name="Change your password")).to_be_visible()
    own = f"{given} of my own"
    page.get_by_label("Present password").fill(given)
    page.get_by_label("New password", exact=True).fill(own)
    page.get_by_label("New password once more").fill(own)
    page.get_by_role("button", name="Change the password").click()
    page.wait_for_url("**/servers/")


def account(admin: Page, demo, name: str, role: str) -> str:
    """Make somebody of the tenant in the browser; give the password that the page shows once."""
    admin.goto(f"{demo.url}people/")
    admin.get_by_label("User name").fill(name)
    admin.get_by_label("Name", exact=True).last.fill(name.capitalize())
    admin.get_by_role("button", name="Make the account").click()
    password = admin.locator("#new-password").inner_text()
    admin.get_by_role("link", name="Give a role for a tenant").click()
    admin.locator("#tenant").select_option(label=TENANT)
    admin.locator("#tenant-role").select_option(label=role)
    admin.get_by_role("button", name="Give", exact=True).click()
    expect(admin.get_by_text(f"{name.capitalize()} is {role} of {TENANT} now.")).to_be_visible()
    return password


def policy(admin: Page, demo) -> None:
    """Let the tenant's moves go out by themselves, and give it no partition more than it has."""
    admin.goto(f"{demo.url}tenants/")
    admin.get_by_role("link", name=TENANT).click()
    admin.get_by_label("roll out by themselves when the plan is safe").check()
    admin.get_by_label("Partitions", exact=True).fill(str(PARTITIONS))
    admin.get_by_role("button", name="Set it").click()
    expect(admin.get_by_text(f"That is what {TENANT} may do by itself now.")).to_be_visible()


@pytest.fixture
def pages(demo, browser) -> Iterator[Pages]:
    doors = [at_the_door(browser, demo) for _ in range(4)]
    with doors[0] as admin, doors[1] as operator, doors[2] as max_, doors[3] as vera:
        sign_in(admin, "admin", demo.admin_password)
        sign_in(operator, "operator", demo.password)
        policy(admin, demo)
        sign_in_first(max_, "max", account(admin, demo, "max", "member"))
        sign_in_first(vera, "vera", account(admin, demo, "vera", "viewer"))
        yield Pages(admin, operator, max_, vera)


def tables(site) -> dict[str, dict[int, int]]:
    """Every HCA port's table by smpquery: port GUID → index → entry."""
    ports = {hca.port_guid for hca in site.fabric.hcas()}
    return {
        str(guid): parse_smpquery_pkeys(site.run_tool("smpquery", "pkeys", str(lid))).pkeys
        for guid, lid in site.lids().items()
        if guid in ports
    }


def columns(page: Page) -> tuple[Locator, Locator]:
    """The tenant's own partitions: the one with two servers, and the one with one."""
    own = page.locator("#columns .cards")
    expect(own).to_have_count(PARTITIONS)
    first, second = own.all()
    many, few = (first, second) if first.locator(".card").count() == 2 else (second, first)
    named = [f".cards[data-name={cards.get_attribute('data-name')}]" for cards in (many, few)]
    return page.locator(named[0]), page.locator(named[1])


def drag(page: Page, card: Locator, target: Locator, address: str) -> int:
    """Drag `card` there; give the status of the answer."""
    with page.expect_response(address) as answer:
        card.drag_to(target, source_position={"x": 60, "y": 12}, target_position={"x": 90, "y": 70})
    return answer.value.status


def own_move(page: Page, cards: Locator, target: Locator, name: str) -> int:
    return drag(page, cards.locator(f".card[data-name={name}]"), target, "**/partitions/move/")


def forged(page: Page, **fields: str) -> int:
    """Send a card's own form with other values in it, as somebody does who has opened the developer tools."""
    form = page.locator("form[action$='/partitions/move/']").first
    for name, value in fields.items():
        form.locator(f"input[name={name}]").evaluate("(field, value) => { field.value = value; }", value)
    with page.expect_navigation() as answer:
        form.evaluate("form => form.submit()")
    return answer.value.status


def said(page: Page) -> str:
    return " ".join(page.locator("body").inner_text().split())


def test_its_own_move_is_proven_without_an_operator_and_what_is_forbidden_is_refused(demo, pages):
    page, before = pages.max, tables(demo.site)
    board = page.url.replace("/servers/", "/partitions/")
    page.goto(board)
    many, few = columns(page)
    moving, staying = (card.get_attribute("data-name") for card in many.locator(".card").all())
    alone = few.locator(".card").get_attribute("data-name")

    # What the provider has staged for a server of the tenant's stands in the way, and does not travel along.
    pages.operator.goto(f"{demo.url}board/")
    theirs = pages.operator.locator(".cards[data-name=globex-training]")
    strange, strange_key = theirs.locator(".card").first.get_attribute("data-server"), theirs.get_attribute("data-key")
    names = [cards.get_attribute("data-name") for cards in (few, many)]
    own, other = (pages.operator.locator(f".cards[data-name={name}]") for name in names)
    assert drag(pages.operator, own.locator(".card"), other, "**/board/move/") == 200
    page.reload()
    expect(few.locator(f".card[data-name={alone}]")).to_contain_text("your provider changes it")
    assert own_move(page, few, many, alone) == 409
    expect(page.get_by_role("alert")).to_contain_text("Your provider has a change of it pending.")
    expect(few.locator(f".card[data-name={alone}]")).to_be_visible()

    # A plan that empties a partition of several servers waits for an operator; meanwhile it tries what is not its own.
    assert own_move(page, many, few, moving) == 200
    assert own_move(page, many, few, staying) == 200
    for fields in ({"server": strange}, {"target": strange_key}, {"server": "222222222222"}):
        page.goto(board)
        assert forged(page, **fields) == 404
        assert "There is nothing here" in said(page)
        assert "it is not yours to see. Nothing was changed." in said(page)
        assert "lobex" not in page.content()
    page.goto(board)
    page.get_by_label("Name").fill("one-more")
    page.get_by_role("button", name="Create it").click()
    expect(page.get_by_role("alert")).to_contain_text(
        f"{TENANT} has 2 partitions, and may have 2. Nothing was created."
    )
    vera = pages.vera
    vera.goto(board)
    expect(vera.locator("#columns .card")).to_have_count(3)
    expect(vera.locator("form[action$='/partitions/move/'], #new-name")).to_have_count(0)
    token = vera.locator("input[name=csrfmiddlewaretoken]").first.get_attribute("value")
    fields = {
        "server": page.locator(f".card[data-name={moving}]").get_attribute("data-server"),
        "csrfmiddlewaretoken": token,
    }
    vera.evaluate(
        """([address, fields]) => {
            const form = Object.assign(document.createElement("form"), { method: "post", action: address });
            for (const [name, value] of Object.entries(fields))
                form.append(Object.assign(document.createElement("input"), { type: "hidden", name, value }));
            document.body.append(form);
            form.submit();
        }""",
        [f"{board}move/", fields],
    )
    expect(vera.locator("#refusal")).to_contain_text("viewers change nothing. Nothing was changed. Ask your provider")
    page.goto(board)
    progress = page.locator("#progress")
    expect(progress).to_contain_text("needs an operator", timeout=UNTIL_MS)
    expect(progress).to_contain_text("This change is larger than what goes out by itself.")
    assert tables(demo.site) == before  # nothing of all that touched the fabric

    # It takes one of the two back, and the other goes out.
    page.get_by_label(f"Move {staying}").click()
    page.get_by_role("button", name="Take it back").click()
    expect(page.get_by_text(f"{staying} stays where it is.")).to_be_visible()
    progress.get_by_role("button", name="Try again").click()
    expect(progress.locator(".lamp")).to_have_text("PROVEN", ignore_case=True, timeout=UNTIL_MS)
    expect(page.locator("#progress-said")).to_contain_text("your ports hold exactly the keys they should")
    expect(few.locator(f".card[data-name={moving}]")).to_be_visible()
    expect(many.locator(f".card[data-name={moving}]")).to_have_count(0)

    after = tables(demo.site)
    ports = {str(guid) for guid in demo.site.fabric.server(moving).port_guids}
    assert {guid for guid in after if after[guid] != before[guid]} == ports
    joined = page.locator(f"#{few.get_attribute('id').replace('cards-', 'foot-')} code").inner_text()
    wanted = int(joined, 16) | 0x8000
    assert all(set(after[guid].values()) == {0x7FFF, wanted} for guid in ports)
    page.get_by_role("link", name=moving).click()
    for guid in ports:  # what the tenant reads of value and index is what stands in the table
        (index,) = (index for index, entry in after[guid].items() if entry == wanted)
        expect(page.get_by_role("row", name=guid)).to_contain_text(f"{joined} full, index {index}")
    pages.operator.goto(f"{demo.url}rollouts/")
    expect(pages.operator.get_by_role("row").nth(1)).to_contain_text("Max")
    pages.operator.goto(f"{demo.url}board/")
    expect(pages.operator.locator("#tray-text")).to_contain_text("1 server, 2 ports staged")  # as the operator left it

    # A suspended tenant's people are out, at once and politely.
    pages.admin.goto(f"{demo.url}tenants/")
    pages.admin.get_by_role("link", name=TENANT).click()
    pages.admin.locator("#suspend-reason").fill("unpaid")
    pages.admin.get_by_role("button", name="Suspend the tenant").click()
    expect(pages.admin.get_by_role("button", name="Let its people in again")).to_be_visible()
    page.goto(board)
    expect(page).to_have_url(re.compile("/account/login/"))
    assert tables(demo.site) == after
