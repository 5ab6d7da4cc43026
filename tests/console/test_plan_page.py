"""The plan's page: a fresh look first, then everything a person needs to say yes, then the button."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape

from console.plans import port_row
from deploy.models import Observation, Rollout
from partitions import operations
from partitions.models import Partition, StagedChange
from subnet.default import CLOSED, OPEN
from subnet.guid import GUID
from subnet.index import Prediction
from subnet.plan import PortChange

PLAN = reverse("console:plan")
QUERIES = 40


def stage_default(provider, *, keywords, reason="why"):
    operations.stage_default(subnet=provider.subnet, keywords=keywords, members=(), actor=provider.olga, reason=reason)


@pytest.fixture
def staged(site):
    """One server of Olga's on its way from training to inference."""
    site.provider.move(site.provider.servers[0], site.training, site.inference)
    return site


def form(answer) -> dict[str, str]:
    """The hidden fields of the button."""
    drawn = answer.context["drawn"]
    return {"selection": "mine", "plan_digest": drawn.digest, "observation": drawn.observation.public_id}


def test_an_old_look_is_renewed_before_anything_is_shown(staged, operator, nudges):
    Rollout.objects.update(finished_at=timezone.now() - timedelta(hours=2))
    Observation.objects.update(read_at=timezone.now() - timedelta(hours=1))
    answer = operator.get(PLAN)
    text = answer.content.decode()
    assert "Reading the fabric…" in text
    assert 'hx-trigger="every 1s, refresh"' in text
    assert "Roll out" not in text
    assert Observation.objects.filter(state=Observation.State.REQUESTED, why="plan").count() == 1
    operator.get(PLAN)
    assert Observation.objects.filter(state=Observation.State.REQUESTED).count() == 1


def test_a_look_from_before_the_last_rollout_ended_is_renewed(staged, operator):
    """However young it is, it shows what no longer is."""
    staged.provider.observe(read_at=timezone.now() - timedelta(seconds=20))
    Rollout.objects.update(state="RESTORED", after=None, finished_at=timezone.now() - timedelta(seconds=5))
    young = Observation.objects.filter(read_at__gt=timezone.now() - timedelta(seconds=10))
    young.update(read_at=timezone.now() - timedelta(seconds=30))
    assert "Reading the fabric…" in operator.get(PLAN).content.decode()


def test_the_fragment_of_a_finished_look_asks_no_more(staged, operator):
    staged.provider.observe()
    text = operator.get(PLAN, HTTP_HX_REQUEST="true").content.decode()
    assert "<html" not in text
    assert "plan-poller" not in text
    assert "Roll out" in text


def test_a_plan_shows_ports_keys_and_files(staged, operator):
    staged.provider.observe()
    text = operator.get(PLAN).content.decode()
    assert "srv-001 moves from training to inference" in text
    for port in ("0x0002c90400000101", "0x0002c90400000111"):
        assert port in text
    assert "0xac41" in text  # full member of training, read at index 1
    assert "0x9b07" in text  # full member of inference, to come
    assert "partitions.conf on m1" in text
    assert "partitions.conf on m2" in text
    assert "diff-add" in text
    assert "By hand:" in text
    assert "<strong>3</strong> (stage each, review, confirm)" in text


def test_an_auditor_reads_the_plan_and_asks_for_nothing(staged, auditor):
    staged.provider.observe()
    text = auditor.get(PLAN + "?selection=all").content.decode()
    assert "srv-001 moves" in text
    assert "an operator rolls them out" in text
    Observation.objects.update(read_at=timezone.now() - timedelta(hours=1))
    auditor.get(PLAN + "?selection=all")
    assert not Observation.objects.filter(state=Observation.State.REQUESTED).exists()


def test_nothing_staged_is_said_so(site, operator):
    site.provider.observe()
    assert "Nothing is staged" in operator.get(PLAN).content.decode()


def test_a_failed_look_says_why_and_offers_another(staged, operator):
    provider = staged.provider
    Observation.objects.update(read_at=timezone.now() - timedelta(hours=1))
    Observation.objects.create(
        subnet=provider.subnet, state=Observation.State.FAILED, why="plan", requested_at=timezone.now(),
        finished_at=timezone.now(), failure="Manager host m1 cannot be reached. Start its sshd.",
    )  # fmt: skip
    text = operator.get(PLAN).content.decode()
    assert "Manager host m1 cannot be reached. Start its sshd." in text
    assert "Look again" in text
    assert 'id="roll-out"' not in text
    assert not Observation.objects.filter(state=Observation.State.REQUESTED).exists()
    operator.post(reverse("console:plan_look"), {"selection": "mine"})
    assert Observation.objects.filter(state=Observation.State.REQUESTED).count() == 1


