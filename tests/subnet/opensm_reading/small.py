"""A fabric of three HCAs, one switch and one router port, and tables written short."""

from subnet.guid import GUID
from subnet.opensm_reading import EndPort, Fabric, Reading, read

SM, N2, N3 = (GUID(f"0x{number:016x}") for number in (0x11, 0x21, 0x31))
SWITCH, ROUTER = GUID("0x00000000000000e0"), GUID("0x00000000000000f1")
FABRIC = Fabric(
    ports={
        SM: EndPort(SM, GUID("0x10"), "CA"),
        N2: EndPort(N2, GUID("0x20"), "CA"),
        N3: EndPort(N3, GUID("0x30"), "CA"),
        SWITCH: EndPort(SWITCH, SWITCH, "SW", 8),
        ROUTER: EndPort(ROUTER, GUID("0xf0"), "RT"),
    },
    sm_port=SM,
)
NAMES = {"sm": SM, "n2": N2, "n3": N3, "sw": SWITCH, "rt": ROUTER}
ALL = ("sm", "n2", "n3", "sw", "rt")


def table(reading: Reading, port: str) -> str:
    """`ffff@0 8010@1`, by index."""
    return " ".join(f"{entry:04x}@{index}" for index, entry in sorted(reading.tables[NAMES[port]].items()))


def keys(data: bytes, *ports: str, **options: bool) -> list[str]:
    """What each named port (all without a name) holds beside Default, `8010 0020`; the word rejected otherwise."""
    reading = read(data, FABRIC, **options)
    if reading.rejection is not None:
        return ["rejected"]
    return [
        " ".join(f"{entry:04x}" for _, entry in sorted(reading.tables[NAMES[port]].items()) if entry & 0x7FFF != 0x7FFF)
        for port in ports or ALL
    ]


def default(data: bytes, **options: bool) -> str:
    """What the five ports hold of Default: `F` full, `l` limited, `-` neither, in the order of ALL; or rejected."""
    reading = read(data, FABRIC, **options)
    if reading.rejection is not None:
        return "rejected"
    held = [set(reading.tables[NAMES[port]].values()) for port in ALL]
    return "".join("F" if 0xFFFF in one else "l" if 0x7FFF in one else "-" for one in held)


def rejection(data: bytes) -> tuple[int | None, str] | None:
    """OpenSM's line and message, or None for a file it takes."""
    found = read(data, FABRIC).rejection
    return found and (found.line, found.message)
