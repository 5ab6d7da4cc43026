"""What can only be said of a file as a whole, once OpenSM has taken it."""

from typing import TYPE_CHECKING

from subnet.opensm_reading.notes import shown
from subnet.opensm_reading.partitions import DEFAULT_KEY, PartitionState
from subnet.opensm_reading.tokens import ALL, ALL_CAS, FULL, LIMITED, SELF

if TYPE_CHECKING:
    from subnet.opensm_reading.parser import Parser

_NEVER = -1


def note(parser: "Parser") -> None:
    """Note what Default lacks and which partitions nobody is in."""
    default = parser.partitions.by_key[DEFAULT_KEY]
    if default.statements:
        _default(parser, default)
    else:
        parser.log.add(
            "no-default-rule", 1, 1,
            "The file has no rule for Default (0x7fff): OpenSM makes the SM's port full and every other one limited, "
            "so they reach only full members in it, and there is no IPoIB broadcast group.",
            "Write the rule, as in “Default=0x7fff, ipoib : ALL=limited, SELF=full;”.",
        )  # fmt: skip
    for state in parser.partitions.by_key.values():
        if state.statements and not state.named and not state.scopes and state is not default:
            parser.log.add(
                "empty-partition", state.line, 1,
                f"Partition {state.key:#06x} “{shown(state.name)}” has no member: OpenSM drops it, it is not "
                "programmed on any port.",
                "Nothing, if it is meant to be empty; it is no drift.",
            )  # fmt: skip


def _default(parser: "Parser", default: PartitionState) -> None:
    codes, scopes = parser.store.codes, default.scopes
    everybody = scopes.get(ALL, _NEVER)
    if everybody != _NEVER and codes[everybody] & 3 != LIMITED:
        spec = parser.store.spec(everybody)
        parser.log.add(
            "default-open", spec.line, spec.column,
            "Every port that is not named otherwise is a full member of Default, so any two of those reach each other.",
            "Close Default (ALL=limited, SELF=full) when nothing needs it open.",
        )  # fmt: skip
    last = max(everybody, scopes.get(ALL_CAS, _NEVER))
    if last == _NEVER or codes[last] & 3 != LIMITED or scopes.get(SELF, _NEVER) > last:
        return
    # Any port named full behind it may be the SM's; who it is, only the fabric tells.
    if any(index > last and codes[index] & 3 >= FULL for index in default.named.values()):
        return
    spec = parser.store.spec(last)
    parser.log.add(
        "sm-limited-in-default", spec.line, spec.column,
        f"{spec.kind}=limited makes the SM's own port limited too: limited ports no longer reach the subnet "
        "administrator.",
        "Write SELF=full behind it, or better the port GUIDs of all manager hosts.",
    )  # fmt: skip