def test_the_button_starts_the_rollout_of_what_was_looked_at(staged, operator):
    staged.provider.observe()
    answer = operator.post(PLAN, form(operator.get(PLAN)) | {"reason": "ticket 7"})
    rollout = Rollout.objects.latest("pk")
    assert answer.url == reverse("console:rollout", args=[rollout.public_id])
    assert rollout.state == Rollout.State.QUEUED
    assert rollout.reason == "ticket 7"


def test_a_stale_plan_says_what_changed_and_offers_the_new_one(staged, operator):
    provider = staged.provider
    provider.observe()
    looked_at = form(operator.get(PLAN))
    provider.move(provider.servers[1], staged.training, staged.inference)
    rollouts = Rollout.objects.count()
    answer = operator.post(PLAN, looked_at)
    text = answer.content.decode()
    assert answer.status_code == 409
    assert "The plan has changed" in text
    assert "the staged changes are others" in text
    assert answer.context["drawn"].digest in text  # the new plan, with its own button
    assert Rollout.objects.count() == rollouts


def test_what_deploy_refuses_is_told_on_the_page(staged, operator):
    provider = staged.provider
    provider.observe()
    looked_at = form(operator.get(PLAN))
    provider.subnet.mode = "OBSERVE"
    provider.subnet.save()
    answer = operator.post(PLAN, looked_at)
    assert answer.status_code == 409
    assert "Not rolled out" in answer.content.decode()
    assert "FabricUI only looks" in operator.get(PLAN).content.decode()  # said before anybody tries


def test_a_frozen_subnet_is_told_on_the_plan(staged, operator):
    staged.provider.observe()
    staged.provider.subnet.frozen_at = timezone.now()
    staged.provider.subnet.frozen_reason = "cabling in row 4"
    staged.provider.subnet.save()
    text = operator.get(PLAN).content.decode()
    assert "Frozen: cabling in row 4." in text
    assert "disabled>" in text


def test_a_plan_that_is_too_big_asks_for_a_reason(site, operator):
    provider = site.provider
    for server in provider.servers[:2]:
        provider.move(server, site.training, None)
    provider.observe()
    page = operator.get(PLAN)
    text = page.content.decode()
    assert "A reason is needed" in text
    answer = operator.post(PLAN, form(page))
    assert answer.status_code == 422
    assert "give a reason" in answer.content.decode()
    assert operator.post(PLAN, form(page) | {"reason": "the pilot has ended"}).status_code == 302


def test_a_selection_that_is_none_is_not_found(site, operator):
    assert operator.get(PLAN + "?selection=everything").status_code == 404
    assert operator.post(PLAN, {"selection": "mine", "observation": "nonsense"}).status_code == 404


def test_mine_leaves_out_what_others_staged(staged, operator):
    provider = staged.provider
    provider.move(provider.servers[2], staged.inference, staged.training, by=provider.otto)
    provider.observe()
    assert [row.hostname for row in operator.get(PLAN).context["rows"]] == ["srv-001"]
    assert [row.hostname for row in operator.get(PLAN + "?selection=all").context["rows"]] == ["srv-001", "srv-003"]
    assert StagedChange.objects.count() == 8


def test_closing_default_is_told_with_what_follows_and_every_port(site, operator):
    provider = site.provider
    stage_default(provider, keywords=OPEN)
    provider.settle(provider.roll_out(provider.olga, reason="test"))
    stage_default(provider, keywords=CLOSED, reason="ticket 9")
    provider.observe(held_default=0xFFFF)
    answer = operator.get(PLAN)
    text = answer.content.decode()
    assert "No server moves, but Default, everybody&#x27;s partition, closes: 12 ports change" in text
    assert "By hand:" in text
    assert "<strong>3</strong> (stage each, review, confirm)" in text
    assert text.count("set NCCL_IB_PKEY") == 1  # an effect
    assert text.count("Default closes for every port that is not excepted.") == 1  # a reason
    assert "staged by Olga: ticket 9" in text
    (row,) = answer.context["partitions"]
    assert [(line.what, line.before, line.after) for line in row.lines] == [
        ("Keyword ALL", "full", "limited"),
        ("Keyword ALL_SWITCHES", "", "full"),
        ("Keyword ALL_ROUTERS", "", "full"),
        ("Keyword SELF", "", "full"),
    ]
    (group,) = answer.context["others"]
    assert (group.count, group.more, len(group.named)) == (12, 0, 12)
    assert [(key.index, key.entry) for key in (*group.before, *group.after)] == [("0", "0xffff"), ("0", "0x7fff")]
    assert "srv-006" in text


