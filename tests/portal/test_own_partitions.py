"""A tenant's partitions: created within quota, renamed, retired, under names that tell of nobody else."""

import pytest

from partitions.models import Partition
from people.models import Tenant
from portal import own_partitions
from portal.errors import OverQuota, Refused
from subnet.table import partition_name


def create(portal, client, name, status=302):
    answer = client.post(portal.address("partitions"), {"name": name})
    assert answer.status_code == status, answer.content.decode()
    return answer.content.decode()


def test_a_partition_is_created_under_the_tenants_own_name(portal, client):
    create(portal, client, "Eval")
    made = Partition.objects.get(title="Eval")
    assert (made.name, made.tenant, made.called) == ("acme.Eval", portal.acme, "Eval")
    page = client.get(portal.address("partitions")).content.decode()
    assert "Eval" in page
    assert "acme.Eval" not in page
    assert "3 of 8" in page


def test_over_quota_it_says_how_many_and_what_to_do(portal, client):
    Tenant.objects.filter(pk=portal.acme.pk).update(most_partitions=2)
    page = create(portal, client, "third", status=409)
    assert "Acme has 2 partitions, and may have 2. Nothing was created." in page
    assert "third" in page  # what was typed is still there
    Partition.objects.filter(pk=portal.site.inference.pk).update(retired_at="2026-01-01T00:00:00Z")
    create(portal, client, "third")


@pytest.mark.parametrize("name", ["2nd", "with space", "a" * 32, "Default", "x=1", "a;b", "ünï", "a\u202eb"])
def test_a_name_that_opensm_would_misread_is_refused(portal, client, name):
    page = create(portal, client, name, status=409)
    assert "Use 1 to 31 letters" in page or "choose another name" in page


@pytest.mark.parametrize("name", ["research", "RESEARCH", "storage", "bert.plan"])
def test_anothers_name_is_free(portal, client, client_of, name):
    """The name of a partition that the tenant cannot see collides with nothing."""
    if name == "bert.plan":
        bruno = client_of(portal.seats["bruno"].person)
        assert (
            bruno.post(portal.address("partitions", tenant=portal.provider.bert), {"name": "plan"}).status_code == 302
        )
    create(portal, client, name)
    assert Partition.objects.filter(tenant=portal.acme, title=name).count() == 1


def test_a_name_that_somebody_took_on_purpose_is_told_to_nobody(portal, client):
    portal.provider.partition("acme.trap", portal.provider.bert)
    create(portal, client, "trap")
    made = Partition.objects.get(tenant=portal.acme, title="trap")
    assert made.name != "acme.trap"
    assert partition_name(made.name).startswith("acme.trap.")


def test_long_names_are_cut_and_stay_names(portal):
    tenant = portal.acme
    Tenant.objects.filter(pk=tenant.pk).update(slug="9-a-very-long-short-name-of-a-tenant-000")
    seat = portal.seats["max"]
    seat.tenant.refresh_from_db()
    titles = [f"a-title-of-thirty-characters-{number:02}" for number in range(3)]
    names = {own_partitions.create(seat=seat, subnet=portal.provider.subnet, title=title).name for title in titles}
    assert len(names) == 3
    assert all(partition_name(name) and len(name) <= 31 for name in names)


def test_an_own_name_is_taken_once_in_any_case_and_for_ever(portal, client):
    assert "You already have a partition training. Choose another name." in create(
        portal, client, "Training", status=409
    )
    create(portal, client, "eval")
    made = Partition.objects.get(title="eval")
    client.post(portal.address("partition_retire", made.public_id))
    assert "which is retired" in create(portal, client, "EVAL", status=409)


def test_it_is_renamed_and_the_file_follows(portal, client):
    key = portal.site.training.public_id
    page = client.post(portal.address("partition_rename", key), {"name": "research"}, follow=True).content.decode()
    assert "It is called research now." in page
    portal.site.training.refresh_from_db()
    assert (portal.site.training.title, portal.site.training.name) == ("research", "acme.research")
    refused = client.post(portal.address("partition_rename", key), {"name": "inference"})
    assert refused.status_code == 409
    assert "You already have a partition inference" in refused.content.decode()


def test_one_with_servers_is_not_retired(portal, client):
    answer = client.post(portal.address("partition_retire", portal.site.training.public_id))
    assert answer.status_code == 409
    assert "2 servers are in training" in answer.content.decode()
    portal.site.training.refresh_from_db()
    assert portal.site.training.retired_at is None


def test_anothers_partition_is_not_there(portal, client):
    for partition in (portal.site.research, portal.site.storage):
        for name in ("partition", "partition_rename", "partition_retire"):
            address = portal.address(name, partition.public_id)
            verb = client.get if name == "partition" else client.post
            assert verb(address).status_code == 404


def test_a_viewer_creates_renames_and_retires_nothing(portal, client_of):
    viewer = client_of(portal.seats["vera"].person)
    key = portal.site.training.public_id
    for name, args in (("partitions", []), ("partition_rename", [key]), ("partition_retire", [key]), ("try_again", [])):
        assert viewer.post(portal.address(name, *args), {"name": "x"}).status_code == 403
    assert Partition.objects.filter(tenant=portal.acme).count() == 2


def test_an_empty_pool_tells_nothing(portal, client, settings):
    settings.PKEY_POOL = ((0x2C41, 0x2C41),)
    page = create(portal, client, "more", status=409)
    assert "Your provider has to make room first" in page
    assert "FABRICUI_PKEY_POOL" not in page


def test_two_refusals_have_their_own_errors(portal):
    seat = portal.seats["max"]
    Tenant.objects.filter(pk=portal.acme.pk).update(most_partitions=0)
    with pytest.raises(OverQuota, match="may have 0"):
        own_partitions.create(seat=seat, subnet=portal.provider.subnet, title="x")
    with pytest.raises(Refused, match="called training already"):
        own_partitions.rename(seat=seat, partition=portal.site.training, title="training")
