"""Everything a person may do with probes; each records its event in the same transaction."""

from probes.operations.hosts import add_probe_host, change_probe_host, set_consent, withdraw_probe_host
from probes.operations.incidents import acknowledge_incident
from probes.operations.isolation import attempt_now, check_now
from probes.operations.now import run_now
from probes.operations.scopes import add_to_probe_set, change_settings, create_probe_set, scope_of_partition

__all__ = [
    "acknowledge_incident",
    "add_probe_host",
    "add_to_probe_set",
    "attempt_now",
    "change_probe_host",
    "change_settings",
    "check_now",
    "create_probe_set",
    "run_now",
    "scope_of_partition",
    "set_consent",
    "withdraw_probe_host",
]
