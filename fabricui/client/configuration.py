"""Where FabricUI is and with which token: from the environment, else from a file that only its owner reads.

A token never stands on a command line, where everybody on the machine reads it.
"""

import os
import stat
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from fabricui.client.failures import Exit, Failure

USUAL_FILE: Final = Path(".config") / "fabricui" / "client.toml"
USUAL_TIMEOUT_S: Final = 30.0
LONGEST_FILE: Final = 64 * 1024
_KNOWN: Final = ("url", "token", "token_file", "ca_file", "timeout_s")


@dataclass(frozen=True)
class Configuration:
    """What the door needs. `token` is never printed."""

    url: str
    token: str
    ca_file: str
    timeout_s: float

    def __repr__(self) -> str:
        return f"Configuration({self.url})"

    @property
    def is_loopback(self) -> bool:
        """Whether it is on this machine."""
        return is_loopback(urlsplit(self.url).hostname or "")


def read(
    environment: Mapping[str, str], *, url: str = "", ca_file: str = "", file: str = "", timeout_s: float | None = None
) -> Configuration:
    """The configuration: what the command line says, else the environment, else the file. Raises Failure."""
    named = file or environment.get("FABRICUI_CONFIG", "")
    home = environment.get("HOME") or "."
    path = Path(named) if named else Path(home) / USUAL_FILE
    found = _file(path, must_be_there=bool(named))
    wanted = url or environment.get("FABRICUI_URL", "") or found.get("url", "")
    if not wanted:
        raise _wrong(f'Where FabricUI is, is not known. Set FABRICUI_URL, or write url = "https://…" into {path}.')
    seconds = timeout_s if timeout_s is not None else _seconds(environment.get("FABRICUI_TIMEOUT_S"), found)
    if not 0 < seconds <= 3600:
        raise _wrong("The time-out is a number of seconds from more than 0 to 3600.")
    return Configuration(
        url=_judged(wanted),
        token=_token(environment, found, path),
        ca_file=ca_file or environment.get("FABRICUI_CA_FILE", "") or found.get("ca_file", ""),
        timeout_s=seconds,
    )


def is_loopback(host: str) -> bool:
    """Whether this names this machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _judged(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise _wrong("FABRICUI_URL is no address. Write it as https://fabricui.example.com") from error
    if parts.scheme not in ("http", "https") or not host or not url.isascii() or not url.isprintable():
        raise _wrong("FABRICUI_URL is no address. Write it as https://fabricui.example.com")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise _wrong("FABRICUI_URL has more in it than an address. Write it as https://fabricui.example.com")
    if parts.scheme == "http" and not is_loopback(host):
        raise _wrong(
            f"http://{host} would send the token unencrypted. Write https://{host}; http is for this machine alone."
        )
    return url.rstrip("/").removesuffix("/api/v1")


def _token(environment: Mapping[str, str], found: Mapping[str, Any], path: Path) -> str:
    if environment.get("FABRICUI_TOKEN"):
        token, where = environment["FABRICUI_TOKEN"], "FABRICUI_TOKEN"
    elif named := environment.get("FABRICUI_TOKEN_FILE", "") or found.get("token_file", ""):
        token, where = _private(Path(named).expanduser()), named
    else:
        token, where = found.get("token", ""), str(path)
    token = token.strip()
    if not token:
        raise _wrong(
            "There is no token. Make one under API tokens in your menu, write it into a file that only you read, and "
            "name that in FABRICUI_TOKEN_FILE."
        )
    if not (token.isascii() and token.isprintable()) or " " in token or len(token) > 1000:
        raise _wrong(f"What stands in {where} is no token: one line without spaces. Copy it again, whole.")
    return token


def _file(path: Path, *, must_be_there: bool) -> dict[str, Any]:
    """What stands in the file. One with a token in it is its owner's alone."""
    try:
        text, mode, owner = _read(path)
    except FileNotFoundError:
        if must_be_there:
            raise _wrong(f"{path} is not there. Write it, or name another one with --config.") from None
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise _wrong(f"{path} cannot be read: {_why(error)}.") from error
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        # What TOML says of the place may hold a part of the token.
        raise _wrong(f'{path} is no TOML. Write one line each, as in: url = "https://fabricui.example.com"') from None
    for name, value in found.items():
        if name not in _KNOWN:
            raise _wrong(f"{path} says “{name[:40]}”, which is nothing here. It takes {', '.join(_KNOWN)}.")
        if not isinstance(value, int | float if name == "timeout_s" else str) or isinstance(value, bool):
            raise _wrong(f"{path}: {name} is not what it takes: a number for timeout_s, else a text in quotes.")
    if "token" in found:
        _refuse_open(path, mode, owner)
    return found


def _private(path: Path) -> str:
    """The content of a file that nobody else reads."""
    try:
        text, mode, owner = _read(path)
    except (OSError, UnicodeDecodeError) as error:
        raise _wrong(f"The token file {path} cannot be read: {_why(error)}.") from error
    _refuse_open(path, mode, owner)
    return text


def _read(path: Path) -> tuple[str, int, int]:
    """Text, mode and owner, of the file as it was opened: nobody swaps it in between."""
    with path.open("rb") as opened:
        status = os.fstat(opened.fileno())
        data = opened.read(LONGEST_FILE + 1)
    if len(data) > LONGEST_FILE:
        raise OSError(f"it has more than {LONGEST_FILE} bytes")
    return data.decode("utf-8"), status.st_mode, status.st_uid


def _refuse_open(path: Path, mode: int, owner: int) -> None:
    if sys.platform == "win32":
        return  # its modes say nothing there
    if stat.S_IMODE(mode) & 0o077:
        raise _wrong(
            f"{path} holds a token, and others on this machine may read or change it (mode {stat.S_IMODE(mode):04o}). "
            f"Nothing was sent. Run: chmod 600 {path} — and if others could have read it, revoke the token."
        )
    if owner not in (os.geteuid(), 0):
        raise _wrong(f"{path} holds a token and belongs to another account. Copy it into a file of your own.")


def _seconds(said: str | None, found: Mapping[str, Any]) -> float:
    try:
        return float(said) if said else float(found.get("timeout_s", USUAL_TIMEOUT_S))
    except ValueError:
        raise _wrong("FABRICUI_TIMEOUT_S is a number of seconds.") from None


def _why(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else "it is no UTF-8 text"


def _wrong(sentence: str) -> Failure:
    return Failure(Exit.USAGE, sentence, code="configuration")
