"""Change FabricUI's own key for the manager hosts without ever being locked out.

The new key is let in by a person on each host, because no verb may let a key in: whoever stole the old one could then
stay. Only when every host has answered to the new key does it take the old one's place, which is kept beside it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from django.db import transaction

from audit.actions import Action
from audit.record import record
from audit.values import Actor, Subject
from deploy import manager_key
from deploy.errors import KeyUnusable
from inventory.models import ManagerHost
from remote.errors import RemoteError
from remote.fingerprint import fingerprint
from remote.host_check import QualifiableHost
from remote.ssh import SSHShell

type Connect = Callable[[ManagerHost, Path], QualifiableHost]


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether one host takes a key; `line` is what its authorized_keys needs, as far as the host could be asked."""

    host: ManagerHost
    is_taken: bool
    sentence: str
    line: str = ""


def over_ssh(row: ManagerHost, key_file: Path) -> QualifiableHost:
    """The host through a connection of its own that logs in with the key in `key_file`."""
    shell = SSHShell(
        address=row.address, port=row.ssh_port, user=row.ssh_user, key_file=key_file, host_key=row.host_key
    )
    return QualifiableHost(row.name, shell, row.wrapper_digest, row.reader_digest)


def try_key(hosts: Sequence[ManagerHost], key_file: Path, *, connect: Connect = over_ssh) -> tuple[Answer, ...]:
    """Log in to every host with this key and ask who it is."""
    answers = []
    for row in hosts:
        host = connect(row, key_file)
        try:
            host.identify()
        except RemoteError as error:
            answers.append(Answer(row, False, str(error)))
        else:
            answers.append(Answer(row, True, ""))
        finally:
            host.close()
    return tuple(answers)


def lines_for(hosts: Sequence[ManagerHost], new: Path, current: Path, *, connect: Connect = over_ssh) -> dict[str, str]:
    """Host → the line to append to its authorized_keys, asked over the key that it takes today.

    A host that does not answer gets the line of a standard installation, to be compared with the one it has.
    """
    public = manager_key.public_line(new)
    lines = {}
    for row in hosts:
        host = connect(row, current)
        try:
            command = host.check().forced_command
        except RemoteError:
            command = "/opt/fabricui/fabricui-host /opt/fabricui"
        finally:
            host.close()
        lines[row.name] = f'restrict,command="{command}" {public} fabricui'
    return lines


def switch(
    *, hosts: Sequence[ManagerHost], new: Path, current: Path, actor: Actor, connect: Connect = over_ssh
) -> Path:
    """Make `new` the key that workers use, if every host takes it; return where the old one is kept.

    Raises KeyUnusable with the hosts that do not; then nothing was changed.
    """
    before, after = (fingerprint(manager_key.public_line(file)) for file in (current, new))
    if before == after:
        raise KeyUnusable(f"{new} holds the key that is in use already. Name another file.")
    refusing = [answer for answer in try_key(hosts, new, connect=connect) if not answer.is_taken]
    if refusing:
        told = " ".join(f"{answer.host.name}: {answer.sentence}" for answer in refusing)
        raise KeyUnusable(f"The old key stays in use, because the new one is not taken everywhere. {told}")
    with transaction.atomic():
        record(
            action=Action.MANAGER_KEY_ROTATE,
            actor=actor,
            subject=Subject(kind="manager-key", key=after, label=after),
            before={"fingerprint": before},
            after={"fingerprint": after, "hosts": sorted(row.name for row in hosts)},
        )
        # Last, and a rename: without its event there is no change, and one of the two keys always stands there.
        return manager_key.put_in_place(new, current)
