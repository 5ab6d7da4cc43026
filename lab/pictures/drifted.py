"""Rows of drift and of the watch, as the worker leaves them, for tests of pages."""

import hashlib
import zlib
from dataclasses import asdict

from django.utils import timezone

from deploy import queries
from deploy.models import Drift, StoredFile, Watch
from lab.pictures.settled import Site
from subnet.posture import ManagerPosture, checks

ROGUE = "0x0002c904000006f1"
NO_ANSWER = "Manager host m2: No connection to fabricui@m2:22: Connection refused. Is sshd running there?"
MANAGERS = (
    ManagerPosture("m1", "3.3.23", {"sm_priority": "5"}, {}, is_stale=False, priority=5),
    ManagerPosture("m2", "3.3.23", {"sm_priority": "4", "lmc": "1"}, {}, is_stale=False, priority=4),
)

CAUSE = "Somebody wrote another file there: by hand, by a script, or by configuration management."
DANGER = "OpenSM reads it at its next heavy sweep, which any cable can cause, as it stands."


def told(site: Site, kind: str, key: str, *details: str, **facts: object) -> Drift:
    """An open row that was told."""
    now = timezone.now()
    fields = {"details": list(details), "cause": CAUSE, "facts": facts, "last_seen_at": now,
              "first_seen_at": now, "opened_at": now}  # fmt: skip
    row, _ = Drift.objects.get_or_create(
        subnet=site.provider.subnet, kind=kind, key=key, closed_at=None, defaults=fields
    )
    return row


def drifted(site: Site, text: bytes | None = None) -> Drift:
    """The file of m1 differs: a server more in training, and a partition that nobody knows."""
    if text is None:
        current = queries.current_revision(site.provider.subnet)
        assert current is not None  # noqa: S101  the site is settled
        text = bytes(current.data)
        member = text.split(b"training=")[1].split(b"=full")[0].split()[-1]
        more = [port.guid.encode() for hca in site.provider.servers[4].hcas.all() for port in hca.ports.all()]
        text = text.replace(member + b"=full", b",\n ".join(guid + b"=full" for guid in (member, *more)), 1)
        text = text.replace(b"# end", b"byhand=0x0abc, defmember=full :\n ALL;\n# end")
    digest = hashlib.sha256(text).hexdigest()
    StoredFile.objects.get_or_create(digest=digest, defaults={"data": zlib.compress(text), "size": len(text)})
    sentence = "Manager host m1 (master): its partition file is no revision of FabricUI; revision 2 is current."
    return told(site, "FILE", "m1", sentence, DANGER, host="m1", digest=digest)


def watch(site: Site) -> Watch:
    """A watch that looked just now, with one option that differs."""
    now = timezone.now()
    row, _ = Watch.objects.update_or_create(
        subnet=site.provider.subnet,
        defaults={"next_at": now, "checked_at": now, "covered_at": now, "ports": 14,
                  "posture": [asdict(check) for check in checks(MANAGERS)]},
    )  # fmt: skip
    return row


def everything(site: Site) -> Drift:
    """Something of every kind, one of them over; returns the row of the file."""
    watch(site)
    at = f"Port {ROGUE} at leaf 0x0002c90300aa0001 port 5 runs a subnet manager (MASTER, priority 15)"
    told(
        site, "ROGUE_SM", ROGUE, f"{at}, and is no registered manager host.",
        "It is master: it writes every port's P_Key table by its own file, or by none. Restoring our files does not "
        "help until it is stopped.",
    )  # fmt: skip
    told(
        site, "ISOLATION_LOST", "fabric",
        "All 14 HCA ports that were read are full members of Default and hold no other key: OpenSM rejects its file or "
        "finds none, or another subnet manager has taken over, and every port can reach every other. Put the last "
        "proven file back and reload; if an unregistered manager is master, stop it.",
    )  # fmt: skip
    strange = "of srv-001 (LID 7) holds 0x8abc at index 3, which it should not. Stop what uses it; it can still reach "
    told(
        site, "TABLE", "fabric", "9 ports hold other P_Keys than the current revision says.",
        *[f"Port 0x0002c9040000010{n} {strange}that partition." for n in range(9)],
    )  # fmt: skip
    told(
        site, "TAKEOVER", "master",
        "m2 is master now, and m1 was: it has read its own partition file for the first time.",
        "Not proven yet: all tables have to be read since.",
    )  # fmt: skip
    told(
        site,
        "ROLES",
        "no standby",
        "No registered subnet manager is standby: when the master stops, nothing takes over.",
    )
    told(site, "HOST", "m2", NO_ANSWER)
    differs = next(check for check in checks(MANAGERS) if check.name == "lmc")
    told(site, "OPTION", differs.name, differs.sentence)
    over = told(
        site, "FILE", "m2", "Manager host m2 (standby): its partition file is revision 1; revision 2 is current."
    )
    Drift.objects.filter(pk=over.pk).update(closed_at=timezone.now(), closing="It was not there any more.")
    return drifted(site)
