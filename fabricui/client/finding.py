"""What a person calls things, found by the API: servers and partitions by name or id, subnets by name."""

from collections.abc import Iterable
from typing import Any

from fabricui.client.door import Door
from fabricui.client.failures import Exit, Failure


def server(door: Door, name: str) -> dict[str, Any]:
    """The server of this host name, or of this id. Raises Failure."""
    found = list(door.items("servers", hostname=name, most=3))
    if len(found) > 1:
        ids = ", ".join(str(row["id"]) for row in found)
        raise Failure(Exit.USAGE, f"Several servers are called {name}: {ids}. Name one by its id.", code="ambiguous")
    return found[0] if found else _by_id(door, "servers", name, f"There is no server {name} that you may see.")


class Partitions:
    """The partitions that take members, by id; read once."""

    def __init__(self, door: Door) -> None:
        self.by_id = {str(row["id"]): row for row in door.items("partitions", is_retired="false")}

    def named(self, name: str) -> dict[str, Any]:
        """The partition of this name (in any case) or id. Raises Failure."""
        found = [row for row in self.by_id.values() if str(row["name"]).lower() == name.lower()]
        if not found and name in self.by_id:
            found = [self.by_id[name]]
        if not found:
            raise Failure(
                Exit.NOT_FOUND, f"There is no partition {name} that you may see and that takes servers.",
                mend=f"There are: {_listed(row['name'] for row in self.by_id.values())}.", code="not_found",
            )  # fmt: skip
        if len(found) > 1:
            ids = ", ".join(str(row["id"]) for row in found)
            sentence = f"Several partitions are called {name}: {ids}. Name one by its id."
            raise Failure(Exit.USAGE, sentence, code="ambiguous")
        return found[0]

    def name_of(self, key: object) -> str:
        """What the partition of this id is called; the id, when it is not there any more."""
        return str(self.by_id[str(key)]["name"]) if str(key) in self.by_id else str(key)


def subnet(door: Door, name: str) -> str:
    """The id of the subnet of this name or id. Raises Failure."""
    found = list(door.items("subnets"))
    for row in found:
        if name in (row["name"], row["id"]):
            return str(row["id"])
    raise Failure(
        Exit.NOT_FOUND, f"There is no subnet {name}.", mend=f"There are: {_listed(row['name'] for row in found)}.",
        code="not_found",
    )  # fmt: skip


def _by_id(door: Door, list_name: str, key: str, sentence: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = door.get(list_name, key)
    except Failure as failure:
        if failure.exit_code is not Exit.NOT_FOUND:
            raise
        mend = "Write it as `fabricui servers` shows it."
        raise Failure(Exit.NOT_FOUND, sentence, mend=mend, code="not_found") from None
    return found


def _listed(names: Iterable[object]) -> str:
    listed = sorted(map(str, names))
    more = f" and {len(listed) - 20} more" if len(listed) > 20 else ""
    return ", ".join(listed[:20]) + more if listed else "none"
