"""The command lines for probe hosts and probe sets."""

import pytest
from django.core.management import CommandError, call_command

from audit.models import Event
from probes.members import roll_of
from probes.models import ProbeHost, ProbeScope
from tests.probes.site import HOST_KEY

pytestmark = pytest.mark.django_db
PINNED = ["--address", "10.0.0.1", "--host-key", HOST_KEY, "--program-digest", "1" * 64, "--wrapper-digest", "2" * 64]


def test_a_probe_set_and_its_host_by_command(site, capsys):
    site.provider.server(8)
    call_command("create_probe_set", "lab", "roce", "--interval", "60", "--profile", "lat", "--enable")
    call_command("add_probe_host", "srv-008", *PINNED, "--probe-set", "roce", "--device", "rxe0", "--port", "1")
    scope = ProbeScope.objects.named().get(probe_set__name="roce")
    assert (scope.is_enabled, scope.interval_s, scope.profiles) == (True, 60, ["lat"])
    assert [member.rails[0].choice.device for member in roll_of(scope).members] == ["rxe0"]
    assert "srv-008 is a probe host and in probe set roce." in capsys.readouterr().out


def test_a_host_with_a_new_program_is_pinned_anew_and_another_one_withdrawn(site, capsys):
    call_command("repin_probe_host", "srv-001", "--program-digest", "5" * 64, "--reason", "upgraded")
    call_command("repin_probe_host", "srv-002", "--withdraw", "--reason", "it is given back")
    first, second = ProbeHost.objects.filter(server__hostname__in=["srv-001", "srv-002"]).order_by("server__hostname")
    assert (first.program_digest, first.wrapper_digest) == ("5" * 64, "2" * 64)
    assert second.withdrawn_at is not None
    reasons = Event.objects.filter(action__startswith="probes:host:", reason__gt="").order_by("number")
    assert list(reasons.values_list("reason", flat=True)) == ["upgraded", "it is given back"]
    assert capsys.readouterr().out == "srv-001 is pinned anew.\nsrv-002 is withdrawn from probes.\n"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["create_probe_set", "nowhere", "x"], "no subnet"),
        (["create_probe_set", "lab", "x", "--profile", "nonsense"], "is no profile"),
        (["add_probe_host", "nobody", *PINNED], "No server called nobody"),
        (["add_probe_host", "srv-001", *PINNED], "already"),
        (["repin_probe_host", "nobody", "--reason", "upgraded"], "No probe host called nobody"),
        (["repin_probe_host", "srv-001", "--program-digest", "x", "--reason", "upgraded"], "no SHA-256"),
        (["repin_probe_host", "srv-001", "--program-digest", "5" * 64, "--reason", " "], "needs a reason"),
        (["add_probe_host", "srv-001", *PINNED, "--probe-set", "none"], "no probe set called none"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(site, command, said):
    hosts = ProbeHost.objects.count()
    with pytest.raises(CommandError, match=said):
        call_command(*command)
    assert ProbeHost.objects.count() == hosts
