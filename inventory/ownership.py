"""Whose word makes a port stageable: what the site accepts, by REGISTRATION_TRUST.

A port is *unconfirmed* until somebody whom the site believes has said that it is where its server says it is. A
person's word always counts. `witnessed`: the passive proof counts too (`subnet/witness.py`). `enrolled`: so does the
server's own credential. Whoever tightens the setting makes ports unconfirmed again that were confirmed in a way it no
longer takes; they stay where they are and join nothing new.
"""

from collections.abc import Mapping
from typing import Final

from django.conf import settings
from django.db.models import Q

from inventory.models import Port

PERSON: Final = "person"
WITNESSED: Final = "witnessed"
ENROLLED: Final = "enrolled"
_ACCEPTED: Final[Mapping[str, tuple[str, ...]]] = {
    PERSON: (PERSON,),
    WITNESSED: (PERSON, WITNESSED),
    ENROLLED: (PERSON, WITNESSED, ENROLLED),
}


def accepted() -> tuple[str, ...]:
    """The ways of confirmation that this site takes."""
    return _ACCEPTED[settings.REGISTRATION_TRUST]


def accepts(how: str) -> bool:
    """Whether a port that is confirmed in this way may be staged here."""
    return how in accepted()


def is_trusted(port: Port) -> bool:
    """Whether `port` may be staged, as far as its confirmation goes. No query."""
    return port.confirmed_at is not None and accepts(port.confirmed_how)


def trusted(prefix: str = "") -> Q:
    """The same as a condition; `prefix` leads to the port, for instance `hcas__ports__`."""
    return Q(**{f"{prefix}confirmed_at__isnull": False, f"{prefix}confirmed_how__in": accepted()})


def untrusted(prefix: str = "") -> Q:
    """The opposite, of ports that exist."""
    return Q(**{f"{prefix}confirmed_at": None}) | ~Q(**{f"{prefix}confirmed_how__in": accepted()})
