"""Evidence as a page draws it: the same for what is current and for what was signed, from the plain values of both."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django.utils.translation import gettext, gettext_lazy, ngettext

from console import lamps as console_lamps
from console.lamps import Colour, Lamp
from portal.evidence.contents import OPERATOR
from portal.ports import PortState, lamp_of
from probes import lamps as probe_lamps

_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z\Z")
_PLANES: Final = ("control", "data")
_BECAUSE: Final = {
    "never read": gettext_lazy("The fabric was not read yet. What stands in the tables is unknown."),
    "old": gettext_lazy("The last reading is old, so what follows is how it was then."),
    "changed since": gettext_lazy("Your partitions were changed since the last reading; what follows is how it was."),
}


def shown(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content with times as times and a lamp for each state; `content` is plain JSON (`audit.canonical.plain`)."""
    page: dict[str, Any] = _with_times(content)
    look = page["look"]
    look["said"] = _BECAUSE.get(look["because"], "")
    look["age"] = _age(look["age_s"])
    for server in page["servers"]:
        for port in server["ports"]:
            port["default_said"] = _default(port["default"])
            port["lamp"] = _port(port["state"], is_stale=look["is_stale"])
    for check in page["isolation"]:
        check["planes"] = [check[plane] | {"lamp": _isolation(check[plane]["verdict"])} for plane in _PLANES]
    for pair in page["probes"]["pairs"]:
        is_measured = pair["outcome"] in ("OK", "TCP_OK")
        pair["lamp"] = probe_lamps.verdict(pair["verdict"]) if is_measured else probe_lamps.state("FAILED")
    for rollout in page["rollouts"]:
        rollout["lamp"] = _rollout(rollout["state"])
        if rollout["by"] == OPERATOR:
            rollout["by"] = gettext("the operator")
    page["has_ports"] = any(server["ports"] for server in page["servers"])
    return page


def _with_times(value: Any) -> Any:
    if isinstance(value, str):
        return datetime.fromisoformat(value) if _MOMENT.match(value) else value
    if isinstance(value, Mapping):
        return {name: _with_times(item) for name, item in value.items()}
    return [_with_times(item) for item in value] if isinstance(value, list) else value


def _port(state: str, *, is_stale: bool) -> Lamp:
    if is_stale and state == PortState.RIGHT:  # when it was read, and that was too long ago
        return Lamp(Colour.IDLE, "clock", gettext("was as it should be"))
    return lamp_of(PortState(state))


def _default(word: str) -> str:
    words = {"full": gettext("full"), "limited": gettext("limited"), "absent": gettext("not in it")}
    return words.get(word, gettext("unknown"))


def _isolation(verdict: str) -> Lamp | probe_lamps.Lamp:
    if verdict == "unknown":
        return Lamp(Colour.IDLE, "help-circle", gettext("unknown"))
    return probe_lamps.isolation(verdict)


def _rollout(state: str) -> Lamp:
    if state == "running":
        return Lamp(Colour.BUSY, "loader-2", gettext("running"))
    return console_lamps.rollout(state.upper().replace(" ", "_"))


def _age(seconds: int | str) -> str:
    """How old a reading was, in the largest unit."""
    if isinstance(seconds, str):
        return gettext("unknown")
    if seconds >= 2 * 86_400:
        return ngettext("%(n)d day", "%(n)d days", seconds // 86_400) % {"n": seconds // 86_400}
    if seconds >= 2 * 3_600:
        return ngettext("%(n)d hour", "%(n)d hours", seconds // 3_600) % {"n": seconds // 3_600}
    return ngettext("%(n)d minute", "%(n)d minutes", seconds // 60) % {"n": seconds // 60}
