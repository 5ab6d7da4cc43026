"""Which bytes a revision means on the manager hosts: its own, or the hand-written file that was adopted as it.

Also keeps what was read from a host and is no revision, so that a person can be shown it. Reaches no host.
"""

import hashlib
import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from deploy.errors import AdoptionRefused
from deploy.models import AdoptedFile, Revision, StoredFile
from inventory.models import ManagerHost, Subnet
from subnet.errors import InvalidFile
from subnet.opensm_reading import check
from subnet.partitions_conf import parse_strict

LARGEST_KEPT: Final = 64 * 1024 * 1024  # bytes; a larger file is still told by its digest
LEVEL: Final = 6


@dataclass(frozen=True, slots=True)
class Standing:
    """The bytes that must lie on every manager host for one revision to stand."""

    number: int
    data: bytes = field(repr=False)
    digest: str
    is_adopted: bool

    @classmethod
    def of(cls, revision: Revision) -> Self:
        """One query. The files of an adopted revision are the same on every host (`keep_adopted` sees to it)."""
        found = AdoptedFile.objects.filter(revision=revision).order_by("pk").first()
        if found is None:
            return cls(revision.number, bytes(revision.data), revision.digest, is_adopted=False)
        return cls(revision.number, bytes(found.data), found.digest, is_adopted=True)

    @property
    def words(self) -> str:
        """“the file of revision 3”, or that it is the adopted one."""
        if self.is_adopted:
            return f"the hand-written file that was adopted as revision {self.number}"
        return f"the file of revision {self.number}"

    def require_sound(self) -> None:
        """Raise InvalidFile unless the bytes are the ones that were stored and OpenSM reads them without accident.

        Only our own bytes can be parsed strictly; for an adopted file the model of OpenSM's parser decides.
        """
        if not self.is_adopted:
            parse_strict(self.data)
            return
        if hashlib.sha256(self.data).hexdigest() != self.digest:
            raise InvalidFile(f"{self.words} is not stored as it was read: its SHA-256 is another one")
        verdict = check(self.data)
        if verdict.verdict == "refuse":
            worst = next(finding for finding in verdict.findings if finding.severity == "refuse")
            raise InvalidFile(f"{self.words} would not be read as it was meant: {worst.message}", line=worst.line)


def keep_adopted(revision: Revision, files: Mapping[str, bytes]) -> tuple[AdoptedFile, ...]:
    """Store the bytes that were found on each manager host as what `revision` stands for.

    Raises AdoptionRefused unless there is a file of every registered host and all are the same bytes: a takeover
    would bring another one's to the fabric.
    """
    hosts = {host.name: host for host in ManagerHost.objects.filter(subnet=revision.subnet_id)}
    if set(hosts) != set(files):
        raise AdoptionRefused(
            f"The files of {', '.join(sorted(files)) or 'no host'} were read, and the subnet has the manager hosts "
            f"{', '.join(sorted(hosts)) or 'none'}. Take a new look, then adopt."
        )
    if len(set(files.values())) != 1:
        raise AdoptionRefused(
            "The manager hosts hold different files, so a takeover would change the fabric. Copy the master's file "
            "to the standby (it is read only at a takeover), take a new look, then adopt."
        )
    rows = [
        AdoptedFile(revision=revision, host=hosts[name], data=data, digest=hashlib.sha256(data).hexdigest())
        for name, data in sorted(files.items())
    ]
    return tuple(AdoptedFile.objects.bulk_create(rows))


def numbers_by_digest(subnet_id: int) -> dict[str, int]:
    """Digest → revision number of every file that stands for a revision, adopted ones included. Two queries."""
    known = dict(Revision.objects.filter(subnet=subnet_id).values_list("digest", "number"))
    adopted = AdoptedFile.objects.filter(revision__subnet=subnet_id).order_by("revision__number")
    return known | dict(adopted.values_list("digest", "revision__number"))


def keep_read(files: Iterable[bytes], *, known: Collection[str]) -> None:
    """Keep each file that was read from a host and is not in `known` (digests), once by content."""
    for data in files:
        digest = hashlib.sha256(data).hexdigest()
        if digest not in known and len(data) <= LARGEST_KEPT:
            packed = {"data": zlib.compress(data, LEVEL), "size": len(data)}
            StoredFile.objects.get_or_create(digest=digest, defaults=packed)


def contents(subnet: Subnet, digests: Collection[str]) -> dict[str, bytes]:
    """Digest → bytes of those files that are stored: revisions, adopted files, and what was read. Three queries."""
    wanted = {digest for digest in digests if digest}
    found = {row.digest: zlib.decompress(row.data) for row in StoredFile.objects.filter(digest__in=wanted)}
    adopted = AdoptedFile.objects.filter(revision__subnet=subnet, digest__in=wanted)
    found |= {digest: bytes(data) for digest, data in adopted.values_list("digest", "data")}
    revisions = Revision.objects.filter(subnet=subnet, digest__in=wanted)
    return found | {digest: bytes(data) for digest, data in revisions.values_list("digest", "data")}
