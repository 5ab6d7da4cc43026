"""What a person answers for by name: going without a standby, and letting stand what moved beside a rollout."""

import pytest
from django.urls import reverse

from audit.models import Event
from deploy import decisions
from deploy.models import HostOutcome, Observation, Rollout, Watch
from inventory.models import Port
from tests.console.drifted import drifted, watch

PLAN, DRIFT, PUT_BACK = (reverse(f"console:{name}") for name in ("plan", "drift", "drift_put_back"))
CUT = "Manager host m2: Connection refused. Is sshd running there?"
MANAGERS = [
    {"host": "m1", "digest": "", "revision": 2, "role": "MASTER", "error": None},
    {"host": "m2", "digest": "", "revision": None, "role": "", "error": CUT},
]


def looked(site) -> Observation:
    """A look at which m2 did not answer."""
    observation = site.provider.observe()
    digest = observation.managers[0]["digest"]
    observation.managers = [MANAGERS[0] | {"digest": digest}, MANAGERS[1]]
    observation.save()
    return observation


def sent(page) -> dict[str, str]:
    drawn = page.context["drawn"]
    return {"selection": "mine", "plan_digest": drawn.digest, "observation": drawn.observation.public_id}


class TestGoingWithout:
    def test_the_plan_offers_it_for_what_takes_nothing_and_wants_a_reason(self, site, operator):
        site.provider.move(site.provider.servers[4], None, site.inference)
        looked(site)
        page = operator.get(PLAN)
        text = page.content.decode()
        assert 'name="without" value="m2"' in text
        assert 'name="without" value="m1"' not in text  # the master never lacks
        assert CUT in text
        answer = operator.post(PLAN, sent(page) | {"without": "m2", "reason": " "})
        assert answer.status_code == 409
        assert "Say why the rollout should go without m2" in answer.content.decode()
        assert 'value="m2" checked' in answer.content.decode()
        answer = operator.post(PLAN, sent(page) | {"without": "m2", "reason": "in the workshop"})
        rollout = Rollout.objects.latest("pk")
        assert rollout.without == {"hosts": ["m2"], "by": "Olga", "reason": "in the workshop"}
        text = operator.get(answer.url).content.decode()
        assert "It may go without m2, as Olga said: “in the workshop”." in text

    def test_the_plan_says_why_it_needs_every_standby(self, site, operator):
        site.provider.move(site.provider.servers[3], site.research, None)
        looked(site)
        text = operator.get(PLAN).content.decode()
        assert "It needs every standby: it takes port" in text
        assert 'name="without"' not in text

    def test_put_back_offers_it_too(self, site, operator):
        drifted(site)
        watch(site)
        Watch.objects.update(managers=MANAGERS)
        assert 'name="without" value="m2"' in operator.get(DRIFT).content.decode()
        refused = operator.post(PUT_BACK, {"without": "m2"})
        assert refused.status_code == 409
        assert "Say why" in refused.content.decode()
        operator.post(PUT_BACK, {"without": "m2", "reason": "in the workshop"})
        rollout = Rollout.objects.latest("pk")
        assert (rollout.revision, rollout.without["hosts"]) == (rollout.parent, ["m2"])

    @pytest.mark.parametrize("back", [False, True])
    def test_a_refused_rollout_says_who_stopped_it_and_where_to_go_without(self, site, operator, auditor, back):
        site.provider.move(site.provider.servers[4], None, site.inference)
        rollout = site.provider.roll_out(site.provider.olga)
        HostOutcome.objects.filter(rollout=rollout, host__name="m2").update(failure=CUT)
        same = {"revision": rollout.parent} if back else {}
        Rollout.objects.filter(pk=rollout.pk).update(state="REFUSED", cause=CUT, **same)
        address = reverse("console:rollout", args=[rollout.public_id])
        text = operator.get(address).content.decode()
        assert "m2 stopped it." in text
        assert (f"{DRIFT}#put-back" in text) == back
        assert (f"{PLAN}#without" in text) != back
        assert "m2 stopped it." not in auditor.get(address).content.decode()


class TestAccepting:
    @pytest.fixture
    def rollout(self, site) -> Rollout:
        """Unproven: a port beside it has another LID, and a port of it is gone."""
        site.provider.move(site.provider.servers[0], site.training, site.inference)
        rollout = site.provider.roll_out(site.provider.olga)
        self.beside, self.gone = (str(port.guid) for port in Port.objects.order_by("-guid")[:2])
        found = {"counts": {}, "moved": {self.beside: [99, "ACTIVE"]}, "absent": [self.gone]}
        Rollout.objects.filter(pk=rollout.pk).update(state="UNPROVEN", cause="Port moved.", read_back=found)
        rollout.refresh_from_db()
        return rollout

    def page(self, browser, rollout) -> str:
        return browser.get(reverse("console:rollout", args=[rollout.public_id])).content.decode()

    def test_the_page_names_what_moved_and_only_an_operator_has_the_button(self, rollout, operator, auditor):
        for browser in (operator, auditor):
            text = self.page(browser, rollout)
            assert f"port {self.beside}: LID 99 and ACTIVE now" in text
            assert f"port {self.gone}: not on the fabric" in text
        assert "/accept/" in self.page(operator, rollout)
        assert "/accept/" not in self.page(auditor, rollout)

    def test_by_a_click_it_stands_with_name_and_reason(self, rollout, operator):
        address = reverse("console:rollout_accept", args=[rollout.public_id])
        seen = decisions.name_of(*decisions.in_the_way(rollout))
        assert f'name="seen" value="{seen}"' in self.page(operator, rollout)
        said = operator.post(address, {"seen": seen, "reason": " "}, follow=True).content.decode()
        assert "Say why what moved may stand" in said
        operator.post(address, {"seen": seen, "reason": "recabled"})
        rollout.refresh_from_db()
        assert (rollout.accepted["by"], rollout.accepted["absent"]) == ("Olga", [self.gone])
        assert Event.objects.get(action="deploy:rollout:accept").reason == "recabled"
        text = self.page(operator, rollout)
        assert "Olga lets 1 port with another LID or state and 1 absent port stand: “recabled”." in text
        assert "/accept/" not in text

    def test_what_was_not_looked_at_is_not_accepted(self, rollout, operator):
        seen = decisions.name_of(*decisions.in_the_way(rollout))
        more = rollout.read_back | {"absent": [self.gone, "0x0002c9030000ffff"]}
        Rollout.objects.filter(pk=rollout.pk).update(read_back=more)
        address = reverse("console:rollout_accept", args=[rollout.public_id])
        said = operator.post(address, {"seen": seen, "reason": "recabled"}, follow=True).content.decode()
        assert "is another list of ports now" in said
        rollout.refresh_from_db()
        assert rollout.accepted is None

    @pytest.mark.parametrize("state", ["PROVEN", "DEGRADED", "STUCK", "READING_BACK"])
    def test_nothing_else_offers_it(self, rollout, operator, state):
        Rollout.objects.filter(pk=rollout.pk).update(state=state)
        assert "What moved beside it" not in self.page(operator, rollout)
