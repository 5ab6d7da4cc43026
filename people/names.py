"""Names that people give to people and tenants: no character that is not seen, and none that turns a line round.

A name stands in pages, events, exports and sentences. A newline, a zero-width space or a right-to-left override in it
(Unicode TR 36, 2.1 and 2.2; categories Cc, Cf, Cs, Co, Cn, Zl, Zp) would make one name look like another, or a line
of a file like two.
"""

import unicodedata
from typing import Final

from django.utils.translation import gettext

from people.errors import BadName

_UNSEEN: Final = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def plain_name(text: str) -> str:
    """`text` in its composed form (NFC), without blanks around it. Raises BadName for one with unseen characters."""
    name = unicodedata.normalize("NFC", text).strip()
    if any(unicodedata.category(letter) in _UNSEEN for letter in name):
        raise BadName(gettext("A name holds a line break or a character that nobody sees. Type it anew without that."))
    return name


def only_seen(text: str) -> str:
    """`text` without characters that nobody sees: of a name that a provider of identities says, which nobody types."""
    return "".join(letter for letter in text if unicodedata.category(letter) not in _UNSEEN).strip()


def looks(text: str) -> str:
    """What two names have in common when they differ only in case, width or another form of the same letters (NFKC)."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
