"""Who acted and on what, frozen as text. Plain values: they outlive the rows they were made from."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self


class ActorKind(StrEnum):
    """What kind of somebody acted."""

    PERSON = "PERSON"
    TOKEN = "TOKEN"  # noqa: S105  a program that shows a person's API token
    SERVER = "SERVER"  # a server that reports itself; what it says is a claim
    SYSTEM = "SYSTEM"  # FabricUI by itself: a tick, a rollout's later steps
    ANONYMOUS = "ANONYMOUS"  # nobody who showed who they are: a failed login, a refused report


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who acted. `key` never changes (a public id, or an address); `name` is what people called them then."""

    kind: ActorKind
    key: str
    name: str

    @classmethod
    def anonymous(cls, address: str) -> Self:
        """Give the actor for a request from `address` by nobody we know."""
        return cls(kind=ActorKind.ANONYMOUS, key=address, name=f"somebody at {address}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What was acted on: `kind` is one word ("server", "rollout"), `key` its public id, GUID or the like."""

    kind: str
    key: str
    label: str


SYSTEM: Final = Actor(kind=ActorKind.SYSTEM, key="fabricui", name="FabricUI")
