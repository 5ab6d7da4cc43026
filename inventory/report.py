"""Report: what a server says about itself, checked field by field before anything else looks at it.

Everything in it is a claim made by a machine on which a tenant may be root. Text is bounded and printable, numbers are
bounded, a GUID has its one spelling, and a field nobody asked for is refused, so that nothing odd can reach a row or a
page. The JSON is described in docs/registration.md.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from inventory.errors import InvalidReport
from subnet.errors import InvalidGUID
from subnet.guid import GUID

SCHEMA = 1
MOST_PORTS = 512
MOST_SKIPPED = 4096
MOST_COUNTERS = 128
LAST_UNICAST_LID = 0xBFFF  # IBA 4.1.3: 0x0001–0xbfff; 0xffff is the permissive LID, 0xc000 and up are multicast

_HOSTNAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?\Z")
_PLACEHOLDERS = {"localhost", "localhost.localdomain", "(none)"}
_PKEY_ENTRY = re.compile(r"0x[0-9a-fA-F]{4}\Z")
_NOBODY = re.compile(r"(0[xX])?(0+|[fF]{16})\Z")  # zero and all ones: an Ethernet port, or nothing known
_HEX_64 = re.compile(r"[0-9a-f]{64}\Z")

_REPORT_FIELDS = {
    "schema", "hostname", "boot_id", "machine_id", "serial", "os", "agent_version", "ports", "skipped", "note",
}  # fmt: skip
_PORT_FIELDS = {
    "device", "port", "link_layer", "port_guid", "node_guid", "system_image_guid", "subnet_prefix", "state",
    "phys_state", "rate_gbps", "rate_text", "lid", "sm_lid", "pkeys", "partition_candidate", "why_not",
    "driver", "hca_type", "board_id", "firmware", "node_type", "counters",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReportedPort:
    """One port as its server describes it. `guid` is None when the server could not read it, or it is Ethernet."""

    device: str
    number: int
    link_layer: str  # "InfiniBand", "Ethernet", another word, or "" when not known
    guid: GUID | None
    node_guid: GUID | None
    system_image_guid: GUID | None
    subnet_prefix: GUID | None
    state: str
    phys_state: str
    rate_gbps: float | None
    rate_text: str
    lid: int | None
    sm_lid: int | None
    raw: Mapping[str, Any]

    @property
    def is_infiniband(self) -> bool:
        """Whether the port speaks InfiniBand; a port that does not say is not taken for one."""
        return self.link_layer.lower() == "infiniband"

    @property
    def is_ethernet(self) -> bool:
        """Whether the port speaks Ethernet."""
        return self.link_layer.lower() == "ethernet"


@dataclass(frozen=True, slots=True)
class Report:
    """One server's report; `raw` is the JSON as it came, `digest` the SHA-256 of its canonical form (64 hex digits).

    Counters are not part of the digest: they count all the time, and a report that says nothing else is no news.
    """

    hostname: str
    boot_id: str
    ports: tuple[ReportedPort, ...]
    note: str
    raw: Mapping[str, Any]
    digest: str


@dataclass(frozen=True, slots=True)
class EnrolmentRequest:
    """What a server sends with an enrolment token: its name, and the digest of the secret it made for itself."""

    hostname: str
    boot_id: str
    credential_digest: str


@dataclass(frozen=True, slots=True)
class RotationRequest:
    """What a server sends with its old credential: the digest of the new secret it made for itself."""

    credential_digest: str


def parse_json(body: bytes) -> object:
    """The JSON value in `body`; raise InvalidReport for anything a strict reader refuses.

    That is: bytes that are not UTF-8, a field named twice, NaN and Infinity, nesting without end.
    """
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_no_twins)
    except (ValueError, RecursionError) as error:
        if isinstance(error, InvalidReport):
            raise
        raise InvalidReport(f"The body is not JSON: {str(error)[:120]}.") from error


def parse_report(value: object) -> Report:
    """The report that `value` holds; raise InvalidReport with a sentence that names the field."""
    top = _object(value, "The report", _REPORT_FIELDS)
    _schema(top)
    for name in ("boot_id", "machine_id", "serial", "os", "agent_version"):
        _text(top.get(name), f"“{name}”", longest=255)
    items = _list(top.get("ports"), "“ports”", MOST_PORTS)
    ports = tuple(_port(item, f"ports[{place}]") for place, item in enumerate(items))
    seen: set[tuple[str, int]] = set()
    for port in ports:
        if (port.device, port.number) in seen:
            raise InvalidReport(f"Port {port.number} of {port.device} stands twice in “ports”.")
        seen.add((port.device, port.number))
    for place, item in enumerate(_list(top.get("skipped", []), "“skipped”", MOST_SKIPPED)):
        entry = _object(item, f"skipped[{place}]", {"path", "reason"})
        _text(entry.get("path"), f"skipped[{place}].path", longest=255)
        _text(entry.get("reason"), f"skipped[{place}].reason", longest=255)
    canonical = json.dumps(_without_counters(top), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return Report(
        hostname=_hostname(top.get("hostname")),
        boot_id=_text(top.get("boot_id"), "“boot_id”", longest=64),
        ports=ports,
        note=_text(top.get("note"), "“note”", longest=255),
        raw=top,
        digest=hashlib.sha256(canonical.encode()).hexdigest(),
    )


def parse_enrolment(value: object) -> EnrolmentRequest:
    """The enrolment request that `value` holds; raise InvalidReport with a sentence that names the field."""
    top = _object(value, "The enrolment", {"schema", "hostname", "boot_id", "credential_digest"})
    _schema(top)
    return EnrolmentRequest(
        hostname=_hostname(top.get("hostname")),
        boot_id=_text(top.get("boot_id"), "“boot_id”", longest=64),
        credential_digest=_credential_digest(top),
    )


def parse_rotation(value: object) -> RotationRequest:
    """The rotation request that `value` holds; raise InvalidReport with a sentence that names the field."""
    top = _object(value, "The rotation", {"schema", "credential_digest"})
    _schema(top)
    return RotationRequest(credential_digest=_credential_digest(top))


def _schema(top: Mapping[str, Any]) -> None:
    if top.get("schema") != SCHEMA or isinstance(top.get("schema"), bool):
        raise InvalidReport(f"“schema” is not {SCHEMA}. Install the agent that came with this version of FabricUI.")


def _credential_digest(top: Mapping[str, Any]) -> str:
    digest = _text(top.get("credential_digest"), "“credential_digest”", longest=64)
    if not _HEX_64.match(digest):
        raise InvalidReport("“credential_digest” is not a SHA-256 in 64 lower-case hex digits.")
    return digest


def _port(value: object, where: str) -> ReportedPort:
    """One entry of `ports`."""
    item = _object(value, where, _PORT_FIELDS)
    for name in ("why_not", "driver", "hca_type", "board_id", "firmware", "node_type"):
        _text(item.get(name), f"{where}.{name}", longest=255)
    _pkeys(item.get("pkeys", {}), f"{where}.pkeys")
    _counters(item.get("counters", {}), f"{where}.counters")
    if not isinstance(item.get("partition_candidate", False), bool):
        raise InvalidReport(f"{where}.partition_candidate is neither true nor false.")
    device = _text(item.get("device"), f"{where}.device", longest=64)
    if not device:
        raise InvalidReport(f"{where}.device is empty.")
    number = _number(item.get("port"), f"{where}.port", least=1, most=255)
    if number is None:
        raise InvalidReport(f"{where}.port is missing; ports of an HCA count from 1.")
    lid = _number(item.get("lid"), f"{where}.lid", least=0, most=0xFFFF)
    sm_lid = _number(item.get("sm_lid"), f"{where}.sm_lid", least=0, most=0xFFFF)
    return ReportedPort(
        device=device,
        number=number,
        link_layer=_text(item.get("link_layer"), f"{where}.link_layer", longest=20),
        guid=_guid(item.get("port_guid"), f"{where}.port_guid"),
        node_guid=_guid(item.get("node_guid"), f"{where}.node_guid"),
        system_image_guid=_guid(item.get("system_image_guid"), f"{where}.system_image_guid"),
        subnet_prefix=_guid(item.get("subnet_prefix"), f"{where}.subnet_prefix"),
        state=_text(item.get("state"), f"{where}.state", longest=20).upper(),
        phys_state=_text(item.get("phys_state"), f"{where}.phys_state", longest=20),
        rate_gbps=_rate(item.get("rate_gbps"), f"{where}.rate_gbps"),
        rate_text=_text(item.get("rate_text"), f"{where}.rate_text", longest=60),
        lid=lid if lid is not None and 1 <= lid <= LAST_UNICAST_LID else None,
        sm_lid=sm_lid if sm_lid is not None and sm_lid <= LAST_UNICAST_LID else None,
        raw=item,
    )


def _object(value: object, where: str, fields: set[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidReport(f"{where} is not a JSON object.")
    unknown = sorted(set(value) - fields)
    if unknown:
        raise InvalidReport(f"{where} has a field nobody asked for: {ascii(unknown[0])[:60]}.")
    return value


def _list(value: object, where: str, most: int) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidReport(f"{where} is not a list.")
    if len(value) > most:
        raise InvalidReport(f"{where} has {len(value)} entries; {most} is the most.")
    return value


def _text(value: object, where: str, *, longest: int) -> str:
    """`value` without blanks around it; None is the empty text."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidReport(f"{where} is not text.")
    if len(value) > longest:
        raise InvalidReport(f"{where} is {len(value)} characters long; {longest} is the most.")
    if not value.isprintable():  # also refuses NUL and lone surrogates, which no database column takes
        raise InvalidReport(f"{where} has a character that cannot be printed.")
    return value.strip()


