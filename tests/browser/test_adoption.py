"""The adoption page in a browser: each of its states under axe, on small screens, and one way through it."""

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from deploy.models import Fence, Rollout
from partitions import adoption
from partitions.models import Partition
from tests.browser.axe import violations
from tests.partitions.by_hand import ByHand, build
from tests.subnet.by_hand import BY_HAND

pytestmark = pytest.mark.browser

FILE = BY_HAND["A41"] + BY_HAND["A22"].split(b"\n", 1)[1] + BY_HAND["A46"].replace(b"=0x1", b"=0x2").split(b"\n", 1)[1]


@pytest.fixture
def fabric(tables) -> ByHand:
    return build()


@pytest.fixture
def page(fabric, live_server, context, sign_in):
    """Olga's page on the subnet that waits to be adopted; a console error fails the test at its end."""
    sign_in(context, fabric.olga)
    page = context.new_page()
    page.set_default_timeout(20_000)
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    yield page
    assert not wrong


def nothing(fabric: ByHand) -> None:
    """Nobody has looked."""


def found(fabric: ByHand) -> None:
    """A file with many findings, and nothing in the way."""
    fabric.look(FILE)


def refused(fabric: ByHand) -> None:
    """Another file on the standby, and a stranger's SM."""
    fabric.look(FILE, standby=BY_HAND["A44"], rogue=fabric.server.hcas.get().ports.get().guid)


def rejected(fabric: ByHand) -> None:
    """A file that OpenSM does not take."""
    fabric.look(FILE.replace(b"\n", b"\r\n"))


def adopted(fabric: ByHand) -> None:
    """Adopted, and waiting to be placed."""
    look = fabric.look(FILE)
    adoption.adopt(observation=look, digest=adoption.explain_look(observation=look).digest, actor=fabric.olga)


def managed(fabric: ByHand) -> None:
    """Placed and proven; Default is open."""
    adopted(fabric)
    look = fabric.look(FILE)
    rollout = adoption.place(subnet=fabric.subnet, observation=look, actor=fabric.olga)
    Fence.objects.filter(subnet=fabric.subnet).update(current=rollout.revision, rollout=None)
    Rollout.objects.filter(pk=rollout.pk).update(state="PROVEN", finished_at=timezone.now(), after=look)


STATES = (nothing, found, refused, rejected, adopted, managed)


def address(fabric: ByHand) -> str:
    return reverse("console:adoption", args=[fabric.subnet.public_id])


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_axe_finds_nothing_and_nothing_is_wider_than_the_screen(fabric, page, live_server, state):
    state(fabric)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.goto(live_server.url + address(fabric))
        for summary in page.locator("details summary").all():
            if summary.locator("xpath=..").get_attribute("open") is None:
                summary.click()
        assert not violations(page), scheme
    for width in (420, 768, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_person_adopts_with_an_owner_and_comes_to_the_next_step(fabric, page, live_server):
    found(fabric)
    page.goto(live_server.url + address(fabric))
    page.get_by_label("Owner of foraldralos_AO").select_option("Acme")
    page.get_by_role("button", name="Adopt as the first revision").click()
    expect(page.get_by_role("heading", name="Place it in our words")).to_be_visible()
    expect(page.get_by_role("button", name="Place and prove")).to_be_enabled()
    assert Partition.objects.get(name="foraldralos_AO").tenant == fabric.acme
