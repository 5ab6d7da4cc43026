"""The commands do what the operations do, and say what went wrong in one sentence."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from inventory.models import EnrolmentToken, ManagerHost, Subnet
from inventory.operations.enrolment import digest_of
from tests.inventory.reports import GUID_A, enrolled

pytestmark = pytest.mark.django_db
HOST = [
    "--address=192.0.2.1", "--host-key=ssh-ed25519 " + "A" * 68, f"--port-guid={GUID_A}",
    "--wrapper-digest=" + "a" * 64, "--reader-digest=" + "b" * 64,
]  # fmt: skip


def said(*arguments):
    out = StringIO()
    call_command(*arguments, stdout=out, stderr=StringIO(), skip_checks=True)
    return out.getvalue().strip()


def test_a_subnet_is_created_once(db):
    assert said("create_subnet", "lab", "--prefix", "fec0:0000:0000:0002") == "Subnet lab is there, in mode observe."
    assert Subnet.objects.get().prefix == "0xfec0000000000002"
    with pytest.raises(CommandError, match="There is a subnet called lab already"):
        said("create_subnet", "lab")


def test_only_the_token_stands_on_standard_output(subnet):
    token = said("enrolment_token", "lab", "rack 1", "--uses", "3", "--hours", "0.5")
    assert EnrolmentToken.objects.get(digest=digest_of(token)).uses_left == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere", "rack 1"], "There is no subnet called nowhere"),
        (["lab", "rack 1", "--uses", "0"], "say how many will use it"),
        (["lab", "rack 1", "--hours", "1e300"], "at most 7 days"),
        (["lab", "rack 1", "--hours", "nan"], "at most 7 days"),
    ],
)
def test_a_token_that_cannot_be_is_explained(subnet, arguments, words):
    with pytest.raises(CommandError, match=words):
        said("enrolment_token", *arguments)


def test_a_manager_host_is_enrolled(subnet):
    answer = said("enrol_manager_host", "lab", "ufm-a", *HOST)
    assert answer.startswith(f"Manager host ufm-a is enrolled with port {GUID_A}.")
    assert ManagerHost.objects.get().ssh_user == "root"
    with pytest.raises(CommandError, match="is enrolled already"):
        said("enrol_manager_host", "lab", "ufm-a", *HOST)


def test_a_manager_host_with_a_port_that_is_no_guid_is_refused(subnet):
    with pytest.raises(CommandError, match="is not a GUID"):
        said("enrol_manager_host", "lab", "ufm-a", *HOST[:2], "--port-guid=17", *HOST[3:])


def test_a_server_is_revoked_by_its_name(subnet):
    enrolled(subnet)
    assert said("revoke_server", "lab", "SRV-001", "--reason", "stolen").startswith("srv-001: 1 credential(s) revoked.")
    with pytest.raises(CommandError, match="No server called srv-009"):
        said("revoke_server", "lab", "srv-009", "--reason", "stolen")


def test_a_manager_host_is_pinned_anew_and_keeps_what_is_not_named(subnet):
    said("enrol_manager_host", "lab", "ufm-a", *HOST)
    new = ["--wrapper-digest", "c" * 64, "--reason", "upgraded"]
    assert said("repin_manager_host", "lab", "ufm-a", *new) == "Manager host ufm-a is pinned anew."
    host = ManagerHost.objects.get()
    assert (host.wrapper_digest, host.reader_digest) == ("c" * 64, "b" * 64)
    with pytest.raises(CommandError, match="No manager host called ufm-b"):
        said("repin_manager_host", "lab", "ufm-b", *new)
    with pytest.raises(CommandError, match="is not a SHA-256"):
        said("repin_manager_host", "lab", "ufm-a", "--reader-digest", "short", "--reason", "upgraded")
