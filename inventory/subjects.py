"""How the inventory's rows stand in the audit trail: as text, frozen."""

from audit.values import Actor, ActorKind, Subject
from inventory.models import EnrolmentToken, ManagerHost, Port, Server, Subnet


def subnet_subject(subnet: Subnet) -> Subject:
    """Give the subject that names `subnet`."""
    return Subject(kind="subnet", key=subnet.public_id, label=subnet.name)


def manager_host_subject(host: ManagerHost) -> Subject:
    """Give the subject that names `host`."""
    return Subject(kind="manager-host", key=host.public_id, label=host.name)


def server_subject(server: Server) -> Subject:
    """Give the subject that names `server`; a label is at most 200 characters."""
    return Subject(kind="server", key=server.public_id, label=server.hostname[:200])


def port_subject(port: Port, label: str = "") -> Subject:
    """Give the subject that names `port`."""
    return Subject(kind="port", key=str(port.guid), label=(label or str(port.guid))[:200])


def token_subject(token: EnrolmentToken) -> Subject:
    """Give the subject that names `token`: by name and the first digits of its digest, never by itself."""
    return Subject(kind="enrolment-token", key=token.digest[:12], label=token.name)


def server_actor(server: Server) -> Actor:
    """Give `server` as an actor: what it says is a claim."""
    return Actor(kind=ActorKind.SERVER, key=server.public_id, name=server.hostname[:150])