def _number(value: object, where: str, *, least: int, most: int) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidReport(f"{where} is not a whole number from {least} to {most}.")
    return value


def _rate(value: object, where: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 100_000:
        raise InvalidReport(f"{where} is not a rate in Gb/s.")
    return float(value) if math.isfinite(value) else None


def _guid(value: object, where: str) -> GUID | None:
    """`value` as a GUID; None for null, zero and all ones, which mean that there is none."""
    text = _text(value, where, longest=40)
    if not text or _NOBODY.match(re.sub("[:-]", "", text)):
        return None
    try:
        return GUID(text)
    except InvalidGUID as error:
        raise InvalidReport(f"{where}: {error}") from error


def _hostname(value: object) -> str:
    """`value` as a host name in lower case; a placeholder names nobody."""
    text = _text(value, "“hostname”", longest=253).lower()
    if text in _PLACEHOLDERS or not _HOSTNAME.match(text):
        raise InvalidReport(
            f"“{text[:60]}” names no server. Give the machine a host name of letters, digits, “.”, “-” and “_”."
        )
    return text


def _pkeys(value: object, where: str) -> None:
    if not isinstance(value, dict):
        raise InvalidReport(f"{where} is not a JSON object.")
    for index, entry in value.items():
        if not (index.isascii() and index.isdecimal() and len(index) <= 5):
            raise InvalidReport(f"{where} has a key that is no index: {ascii(index)[:40]}.")
        if not isinstance(entry, str) or not _PKEY_ENTRY.match(entry):
            raise InvalidReport(f"{where}[{index}] is not a P_Key table entry such as “0xffff”.")


def _counters(value: object, where: str) -> None:
    if not isinstance(value, dict) or len(value) > MOST_COUNTERS:
        raise InvalidReport(f"{where} is not a JSON object of at most {MOST_COUNTERS} counters.")
    for name, count in value.items():
        _text(name, f"{where}: a name", longest=64)
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count < 2**64:
            raise InvalidReport(f"{where}.{ascii(name)[1:-1][:64]} is not a count of 64 bits.")


def _without_counters(top: Mapping[str, Any]) -> dict[str, Any]:
    ports = [{name: said for name, said in item.items() if name != "counters"} for item in top.get("ports", [])]
    return {**top, "ports": ports}


def _refuse_constant(text: str) -> NoReturn:
    raise InvalidReport(f"The body is not JSON: {text} is no number.")


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise InvalidReport(f"The body names the field {ascii(name)[:60]} twice.")
        found[name] = value
    return found
