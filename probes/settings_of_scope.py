"""How the pairs of one partition or probe set are probed, as one checked value that form and demo make."""

import re
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Self

from probes.errors import InvalidSettings
from probes.judgement import Thresholds
from probes.profiles import DEFAULT, DEFAULT_BYTES, UnknownProfile, check_names
from probes.schedule import LoadMode
from probes.windows import InvalidWindow, next_open, parse

if TYPE_CHECKING:
    from probes.models import ProbeScope

MIB: Final = 1 << 20
GIB: Final = 1 << 30
MOST_PROFILES: Final = 12
NEVER_BUSY_PCT: Final = 100  # no port is above it, so it is not measured
# field → least, most; a probe stays polite: 4 GiB are 86 ms at 400 Gb/s (kvprobe 1.4)
BOUNDS: Final = {
    "interval_s": (10, 7 * 86_400),
    "budget": (1, 1024),
    "bytes_per_run": (MIB, 4 * GIB),
    "ttft_budget_ms": (1, 600_000),
    "service_level": (0, 15),
    "busy_pct": (1, NEVER_BUSY_PCT),
}
_ANY_WEEK: Final = datetime(2026, 1, 5, tzinfo=UTC)  # the windows are the same every week
_INTERFACE = re.compile(r"\A[A-Za-z0-9][A-Za-z0-9_.:-]{0,14}\Z", re.ASCII)  # IFNAMSIZ is 16 with the final NUL


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeSettings:
    """Checked settings. Making one raises InvalidSettings, which names the field."""

    is_enabled: bool = False
    profiles: tuple[str, ...] = DEFAULT
    interval_s: int = 300
    budget: int = 4
    bytes_per_run: int = DEFAULT_BYTES
    mode: LoadMode = LoadMode.QUIET
    has_all_rails: bool = False
    windows: str = ""
    thresholds: Thresholds = field(default_factory=Thresholds)
    ttft_budget_ms: int = 500
    tcp_interface: str = ""
    service_level: int = 0
    is_patient: bool = False
    busy_pct: int = 20

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "profiles", check_names(self.profiles))
        except UnknownProfile as error:
            raise InvalidSettings(str(error), field="profiles") from error
        if len(self.profiles) > MOST_PROFILES:
            raise InvalidSettings(f"{MOST_PROFILES} profiles are the most.", field="profiles")
        for name, (least, most) in BOUNDS.items():
            if not least <= getattr(self, name) <= most:
                raise InvalidSettings(f"{getattr(self, name):,} is not within {least:,} and {most:,}.", field=name)
        try:
            windows = parse(self.windows)
        except InvalidWindow as error:
            raise InvalidSettings(str(error), field="windows") from error
        if windows and next_open(windows, _ANY_WEEK) is None:
            raise InvalidSettings("These windows leave no minute of the week. Switch the probes off.", field="windows")
        object.__setattr__(self, "windows", "\n".join(map(str, windows)))
        if self.tcp_interface and not _INTERFACE.match(self.tcp_interface):
            raise InvalidSettings(
                f"“{self.tcp_interface[:20]}” is no name of a network interface.", field="tcp_interface"
            )

    @classmethod
    def of(cls, scope: "ProbeScope") -> Self:
        """What a scope's row says now."""
        stored: dict[str, Any] = {item.name: getattr(scope, item.name) for item in fields(cls)}
        return cls(
            **stored
            | {
                "profiles": tuple(scope.profiles) or DEFAULT,
                "mode": LoadMode(scope.mode),
                "thresholds": Thresholds.from_json(scope.thresholds),
            }
        )

    def to_columns(self) -> dict[str, Any]:
        """The values of the row's columns."""
        return {item.name: getattr(self, item.name) for item in fields(self)} | {
            "profiles": list(self.profiles),
            "mode": self.mode.value,
            "thresholds": self.thresholds.to_json(),
        }

    def to_event(self) -> dict[str, Any]:
        """As the audit trail writes it down."""
        return asdict(self) | {"profiles": list(self.profiles), "mode": self.mode.value}
