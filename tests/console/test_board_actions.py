"""What else is done from the board: undo, selecting what a search finds, creating, renaming and retiring partitions."""

import pytest
from django.urls import reverse

from partitions.models import Partition, StagedChange

JSON = {"HTTP_ACCEPT": "application/json"}


def undo(browser, **extra):
    return browser.post(reverse("console:board_undo"), **extra)


def test_the_last_action_is_undone_and_told(site, operator):
    page = operator.get("/board/").content.decode()
    assert "undo-form" not in page
    site.provider.move(site.provider.servers[0], site.training, site.inference)
    assert "Undo: srv-001 to inference (Ctrl+Z)" in operator.get("/board/").content.decode()
    answer = undo(operator, **JSON)
    assert (answer.status_code, answer.json()) == (200, {"sentence": "Undone: srv-001 to inference."})
    assert not StagedChange.objects.exists()
    assert "undo-form" not in operator.get("/board/").content.decode()


def test_a_plain_form_undoes_too_and_says_why_not(site, operator):
    site.provider.move(site.provider.servers[0], site.training, site.inference)
    assert "Undone: srv-001 to inference." in undo(operator, follow=True).content.decode()
    assert "There is nothing to undo" in undo(operator, follow=True).content.decode()
    answer = undo(operator, **JSON)
    assert answer.status_code == 409
    assert "There is nothing to undo" in answer.json()["sentence"]


def test_what_others_did_is_not_offered(site, operator):
    provider = site.provider
    provider.move(provider.servers[0], site.training, site.inference, by=provider.otto)
    assert "undo-form" not in operator.get("/board/").content.decode()


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({}, {"srv-001", "srv-002", "srv-003", "srv-004", "srv-005", "srv-006"}),
        ({"q": "tenant:acme"}, {"srv-001", "srv-002", "srv-003"}),
        ({"q": "srv-001 tenant:bert"}, set()),
    ],
)
def test_everything_that_a_search_finds_can_be_selected(site, operator, query, names):
    answer = operator.get(reverse("console:board_matching"), query)
    assert {card["name"] for card in answer.json()["cards"]} == names


def test_all_of_a_column_can_be_selected(site, operator):
    answer = operator.get(reverse("console:board_matching"), {"column": site.training.public_id})
    assert answer.json()["cards"] == [
        {"server": server.public_id, "source": site.training.public_id, "name": server.hostname}
        for server in site.provider.servers[:2]
    ]


@pytest.mark.parametrize("name", ["board_matching", "board_new_partition"])
def test_only_operators_select_and_create(site, auditor, operator, charlie, client_of, name):
    assert operator.get(reverse(f"console:{name}")).status_code == 200
    assert auditor.get(reverse(f"console:{name}")).status_code == 404
    assert client_of(charlie).get(reverse(f"console:{name}")).status_code == 404


def test_a_partition_is_created_from_the_board(site, operator):
    form = operator.get(reverse("console:board_new_partition")).content.decode()
    assert "Acme" in form
    assert 'name="pkey"' in form
    fields = {"name": "nightly", "tenant": str(site.provider.acme.pk), "pkey": ""}
    told = operator.post(reverse("console:partitions"), fields, **JSON).json()
    created = Partition.objects.get(name="nightly")
    assert told["key"] == created.public_id
    assert told["sentence"].startswith("Partition nightly has P_Key 0x")


@pytest.mark.parametrize(
    ("fields", "said"),
    [({"name": "training"}, "already has a partition training"), ({"name": ""}, "name: "), ({"name": "a b"}, "a b")],
)
def test_a_partition_that_cannot_be_is_refused_with_its_sentence(site, operator, fields, said):
    before = Partition.objects.count()
    answer = operator.post(reverse("console:partitions"), fields, **JSON)
    assert answer.status_code == 422
    assert said in answer.json()["sentence"]
    assert Partition.objects.count() == before


def test_a_partition_is_renamed_from_the_board(site, operator):
    address = reverse("console:partition_rename", args=[site.training.public_id])
    told = operator.post(address, {"name": "night-shift"}, **JSON).json()
    assert told["sentence"].startswith("training is called night-shift now.")
    refused = operator.post(address, {"name": "inference"}, **JSON)
    assert refused.status_code == 409
    assert "already has a partition inference" in refused.json()["sentence"]


def test_a_partition_is_retired_from_the_board_and_that_is_undone(site, operator):
    address = reverse("console:partition_retire", args=[site.training.public_id])
    told = operator.post(address, {"reason": "ticket 9"}, **JSON).json()
    assert told["sentence"].startswith("4 ports of 2 servers are staged out of training.")
    assert "Undo: everybody out of training" in operator.get("/board/").content.decode()
    assert undo(operator, **JSON).status_code == 200
    assert not StagedChange.objects.exists()
    empty = reverse("console:partition_retire", args=[site.storage.public_id])
    assert "storage is retired." in operator.post(empty, **JSON).json()["sentence"]
    assert operator.post(empty, **JSON).status_code == 409
