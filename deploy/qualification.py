"""Operations on qualifications: ask for one, store its report, sign it, and say why a subnet may not be written to.

A report is valid as long as what it says is still so: the same manager hosts, the same OpenSM with the same options on
each, a reading pace it found harmless. Nothing is deleted when that ends; the sentence says what changed.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from audit import nudge
from audit.actions import Action
from audit.record import record
from audit.values import SYSTEM, Actor, Subject
from deploy import queries
from deploy.errors import NotFit, ReasonNeeded, TooLate
from deploy.look import Look
from deploy.models import Qualification
from deploy.qualification_models import PENDING_REQUEST, RequestState
from inventory.models import ManagerHost, Subnet
from subnet.qualification import CHECKLIST, UNPACED, HostFacts, unanswered

TASK: Final = "deploy.tasks.qualify"


def request(*, subnet: Subnet, actor: Actor, may_sweep: bool = False) -> Qualification:
    """Have the managers' worker qualify `subnet` soon; while such a request is pending, return that one.

    With `may_sweep` it causes some heavy sweeps on the master, to measure them: each reads the partition file that
    lies there, as a pulled cable would.
    """
    with transaction.atomic():
        Subnet.objects.select_for_update(no_key=True).get(pk=subnet.pk)
        pending = Qualification.objects.filter(subnet=subnet, state__in=PENDING_REQUEST).order_by("id").first()
        if pending is not None:
            return pending
        row = Qualification.objects.create(
            subnet=subnet,
            may_sweep=may_sweep,
            requested_by_key=actor.key,
            requested_by_name=actor.name,
            requested_at=timezone.now(),
        )
        record(
            action=Action.QUALIFICATION_REQUEST,
            actor=actor,
            subject=subject_of(row),
            after={"may_sweep": may_sweep},
        )
        transaction.on_commit(lambda: nudge.task(TASK, {"qualification_id": row.pk}), robust=True)
    return row


def take_up(row: Qualification, *, now: datetime) -> bool:
    """Claim a request for this worker; False when another one has it, or it is finished."""
    free = Qualification.objects.filter(pk=row.pk, state=RequestState.REQUESTED)
    left = Qualification.objects.filter(
        pk=row.pk, state=RequestState.READING, began_at__lte=now - queries.QUALIFYING_TAKES_AT_MOST
    )
    claimed = (free | left).update(state=RequestState.READING, began_at=now)
    row.refresh_from_db()
    return claimed == 1


def store(*, request: Qualification, report: Mapping[str, Any], now: datetime | None = None) -> Qualification:
    """Keep the report of a request; nothing is signed by that. One event with its digest."""
    text = canonical(report)
    digest = hashlib.sha256(text).hexdigest()
    with transaction.atomic():
        row = Qualification.objects.select_for_update().get(pk=request.pk)
        if row.state not in PENDING_REQUEST:
            raise TooLate(f"Qualification {row.public_id} has its report already; ask for a new one.")
        row.state, row.finished_at = RequestState.DONE, now or timezone.now()
        row.report, row.digest, row.is_fit = json.loads(text), digest, bool(report["is_fit"])
        row.save(update_fields=["state", "finished_at", "report", "digest", "is_fit"])
        refusing = [finding for finding in report["findings"] if finding["severity"] == "refuse"]
        record(
            action=Action.QUALIFICATION_REPORT,
            actor=SYSTEM,
            subject=subject_of(row),
            after={"digest": digest, "is_fit": row.is_fit, "refusing": len(refusing)},
        )
    request.refresh_from_db()
    return row


def sign(*, qualification: Qualification, answers: Mapping[str, bool], actor: Actor, reason: str) -> Qualification:
    """Put a person's name under what only hardware can show; `reason` says how it was tried.

    Raises NotFit for a report that refuses by itself, ReasonNeeded while an item is not confirmed or nothing says how
    it was tried, TooLate for a report that is signed or not there yet.
    """
    with transaction.atomic():
        row = Qualification.objects.select_for_update().get(pk=qualification.pk)
        if row.state != RequestState.DONE or row.signed_at is not None:
            raise TooLate("There is no report here that waits for a signature. Ask for a new qualification.")
        if not row.is_fit:
            raise NotFit(f"This report speaks against writing: {_first_refusal(row)} Mend it, and qualify again.")
        left = unanswered(answers)
        if left:
            raise ReasonNeeded(f"Not confirmed yet: {CHECKLIST[left[0]]} Try it on this site, then sign.")
        if not reason.strip():
            raise ReasonNeeded("Say how and on which servers it was tried, so that the next person can read it.")
        row.answers = dict.fromkeys(CHECKLIST, True)
        row.signed_by_key, row.signed_by_name, row.signed_at = actor.key, actor.name, timezone.now()
        row.signed_reason = reason.strip()
        row.save(update_fields=["answers", "signed_by_key", "signed_by_name", "signed_at", "signed_reason"])
        record(
            action=Action.QUALIFICATION_SIGN,
            actor=actor,
            subject=subject_of(row),
            after={"digest": row.digest, "confirmed": sorted(row.answers)},
            reason=reason.strip(),
        )
    qualification.refresh_from_db()
    return qualification


def why_not(subnet: Subnet) -> str:
    """Why FabricUI may not write to `subnet`, in a sentence that says what to do; "" when it may. Four queries."""
    done = Qualification.objects.filter(subnet=subnet, state=RequestState.DONE).order_by("-id")
    newest = done.first()
    if newest is None:
        return (
            f"No qualification report shows that the managers and the fabric of subnet {subnet} behave as FabricUI "
            f"expects. Qualify it first: the page Qualification, or manage.py qualify {subnet}."
        )
    if not newest.is_fit:
        return f"The newest qualification of subnet {subnet} speaks against it: {_first_refusal(newest)}"
    signed = newest if newest.signed_at is not None else done.filter(is_fit=True, signed_at__isnull=False).first()
    if signed is None:
        return (
            f"The qualification of subnet {subnet} is not signed: somebody has to try what only hardware can show, and "
            "put their name under it on the page Qualification."
        )
    what = _damaged(signed) or _expired(signed, subnet)
    return f"The qualification of subnet {subnet} holds no longer: {what} Qualify it again." if what else ""


def changed_since(subnet_id: int, look: Look) -> str:
    """What the hosts say now that is not as qualified, in a sentence; "" when nothing is. Two queries at most."""
    done = Qualification.objects.filter(subnet=subnet_id, state=RequestState.DONE, is_fit=True)
    signed = done.filter(signed_at__isnull=False).order_by("-id").first()
    if signed is None:
        return ""  # `why_not` says so
    seen = {
        view.name: (view.identity.opensm_version, view.identity.options_digest)
        for view in look.views
        if view.identity is not None and view.identity.process is not None
    }
    what = _differs(signed, seen)
    return f"{what} The qualification holds no longer: qualify the subnet again." if what else ""


def canonical(report: Mapping[str, Any]) -> bytes:
    """The bytes whose SHA-256 names a report: keys sorted, no blanks, UTF-8."""
    return json.dumps(report, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def facts_json(facts: HostFacts) -> dict[str, Any]:
    """The facts of one host as a report or a host check keeps them."""
    return {
        "account": facts.account,
        "forced_command": facts.forced_command,
        "opensm_version": facts.opensm_version,
        "opensm_exe": facts.opensm_exe,
        "opensm_unit": facts.opensm_unit,
        "config_file": facts.config_file,
        "options": dict(facts.options),
        "options_digest": facts.options_digest,
        "pieces": [[piece.name, piece.is_there, piece.sentence] for piece in facts.pieces],
    }


def subject_of(row: Qualification) -> Subject:
    """The qualification as an event names it."""
    return Subject(kind="qualification", key=row.public_id, label=f"qualification of {row.subnet}")


def _first_refusal(row: Qualification) -> str:
    for finding in (row.report or {}).get("findings", ()):
        if finding["severity"] == "refuse":
            return f"{finding['where']}: {finding['sentence']}" if finding["where"] else str(finding["sentence"])
    return "its report says that it is not fit."


def _damaged(row: Qualification) -> str:
    if row.report is None or hashlib.sha256(canonical(row.report)).hexdigest() != row.digest:
        return "its report is not stored as it was signed (its SHA-256 is another one)."
    return ""


def _expired(row: Qualification, subnet: Subnet) -> str:
    assert row.report is not None  # noqa: S101  `_damaged` was asked before
    qualified = {name: (item["public_id"], item["port_guid"]) for name, item in row.report["managers"].items()}
    enrolled = {host.name: (host.public_id, str(host.port_guid)) for host in ManagerHost.objects.filter(subnet=subnet)}
    if qualified != enrolled:
        gone, new = sorted(qualified.keys() - enrolled.keys()), sorted(enrolled.keys() - qualified.keys())
        told = [*(f"{name} was retired" for name in gone), *(f"{name} was enrolled" for name in new)]
        return f"its manager hosts are others since ({', '.join(told) or 'one was enrolled anew'})."
    measured = (row.report.get("sweeps") or {}).get("rate")
    pace = settings.READ_SMPS_PER_S or UNPACED
    if measured is not None and pace > measured:
        return f"FABRICUI_READ_SMPS_PER_S was raised to {settings.READ_SMPS_PER_S}; {measured} was found harmless."
    look = queries.latest_observation(subnet)
    if look is None or row.finished_at is None or look.read_at is None or look.read_at < row.finished_at:
        return ""
    seen = {
        item["host"]: (item.get("opensm_version") or "", item.get("options_digest") or "") for item in look.managers
    }
    return _differs(row, seen)


def _differs(row: Qualification, seen: Mapping[str, tuple[str, str]]) -> str:
    """Which host runs another OpenSM, or the same with other options, than was qualified; "" for none."""
    for name, item in sorted((row.report or {}).get("managers", {}).items()):
        version, options = seen.get(name, ("", ""))
        if version and item["opensm_version"] and version != item["opensm_version"]:
            return f"{name} runs OpenSM {version} now, and {item['opensm_version']} was qualified."
        if options and item["options_digest"] and options != item["options_digest"]:
            return f"the options of OpenSM on {name} were changed since."
    return ""
