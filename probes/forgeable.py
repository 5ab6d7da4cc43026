"""What a run does not prove, in the words of the page. Whoever has root on both servers writes what both say."""

from typing import Final

FORGEABLE: Final = (
    "Every figure: both programs run on servers whose root is the tenant, and root on both can make them agree.",
    "Counters, GUIDs and rates: they are read from /sys on the server, where root can put other files.",
    "The time, and with it the rate: the sender alone measures it. Only what is faster than line or light is refused.",
    "The checksum: one end knows the seed and can tell the other, so a pair that moved nothing can report it too.",
    "The digest of the program: the server computes it.",
)
NOT_PROVEN: Final = (
    "One lying end cannot claim bytes that did not arrive: the other’s memory and counters would say otherwise.",
    "Accidents are caught: a stand-in library, a TCP fall-back, a stale value, a wrong port, a rate above the line.",
    "What only switches can say is not in here: that the bytes crossed this link and no other.",
)
