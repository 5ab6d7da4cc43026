"""The only door through which the inventory changes; one file a noun, all of it imported from here.

Every function takes keywords only, and records its audit event in the transaction of the change, as its last statement.
"""

from inventory.operations.conflicts import declare_clone, move_card, reconsider_claim, reject_claim
from inventory.operations.enrolling import enrol_server, enrol_with_others
from inventory.operations.enrolment import (
    LONGEST_LIFETIME,
    ask_for_rotation,
    create_enrolment_token,
    revoke_credentials,
    revoke_enrolment_token,
    rotate_credential,
)
from inventory.operations.imports import import_listing
from inventory.operations.labels import label_servers, preview_labels
from inventory.operations.manager_hosts import enrol_manager_host, repin_manager_host, retire_manager_host
from inventory.operations.ports import confirm_port, confirm_ports
from inventory.operations.reports import register_report, register_with_others
from inventory.operations.sightings import record_seen
from inventory.operations.subnets import create_subnet, freeze, set_mode, unfreeze

__all__ = [
    "LONGEST_LIFETIME",
    "ask_for_rotation",
    "confirm_port",
    "confirm_ports",
    "create_enrolment_token",
    "create_subnet",
    "declare_clone",
    "enrol_manager_host",
    "enrol_server",
    "enrol_with_others",
    "freeze",
    "import_listing",
    "label_servers",
    "move_card",
    "preview_labels",
    "reconsider_claim",
    "record_seen",
    "register_report",
    "register_with_others",
    "reject_claim",
    "repin_manager_host",
    "retire_manager_host",
    "revoke_credentials",
    "revoke_enrolment_token",
    "rotate_credential",
    "set_mode",
    "unfreeze",
]