def test_a_partition_that_comes_and_one_that_goes_are_told(site, operator):
    provider = site.provider
    archive = provider.partition("archive", provider.acme, 0x2222)
    Partition.objects.filter(pk=archive.pk).update(flags={"ipoib": True, "mtu": 5})
    provider.move(provider.servers[2], site.inference, archive)
    provider.observe()
    answer = operator.get(PLAN)
    rows = {row.name: row for row in answer.context["partitions"]}
    assert rows.keys() == {"inference", "archive"}
    assert rows["inference"].what == "leaves the file: nobody of Acme is in it any more"
    assert rows["archive"].what == "comes into the file, for Acme"
    assert [(line.what, line.after) for line in rows["archive"].lines] == [
        ("Flag ipoib", "ipoib"),
        ("Flag mtu", "mtu=5"),
    ]
    assert not answer.context["others"]  # the server's own row shows its ports


def test_a_new_name_travels_with_the_next_rollout(staged, operator):
    provider = staged.provider
    operations.rename_partition(partition=staged.training, name="training-a", actor=provider.olga)
    provider.observe()
    answer = operator.get(PLAN)
    (row,) = answer.context["partitions"]
    assert [(line.what, line.before, line.after) for line in row.lines] == [("Name", "training", "training-a")]


def test_a_hazard_is_told_once_with_its_ports(site, operator):
    """A freed index that the next key takes: both ports of the server are in one note."""
    provider = site.provider
    provider.move(provider.servers[0], site.training, site.inference)
    provider.observe()
    answer = operator.get(PLAN)
    hazards = answer.context["hazards"]
    sentences = [hazard.sentence for hazard in hazards]
    assert len(set(sentences)) == len(sentences) >= 1
    assert all(answer.content.decode().count(escape(sentence)) == 1 for sentence in sentences)
    assert any(hazard.count == 2 and hazard.named[0][1] == "srv-001" for hazard in hazards)


def test_where_a_key_stands_after_a_takeover_is_said_when_that_is_elsewhere():
    change = PortChange(
        guid=GUID("0x0002c90400000101"), label=None, before={0: 0x7FFF}, gains=(0x9B07,), losses=(),
        prediction=Prediction(
            survivors={0: 0x7FFF}, new={0x9B07: frozenset({1})}, after_takeover={0x9B07: frozenset({1, 2})}
        ),
    )  # fmt: skip
    new = port_row(change, "mlx5_0", {0x1B07: "inference"}).after[1]
    assert (new.index, new.takeover) == ("1", "1–2")
    same = replace(change.prediction, after_takeover=change.prediction.new)
    assert port_row(replace(change, prediction=same), "mlx5_0", {}).after[1].takeover == ""


def test_a_plan_that_went_out_on_a_newer_revision_says_so(staged, operator):
    provider = staged.provider
    provider.observe()
    page = operator.get(PLAN)
    looked_at = form(page) | {"parent": str(page.context["drawn"].parent.number)}
    assert f'name="parent" value="{looked_at["parent"]}"' in page.content.decode()
    provider.move(provider.servers[4], None, staged.research, by=provider.otto)
    provider.settle(provider.roll_out(provider.otto))
    provider.observe()
    answer = operator.post(PLAN, looked_at, follow=True)
    assert f"You looked at a plan on revision {looked_at['parent']}" in answer.content.decode()


def test_a_plan_costs_the_same_queries_whatever_its_size(staged, operator, django_assert_max_num_queries):
    provider = staged.provider
    provider.observe()
    operator.get(PLAN)
    with django_assert_max_num_queries(QUERIES) as small:
        operator.get(PLAN)
    for number in range(50, 80):
        provider.server(number, state="ACTIVE", rate_text="400 Gb/sec (4X NDR)")
        provider.move(provider.servers[-1], None, staged.training)
    provider.observe()
    with django_assert_max_num_queries(QUERIES) as large:
        assert len(operator.get(PLAN).context["rows"]) == 31
    assert len(large.captured_queries) == len(small.captured_queries)
