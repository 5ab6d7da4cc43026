"""What the trail needs in production: keys of its own, and a place outside for the anchors. A demo makes its own."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from django.apps.config import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Tags, Warning, register

from audit import keyring, signing
from audit.errors import KeyUnavailable

_MAKE: Final = "Name a file outside the data folder and the database, for both keys, then: ./run manage audit make-keys"


class Lack(NamedTuple):
    """What is missing; `./run up` does not start without what it `is_demanded`."""

    id: str
    sentence: str
    is_demanded: bool = True


@register(Tags.security, deploy=True)
def trail(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Tell `check --deploy`, and with it `./run doctor`; never more than a warning, for who only tries the demo."""
    return [Warning(lack.sentence, id=lack.id) for lack in lacks()]


def why_not() -> list[str]:
    """The sentences for which `./run up` must not start; none when the trail has what it needs."""
    return [lack.sentence for lack in lacks() if lack.is_demanded]


def lacks() -> list[Lack]:
    """All that production should not run without."""
    return [] if settings.DEMO else [*_secret_key(), *_signing_key(), *_outside()]


def _secret_key() -> Iterator[Lack]:
    name = "FABRICUI_AUDIT_KEY_FILE"
    if not settings.AUDIT_KEY_FILE:
        said = f"{name} is not set: the trail’s secret key would lie beside the database it guards."
        yield Lack("audit.W001", f"{said} {_MAKE}")
        return
    try:
        keyring.load()
    except KeyUnavailable as error:
        new = " For a new trail: ./run manage audit make-keys" if _is_missing(keyring.path()) else ""
        yield Lack("audit.W002", f"{error}{new}")
        return
    yield from _shown(name, keyring.path())


def _is_missing(file: Path) -> bool:
    """Whether nothing is there; a folder that may not be entered says nothing."""
    try:
        return not file.exists()
    except OSError:
        return False


def _signing_key() -> Iterator[Lack]:
    """Only where it may be seen: the other processes get the name of its public half alone."""
    name = "FABRICUI_AUDIT_SIGNING_KEY_FILE"
    if not settings.AUDIT_SIGNING_KEY_FILE:
        if not settings.AUDIT_PUBLIC_KEY_FILE:
            said = f"{name} is not set: the key that signs the trail would lie beside the database it guards."
            yield Lack("audit.W003", f"{said} {_MAKE}")
        return
    try:
        signing.path().open("rb").close()
    except OSError as error:
        mend = "Put it back from its backup; for a new trail: ./run manage audit make-keys"
        yield Lack("audit.W004", f"{name} names {signing.path()}, which cannot be read ({error.strerror}). {mend}")
        return
    yield from _shown(name, signing.path())


def _shown(name: str, file: Path) -> Iterator[Lack]:
    if file.stat().st_mode & 0o007:
        yield Lack("audit.W005", f"Every account can read {file} ({name}): chmod o-rwx {file}")
    if file.resolve().is_relative_to(Path(settings.DATA_DIR).resolve()):
        said = f"{file} ({name}) lies in the data folder: whoever copies that has the key too. Keep it elsewhere."
        yield Lack("audit.W006", said, is_demanded=False)


def _outside() -> Iterator[Lack]:
    anchors = Path(settings.AUDIT_ANCHOR_FILE).resolve()
    if not settings.AUDIT_SYSLOG and anchors.is_relative_to(Path(settings.DATA_DIR).resolve()):
        said = (
            f"The trail is anchored in {anchors} only, in the data folder: its owner can cut both. Name a file on "
            "another machine’s mount in FABRICUI_AUDIT_ANCHOR_FILE, or a server in FABRICUI_AUDIT_SYSLOG."
        )
        yield Lack("audit.W007", said, is_demanded=False)
