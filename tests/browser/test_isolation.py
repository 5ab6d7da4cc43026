"""The pages of isolation and the alarm: axe and width, in light and dark, with data and without."""

import pytest
from django.urls import reverse
from django.utils import timezone

from probes.models import IsolationCheck
from probes.operations.isolation import store
from probes.verdict import Isolation, Judged
from tests.browser.axe import violations
from tests.probes.test_isolation_pages import SA, TRIED

pytestmark = pytest.mark.browser


@pytest.fixture
def checks(site):
    """Three tenants with some verdicts; one leak, one attempt on the data plane, one that waits."""
    now, provider = timezone.now(), site.provider
    servers = [provider.server(number, ports=0) for number in range(201, 207)]
    tenants = ("acme", "acme", "bert", "bert", "cleo", "")
    verdicts = {
        Isolation.ISOLATED: "The SA refuses a path between the two. This is the SM’s view only.",
        Isolation.LEAK: "The SA gives a path between the two in P_Key 0xffff.",
        Isolation.INCONCLUSIVE: "The asking manager host is not a full member of Default.",
    }  # fmt: skip
    made = []
    for one, other in ((0, 2), (2, 0), (0, 4), (4, 0), (1, 3), (3, 1), (2, 4), (5, 0)):
        for plane in ("CONTROL", "DATA"):
            made.append(
                IsolationCheck.objects.create(
                    subnet=provider.subnet, plane=plane, cause="SCHEDULE", asked_at=now,
                    sender=servers[one], sender_guid=f"0x0002c9030000{one:04x}",
                    target=servers[other], target_guid=f"0x0002c9030000{other:04x}",
                    sender_tenant=tenants[one], target_tenant=tenants[other],
                )
            )  # fmt: skip
    for place, row in enumerate(made[:-1]):
        verdict = Isolation.LEAK if place == 0 else Isolation.INCONCLUSIVE if place in (6, 9) else Isolation.ISOLATED
        IsolationCheck.objects.filter(pk=row.pk).update(state="RUNNING")
        evidence = (
            SA
            if row.plane == "CONTROL"
            else {"attempt": TRIED, "expected_s": [0.134, 2.16], "controls_before": [TRIED]}
        )
        store(row, judged=Judged(verdict, row.plane == "DATA", verdicts[verdict]), evidence=evidence, now=now)
    return made


@pytest.mark.parametrize("theme", ["LIGHT", "DARK"])
@pytest.mark.parametrize("width", [1280, 400])
def test_the_pages_stand_at_every_width_in_light_and_dark(site, checks, page, live_server, theme, width, tmp_path):
    site.provider.olga.theme = theme
    site.provider.olga.save()
    page.set_viewport_size({"width": width, "height": 900})
    addresses = {
        "isolation": reverse("probes:isolation"),
        "leak": reverse("probes:isolation_check", args=[checks[0].public_id]),
        "attempt": reverse("probes:isolation_check", args=[checks[1].public_id]),
        "waiting": reverse("probes:isolation_check", args=[checks[-1].public_id]),
        "incidents": reverse("probes:incidents"),
        "board": reverse("console:board"),
    }
    for name, address in addresses.items():
        page.goto(f"{live_server.url}{address}")
        page.screenshot(path=tmp_path / f"{name}.png", full_page=True)
        banners = page.locator(".leak-banner").all_inner_texts()
        assert len(banners) == 1, (name, banners)
        assert banners[0].startswith("LEAK. srv-201 (acme) can")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} is wider than the window"
        assert violations(page) == [], name


def test_without_checks_the_page_says_why(site, page, live_server):
    IsolationCheck.objects.all().delete()
    page.goto(f"{live_server.url}{reverse('probes:isolation')}")
    assert page.get_by_text("No check yet").is_visible()
    assert page.locator(".leak-banner").all_inner_texts() == []
    assert violations(page) == []
