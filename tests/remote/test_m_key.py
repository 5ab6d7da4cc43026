"""The M_Key in each SMP. The simulator protects nothing with one, so the bytes themselves are looked at."""

import importlib.machinery
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

READER = Path(__file__).parents[2] / "remote" / "host" / "fabricui-tables"
M_KEY = 0x0123456789ABCDEF
HEADER = 64  # struct ib_user_mad_hdr
PKEY_TABLE = 0x16


@pytest.fixture(scope="module")
def reader() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("fabricui_tables", str(READER))
    spec = importlib.util.spec_from_loader("fabricui_tables", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.fixture
def fabric(reader: ModuleType):
    """A port that was never opened: only what is sent is looked at."""
    fabric = object.__new__(reader.Fabric)
    fabric.timeout_s = 0.2
    fabric._lay_out([1, 2], HEADER)
    return fabric


def test_an_smp_by_lid_carries_it_where_the_architecture_says(fabric):
    mad = fabric.by_lid(7, 0x11223344, PKEY_TABLE, 0x50001, M_KEY)[HEADER:]
    assert len(mad) == 256
    assert mad[:4] == bytes((1, 0x01, 1, 1))  # SubnGet, LID routed
    assert int.from_bytes(mad[12:16], "big") == 0x11223344
    assert int.from_bytes(mad[16:18], "big") == PKEY_TABLE
    assert int.from_bytes(mad[20:24], "big") == 0x50001
    assert int.from_bytes(mad[24:32], "big") == M_KEY
    assert not any(mad[32:])


def test_a_directed_smp_carries_it_too(fabric):
    mad = fabric.directed((1, 5), 0x11223344, PKEY_TABLE, 2, M_KEY)[HEADER:]
    assert len(mad) == 256
    assert mad[:4] == bytes((1, 0x81, 1, 1))
    assert mad[6:8] == bytes((0, 2))  # hop pointer, hop count
    assert int.from_bytes(mad[24:32], "big") == M_KEY
    assert mad[32:36] == b"\xff" * 4  # DrSLID, DrDLID: permissive
    assert mad[128:132] == bytes((0, 1, 5, 0))  # the initial path


@pytest.mark.parametrize(("text", "number"), [("", 0), ("0", 0), ("0x0123456789abcdef", M_KEY), ("291", 291)])
def test_it_comes_from_host_env(reader: ModuleType, monkeypatch: pytest.MonkeyPatch, text: str, number: int):
    """`install --host-env-line MKEY=0x…` writes it; a port that cannot be opened ends the attempt after that."""
    monkeypatch.setenv("MKEY", text)
    monkeypatch.setattr(reader.ctypes, "CDLL", lambda name: (_ for _ in ()).throw(OSError(name)))
    made = object.__new__(reader.Fabric)
    with pytest.raises(reader.Ended, match="cannot be loaded"):
        made.__init__(0x1)
    assert made.mkey == number


def test_every_request_is_sent_with_it(reader: ModuleType, fabric, monkeypatch: pytest.MonkeyPatch):
    """`ask` builds each SMP with the key, by LID and by route, first tries and repetitions."""
    written: list[bytes] = []
    fabric.mkey, fabric.window, fabric.tries, fabric.rate, fabric.transaction = M_KEY, 8, 2, 0, 1
    fabric.timeout_s, fabric.sent, fabric.timeouts, fabric.descriptor = -0.05, 0, 0, 0
    fabric.poll = type("Silent", (), {"poll": staticmethod(lambda wait_ms: [])})()
    monkeypatch.setattr(reader.os, "write", lambda descriptor, data: written.append(data))
    answers = fabric.ask([(7, PKEY_TABLE, 0), ((1, 2), PKEY_TABLE, 0)])
    assert answers == ["timeout", "timeout"]
    assert len(written) == 4
    assert {int.from_bytes(data[HEADER + 24 : HEADER + 32], "big") for data in written} == {M_KEY}
