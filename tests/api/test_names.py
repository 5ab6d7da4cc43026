"""A tenant's program reads what the tenant calls its partitions, and never the name that the file has for them.

That name is made of the tenant's slug, and gets four random characters where somebody else has taken it: both tell of
what is not the tenant's business (ADR 45).
"""

import base64

import pytest

from partitions.models import Partition
from people.models import TenantRole
from portal import own_partitions
from portal.door import Seat
from tests.api.callers import is_problem

pytestmark = pytest.mark.django_db


@pytest.fixture
def made(site, tina):
    """Acme's partition “eval”, whose plain name in the file was Bert's already."""
    provider = site.provider
    Partition.objects.filter(pk=site.research.pk).update(name="acme.eval")
    seat = Seat(tina, provider.acme, TenantRole.Role.MEMBER)
    found = own_partitions.create(seat=seat, subnet=provider.subnet, title="eval")
    assert found.name.startswith("acme.eval.")
    return found


def reads(caller, made):
    """Every reading address that could name the partition, with what it answered."""
    own = [f"partitions/{made.public_id}", f"memberships?partition={made.public_id}"]
    for address in ("partitions", "partitions?limit=1", "memberships", "staged-changes", "servers", "requests", *own):
        yield address, caller.get(address).content.decode()


def test_a_tenant_reads_its_own_name_only(tenant, made):
    assert tenant.get(f"partitions/{made.public_id}").json()["name"] == "eval"
    assert [one["name"] for one in tenant.items("partitions?limit=1")] == ["eval", "inference", "training"]
    for address, said in reads(tenant, made):
        assert "acme." not in said, address
        assert '"title"' not in said, address


def test_a_filter_and_a_cursor_know_that_name_only(tenant, operator, made):
    assert [one["id"] for one in tenant.items("partitions?name=EVAL")] == [made.public_id]
    assert tenant.items(f"partitions?name={made.name}") == []
    assert [one["id"] for one in operator.items(f"partitions?name={made.name}")] == [made.public_id]
    assert operator.items("partitions?name=eval") == []
    cursor = tenant.get("partitions?limit=1").json()["next_cursor"]
    payload = cursor.partition(":")[0]
    assert base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)).startswith(b'["eval"')


def test_an_operator_reads_both(operator, made):
    one = operator.get(f"partitions/{made.public_id}").json()
    assert (one["name"], one["title"]) == (made.name, "eval")
    assert operator.get(f"partitions/{Partition.objects.get(name='training').public_id}").json()["title"] == ""


def test_no_refusal_says_it(tenant, made):
    for verb, address, body in (
        ("PATCH", f"partitions/{made.public_id}", {"name": "eval"}),
        ("PATCH", f"partitions/{made.public_id}", {"name": "training"}),
        ("DELETE", f"partitions/{made.public_id}", None),
    ):
        assert "acme." not in tenant.ask(verb, address, body, If_Match='"0"').content.decode()
    is_problem(tenant.get(f"partitions/{made.name}"), 404, "not_found")
