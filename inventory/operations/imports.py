"""import_listing: take over what a listing says, as far as a person's word goes."""

from audit.actions import Action
from audit.record import record
from audit.values import Actor
from inventory.errors import InventoryError
from inventory.importing import Import, compare, row_of
from inventory.models import Port, Subnet
from inventory.races import settle
from inventory.subjects import subnet_subject
from subnet.listing import Listing

_CHUNK = 500
_MOST_NAMED = 100  # GUIDs spelled out in one event; the count is always there


def import_listing(*, subnet: Subnet, listing: Listing, actor: Actor) -> Import:
    """Add the ports of `listing` that nobody knew, and the descriptions beside unregistered ones; give what was done.

    The ports are unregistered and unconfirmed, and not *seen*: only our own reading of the fabric says that. Nothing
    is removed. The same listing again writes nothing. Raises InventoryError for a listing that shows no fabric.
    """
    if listing.failed is not None:
        raise InventoryError(listing.failed)

    def change() -> Import:
        found = compare(subnet=subnet, listing=listing)
        Port.objects.bulk_create([row_of(subnet, port) for port in found.new], batch_size=_CHUNK)
        for port, text in found.described:
            port.description = text
        Port.objects.bulk_update([port for port, _ in found.described], ["description"], batch_size=_CHUNK)
        if found.new or found.described:
            record(
                action=Action.PORT_IMPORT,
                actor=actor,
                subject=subnet_subject(subnet),
                after={
                    "kind": listing.kind.value,
                    "new": {"count": len(found.new), "ports": [str(port.guid) for port in found.new[:_MOST_NAMED]]},
                    "described": {
                        "count": len(found.described),
                        "ports": [str(port.guid) for port, _ in found.described[:_MOST_NAMED]],
                    },
                },
            )
        return found

    return settle(change)
