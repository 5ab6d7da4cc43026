"""Model against oracle: do they agree on rejection, and on every end port's P_Key table with its indexes?"""

from collections.abc import Iterator, Mapping

from lab.differential.fabric import SM_PORT, net_text
from lab.differential.generator import ALLOW_BOTH, QOS
from lab.oracle import OracleAnswer
from subnet.guid import GUID
from subnet.opensm_reading import Fabric, Reading, read
from subnet.opensm_reading.parser import CRASHES

UNWRITTEN = "unwritten-memory"
Tables = Mapping[GUID, Mapping[int, int]]


def fabric() -> Fabric:
    """The differential's fabric as the model takes it, read from the very text that the simulator loads."""
    return Fabric.from_net(net_text(), sm_port=SM_PORT)


def model(data: bytes, options: tuple[str, ...], on: Fabric) -> Reading:
    """What the model says that OpenSM, started with `options`, makes of `data`."""
    return read(data, on, allow_both_pkeys=ALLOW_BOTH in options, qos=QOS in options)


def is_chance(reading: Reading) -> bool:
    """Whether the model says that the outcome hangs on memory OpenSM never wrote: no two machines need agree."""
    return any(finding.rule == UNWRITTEN for finding in reading.findings)


def differences(reading: Reading, answer: OracleAnswer) -> list[str]:
    """Where model and OpenSM part; empty when they agree. Files that are a matter of chance are not for this."""
    dies = reading.rejection is not None and reading.rejection.message.startswith(CRASHES)
    if answer.died or dies:
        died = f"dies of signal {answer.died}" if answer.died else "lives"
        return [] if answer.died and dies else [f"OpenSM {died}, the model says that it {'dies' if dies else 'lives'}"]
    said = reading.rejection and (reading.rejection.line, reading.rejection.message)
    found = []
    # The model has its own words for “no definition”, which OpenSM logs nothing of.
    if (said and said[0]) != (answer.rejection and answer.rejection[0]) or (said is None) != (answer.rejection is None):
        found.append(f"rejection: OpenSM {answer.rejection}, model {said}")
    elif said and answer.rejection and said[0] is not None and said[1] != answer.rejection[1]:
        found.append(f"message: OpenSM {answer.rejection[1]!r}, model {said[1]!r}")
    return found + list(_tables(reading.tables, answer.tables))


def _tables(model: Tables, real: Tables) -> Iterator[str]:
    for guid in sorted(set(model) | set(real)):
        ours, theirs = model.get(guid), real.get(guid)
        if ours is None or theirs is None or dict(ours) != dict(theirs):
            yield f"{guid}: OpenSM {shown(theirs)}, model {shown(ours)}"


def shown(table: Mapping[int, int] | None) -> list[str] | None:
    """A table as `0xKEY@INDEX`, in order of index."""
    return None if table is None else [f"0x{entry:04x}@{index}" for index, entry in sorted(table.items())]
