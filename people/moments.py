"""Moments in sentences: composed and kept in UTC, told in the reader's time zone.

A sentence of ours that names a moment says “2026-12-01 14:30 UTC” wherever it is composed or kept, with its day, so
that it can be told again in any zone. At the page's edge it becomes the reader's: as text where only text can stand
(an attribute, a script's answer), else as `<time>` with UTC on hover.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from django.utils import timezone
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

_MOMENT: Final = re.compile(r"\b(\d{4}-\d\d-\d\d) (\d\d:\d\d)(:\d\d)? UTC\b")


def in_zone(text: str) -> str:
    """`text` with its moments in the zone that is active."""
    return text if _is_utc() else _MOMENT.sub(_told(lambda _, local, __: local), text)


def marked(text: str) -> SafeString:
    """`text` escaped, each moment in it a `<time>` in the zone that is active, with UTC on hover."""
    safe = escape(text)  # which leaves moments as they are
    return safe if _is_utc() else mark_safe(_MOMENT.sub(_told(_time), safe))  # noqa: S308  the rest is escaped


def _told(how: Callable[[datetime, str, str], str]) -> Callable[[re.Match[str]], str]:
    def told(found: re.Match[str]) -> str:
        try:
            at = datetime.fromisoformat(f"{found[1]}T{found[2]}{found[3] or ''}").replace(tzinfo=UTC)
            local = timezone.localtime(at)
        except (ValueError, OverflowError):  # it only looks like one
            return found[0]
        return how(at, local.strftime(f"%Y-%m-%d %H:%M{':%S' if found[3] else ''} %Z"), found[0])

    return told


def _time(at: datetime, local: str, utc: str) -> str:
    return format_html('<time datetime="{}" title="{}">{}</time>', at.isoformat(), utc, local)


def _is_utc() -> bool:
    return timezone.get_current_timezone_name() == "UTC"
