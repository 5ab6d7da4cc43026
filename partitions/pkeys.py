"""P_Keys: which a new partition may have, and one drawn at random from the pool.

A guessable key would let a forgotten configuration on a host meet the new members, and a key that was given up may
still stand in such a configuration. So keys are drawn at random, and a retired one comes back only after a cool-down
and once the fabric was read without it.
"""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from deploy.queries import current_revision, latest_observation, observed_fabric
from inventory.models import Subnet
from partitions.errors import PartitionRefused
from partitions.models import Partition
from subnet.guid import GUID
from subnet.pkey import DEFAULT_NUMBER, FULL_BIT, PKey


@dataclass(frozen=True, slots=True)
class Pool:
    """How many keys of the pool could be drawn now, and what the others wait for."""

    size: int
    free: int
    in_use: int
    cooling: int  # retired not long enough ago
    held: int  # some port still holds it, or may: the fabric was not read since it was retired, or not all of it


@dataclass(frozen=True, slots=True)
class _Obstacle:
    """Why a key cannot be had: a word for counting, and a sentence that begins with the key."""

    kind: str  # in_use, cooling, held
    sentence: str


def pool(subnet: Subnet) -> Pool:
    """The pool as it is now. Four queries and, once a process, parsing the latest reading."""
    numbers = _pool_numbers()
    obstacles = _obstacles(subnet, timezone.now())
    found = [obstacles[number].kind for number in numbers if number in obstacles]
    return Pool(
        size=len(numbers),
        free=len(numbers) - len(found),
        in_use=found.count("in_use"),
        cooling=found.count("cooling"),
        held=found.count("held"),
    )


def draw(subnet: Subnet) -> PKey:
    """A key of the pool at random, one that nobody uses or may still remember; raise PartitionRefused for none."""
    obstacles = _obstacles(subnet, timezone.now())
    free = [number for number in _pool_numbers() if number not in obstacles]
    if not free:
        raise PartitionRefused(
            f"No P_Key of the pool is free on subnet {subnet}: all {len(_pool_numbers())} are in use, were retired "
            f"less than {settings.PKEY_COOL_DOWN_DAYS} days ago, or are still held by ports. Widen FABRICUI_PKEY_POOL, "
            "or name a P_Key outside of it."
        )
    return PKey(secrets.choice(free))


def check(subnet: Subnet, pkey: PKey, *, is_found: bool = False) -> None:
    """Raise PartitionRefused unless a new partition may have `pkey`, which a person chose; the pool binds nobody.

    With `is_found` the key comes from a file that OpenSM already reads, so that ports hold it is no reason against.
    """
    obstacle = _obstacles(subnet, timezone.now()).get(int(pkey))
    if obstacle is not None and not (is_found and obstacle.kind == "held"):
        raise PartitionRefused(f"P_Key {obstacle.sentence} Choose another, or let one be drawn.")


def _pool_numbers() -> list[int]:
    return sorted({number for first, last in settings.PKEY_POOL for number in range(first, last + 1)})


def _obstacles(subnet: Subnet, now: datetime) -> dict[int, _Obstacle]:
    """Every key that cannot be had, with the weightiest reason."""
    found: dict[int, _Obstacle] = {}
    holders, read_at, unread = _holders(subnet)
    for number, guid in holders.items():
        found[number] = _Obstacle("held", f"{PKey(number)} is held by port {guid}, as the fabric was last read.")
    current = current_revision(subnet)
    if current is not None:
        for partition in current.table["partitions"]:  # the stored JSON: parsing the table takes longer
            number = int(PKey.parse(partition["pkey"]))
            found[number] = _Obstacle("in_use", f"{PKey(number)} stands in {current} as {partition['name']}.")
    for pkey, partition in Partition.objects.filter(subnet=subnet).by_pkey().items():
        number, since = int(pkey), partition.retired_at
        if since is None:
            found[number] = _Obstacle("in_use", f"{pkey} is used by partition {partition.name}.")
            continue
        until = since + timedelta(days=settings.PKEY_COOL_DOWN_DAYS)
        if now < until:
            found[number] = _Obstacle(
                "cooling",
                f"{pkey} was used by partition {partition.name}, which was retired at {since:%Y-%m-%d %H:%M} UTC; "
                f"it cools down until {until:%Y-%m-%d %H:%M} UTC.",
            )
        elif number not in found and (read_at is None or read_at < since):
            found[number] = _Obstacle(
                "held",
                f"{pkey} was used by partition {partition.name}, and the fabric was not read since that was retired.",
            )
        elif number not in found and unread is not None:
            found[number] = _Obstacle(
                "held",
                f"{pkey} was used by partition {partition.name}, and port {unread} may hold it still: it could not be "
                "read.",
            )
    return found


def _holders(subnet: Subnet) -> tuple[dict[int, GUID], datetime | None, GUID | None]:
    """For each key that a port held in the latest full reading one such port; when that was read; a port that was not.

    A port that is not on the fabric is no holder: OpenSM writes its table before it lets anything through.
    """
    observation = latest_observation(subnet)
    if observation is None:
        return {}, None, None
    holders: dict[int, GUID] = {}
    ports = observed_fabric(observation).ports
    unread = min((guid for guid, port in ports.items() if not port.is_read), default=None)
    for guid, port in ports.items():
        for number in port.pkeys.values():
            holders.setdefault(number & ~FULL_BIT, guid)
    holders.pop(DEFAULT_NUMBER, None)
    holders.pop(0, None)
    return holders, observation.read_at, unread
