"""Whether all managers are told the same: options, keys, polling, priorities and versions. Pure; nothing is changed.

What must agree stands in the ground truth (OpenSM, 5.5 and 7): with different options a takeover changes the fabric,
although both hold the same partition file.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

Answer = Literal["yes", "no", "unknown"]

# OpenSM's own values for what nobody sets (opensm -c, 3.3.23).
DEFAULTS: Final[Mapping[str, str]] = {
    "keep_pkey_indexes": "TRUE",
    "allow_both_pkeys": "FALSE",
    "part_enforce": "both",
    "no_partition_enforcement": "FALSE",
    "sm_priority": "0",
    "sminfo_polling_timeout": "10000",
    "polling_retry_number": "4",
    "subnet_prefix": "0xfe80000000000000",
    "lmc": "0",
    "routing_engine": "(null)",
    "qos": "FALSE",
    "subnet_timeout": "18",
    "max_op_vls": "5",
    "honor_guid2lid_file": "FALSE",
    "m_key_protection_level": "0",
    "force_heavy_sweep": "FALSE",
    "ignore_other_sm": "FALSE",
}
_BOOLEANS: Final = {name for name, value in DEFAULTS.items() if value in ("TRUE", "FALSE")}
# Read once, at the start of the process (osm_subnet.c: opt_tbl, can_update=0).
AT_START: Final = frozenset({"allow_both_pkeys", "subnet_prefix", "lmc", "routing_engine"})
KEYS: Final = ("m_key", "sm_key", "sa_key")
_WHY: Final[Mapping[str, str]] = {
    "keep_pkey_indexes": "otherwise every change moves the keys that stay, under live connections",
    "allow_both_pkeys": "otherwise keys stand at other indexes than planned, and IPoIB breaks",
    "ignore_other_sm": "otherwise two managers are master at the same time",
}
# What FabricUI's plans rest on, whatever the managers agree on.
_MUST_BE: Final[Mapping[str, str]] = {
    "keep_pkey_indexes": "TRUE",
    "allow_both_pkeys": "FALSE",
    "ignore_other_sm": "FALSE",
}


@dataclass(frozen=True, slots=True)
class ManagerPosture:
    """What one manager host said. None, and "" for the version: it did not.

    `options` are those that its file or its command line sets, the latter over the former; `keys` says which keys are
    set. `is_stale`: the file changed after OpenSM had started. `priority` is the one that its SM announces.
    """

    name: str
    version: str
    options: Mapping[str, str] | None
    keys: Mapping[str, bool] | None
    is_stale: bool
    priority: int | None

    def value(self, option: str) -> str | None:
        """What OpenSM takes `option` for; None when that is not known."""
        if self.options is None or (self.is_stale and option in AT_START):
            return None
        value = self.options.get(option, DEFAULTS[option])
        if option == "part_enforce" and self._flag("no_partition_enforcement") == "TRUE":
            return "off"
        return self._flag(option) if option in _BOOLEANS else value

    def _flag(self, option: str) -> str:
        """A boolean as OpenSM reads it: only TRUE itself is true."""
        value = (self.options or {}).get(option, DEFAULTS[option])
        return "TRUE" if value == "TRUE" else "FALSE"


@dataclass(frozen=True, slots=True)
class PostureCheck:
    """One question, its answer, the sentence behind it, and what each manager host says (host → value)."""

    name: str
    question: str
    answer: Answer
    sentence: str
    values: Mapping[str, str]


def checks(managers: tuple[ManagerPosture, ...]) -> tuple[PostureCheck, ...]:
    """Every question about the managers of one subnet, in a fixed order; none without a manager."""
    return tuple(_checks(managers)) if managers else ()


def _checks(managers: tuple[ManagerPosture, ...]) -> Iterator[PostureCheck]:
    yield _version(managers)
    yield _priority(managers)
    for option in DEFAULTS:
        if option not in ("sm_priority", "no_partition_enforcement"):
            yield _option(option, managers)
    for key in KEYS:
        yield _key(key, managers)


def _option(option: str, managers: tuple[ManagerPosture, ...]) -> PostureCheck:
    held = {manager.name: manager.value(option) for manager in managers}
    values = {name: "unknown" if value is None else value for name, value in held.items()}
    known = {name: value for name, value in held.items() if value is not None}
    must = _MUST_BE.get(option)
    question = f"Is {option} {must} everywhere?" if must else f"Is {option} the same everywhere?"
    wrong = sorted(name for name, value in known.items() if must is not None and value != must)
    answer: Answer = "yes"
    if wrong:
        answer = "no"
        sentence = (
            f"{option} is {known[wrong[0]]} on {' and '.join(wrong)} and must be {must}, {_WHY[option]}. Set it in "
            f"opensm.conf there{_how(option)}."
        )
    elif len(set(known.values())) > 1:
        answer = "no"
        listed = ", ".join(f"{value} on {name}" for name, value in sorted(known.items()))
        sentence = f"{option} differs: {listed}. A takeover changes it for the fabric; make them equal{_how(option)}."
    elif option == "part_enforce" and "off" in known.values():
        answer = "no"
        sentence = (
            "No leaf switch drops by P_Key (part_enforce off): isolation rests on the servers' own HCAs alone. "
            "Set part_enforce both."
        )
    elif len(known) < len(managers):
        answer = "unknown"
        sentence = f"{_silent(managers, known)} did not say what {option} is."
        if option in AT_START and any(manager.is_stale for manager in managers):
            sentence += " OpenSM reads it only when it starts, and its file was changed since."
    else:
        sentence = f"{option} is {next(iter(known.values()))} on all managers."
    return PostureCheck(option, question, answer, sentence, values)


def _how(option: str) -> str:
    if option in AT_START:
        return " and start OpenSM again, the standby first: it is read only then"
    return ", and reload OpenSM"


def _key(key: str, managers: tuple[ManagerPosture, ...]) -> PostureCheck:
    held = {manager.name: None if manager.keys is None else manager.keys.get(key, False) for manager in managers}
    values = {name: "unknown" if is_set is None else "set" if is_set else "default" for name, is_set in held.items()}
    known = {name: is_set for name, is_set in held.items() if is_set is not None}
    question = f"Is {key} set on all managers, or on none?"
    if len(set(known.values())) > 1:
        where = " and ".join(sorted(name for name, is_set in known.items() if is_set))
        sentence = (
            f"{key} is set on {where} only. With different keys the managers ignore each other and both become master. "
            "Set the same one everywhere."
        )
        return PostureCheck(key, question, "no", sentence, values)
    if len(known) < len(managers):
        sentence = f"{_silent(managers, known)} did not say whether {key} is set."
        return PostureCheck(key, question, "unknown", sentence, values)
    if any(known.values()):
        sentence = f"{key} is set everywhere. Whether it is the same one is not read: FabricUI never sees keys."
        return PostureCheck(key, question, "unknown", sentence, values)
    return PostureCheck(key, question, "yes", f"{key} has OpenSM's default on all managers.", values)


def _version(managers: tuple[ManagerPosture, ...]) -> PostureCheck:
    known = {manager.name: manager.version for manager in managers if manager.version not in ("", "unknown")}
    values = {manager.name: manager.version or "unknown" for manager in managers}
    question = "Do all managers run the same OpenSM?"
    if len(set(known.values())) > 1:
        listed = ", ".join(f"{version} on {name}" for name, version in sorted(known.items()))
        sentence = f"OpenSM differs: {listed}. Their parsers may differ too; install the same version."
        return PostureCheck("version", question, "no", sentence, values)
    if len(known) < len(managers):
        sentence = f"{_silent(managers, known)} did not say which OpenSM runs."
        return PostureCheck("version", question, "unknown", sentence, values)
    return PostureCheck("version", question, "yes", f"OpenSM {next(iter(known.values()))} on all managers.", values)


def _priority(managers: tuple[ManagerPosture, ...]) -> PostureCheck:
    """The priority that decides who is master; an SM keeps the one of its file until its next sweep."""
    values = {manager.name: "unknown" if manager.priority is None else str(manager.priority) for manager in managers}
    question = "Does every SM run with the priority of its file?"
    for manager in managers:
        filed = manager.value("sm_priority")
        if manager.priority is not None and filed is not None and filed.isdigit() and int(filed) != manager.priority:
            sentence = (
                f"The SM of {manager.name} runs with priority {manager.priority}, its options say {filed}: at its next "
                "sweep another manager may become master. Set the one that is meant and reload."
            )
            return PostureCheck("sm_priority", question, "no", sentence, values)
    known = [manager for manager in managers if manager.priority is not None]
    if len(known) < len(managers):
        sentence = f"{_silent(managers, {manager.name for manager in known})} did not say its priority."
        return PostureCheck("sm_priority", question, "unknown", sentence, values)
    listed = ", ".join(f"{manager.priority} on {manager.name}" for manager in managers)
    return PostureCheck("sm_priority", question, "yes", f"The priorities are {listed}; the highest is master.", values)


def _silent(managers: tuple[ManagerPosture, ...], known: Mapping[str, object] | set[str]) -> str:
    return " and ".join(manager.name for manager in managers if manager.name not in known)
