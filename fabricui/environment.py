"""Typed readers of environment variables that fail loudly, with what to write instead."""

import os
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from zoneinfo import available_timezones

# Processes of the registration door: SQLite has one writer at a time, so more of them would only wait for each other.
REGISTER_WORKERS = {"sqlite": 1, "postgresql": 2}


class BadEnvironment(SystemExit):
    """An environment variable that cannot be used; ends the program with its sentence."""


def text(name: str, default: str) -> str:
    """The variable, or the content of the file that `NAME_FILE` names (for secrets), or `default`."""
    path = os.environ.get(f"{name}_FILE")
    if path:
        try:
            return Path(path).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise BadEnvironment(f"{name}_FILE={path} cannot be read: {error.strerror}.") from error
    return os.environ.get(name, default)


def flag(name: str, default: bool) -> bool:
    """The variable as yes or no: 1, true, yes, on / 0, false, no, off."""
    value = os.environ.get(name, "").strip().lower()
    if not value:
        return default
    if value in {"1", "true", "yes", "on"}:
        return True
    if value in {"0", "false", "no", "off"}:
        return False
    raise BadEnvironment(f"{name}={value} is neither yes nor no. Write 1 or 0.")


def number(name: str, default: int, *, least: int = 0) -> int:
    """The variable as a whole number that is at least `least`."""
    value = os.environ.get(name, "").strip()
    if not value:
        return default
    if not value.isdecimal() or int(value) < least:
        raise BadEnvironment(f"{name}={value} is not a whole number of at least {least}.")
    return int(value)


def choice(name: str, default: str, allowed: tuple[str, ...]) -> str:
    """The variable as one of `allowed`."""
    value = os.environ.get(name, default)
    if value not in allowed:
        raise BadEnvironment(f"{name}={value} is not one of {', '.join(allowed)}.")
    return value


def time_zone(name: str, default: str) -> str:
    """The variable as the IANA name of a time zone, `Europe/Berlin`."""
    value = os.environ.get(name, "").strip() or default
    if value not in available_timezones():
        raise BadEnvironment(f"{name}={value} is no time zone. Write it as Europe/Berlin.")
    return value


def words(name: str, default: str) -> list[str]:
    """The variable, or the content of the file that `NAME_FILE` names, as a list, separated by commas."""
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def networks(name: str, default: str) -> list[IPv4Network | IPv6Network]:
    """The variable as IP networks, separated by commas."""
    try:
        return [ip_network(word) for word in words(name, default)]
    except ValueError as error:
        raise BadEnvironment(f"{name}: {error}. Write networks as 10.0.0.0/8,fd00::/8.") from error


def pairs(name: str, default: str, *, allowed: tuple[str, ...]) -> dict[str, str]:
    """The variable as `word=value` pairs, separated by commas; each value one of `allowed`."""
    found = {}
    for pair in words(name, default):
        word, _, value = (part.strip() for part in pair.rpartition("="))
        if not word or value not in allowed:
            raise BadEnvironment(f"{name}: {pair} is not a word, an equals sign and one of {', '.join(allowed)}.")
        found[word] = value
    return found


def spans(name: str, default: str, *, least: int, most: int) -> tuple[tuple[int, int], ...]:
    """The variable as ranges of numbers, `0x0100-0x7dff,0x0010`, first and last of each; all within least to most."""
    found = []
    for word in words(name, default):
        first, _, last = (part.strip() for part in word.partition("-"))
        try:
            span = (int(first, 0), int(last or first, 0))
        except ValueError:
            span = (most, least)
        if not least <= span[0] <= span[1] <= most:
            raise BadEnvironment(
                f"{name}: {word} is no range within {least:#06x} to {most:#06x}. Write it as {default}."
            )
        found.append(span)
    if not found:
        raise BadEnvironment(f"{name} is empty. Write ranges as {default}.")
    return tuple(found)
