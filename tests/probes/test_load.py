"""What others send through a port just before a run: measured, and above a share of the rate the run waits."""

import pytest

from probes import on_host


class Clock:
    """A wire whose pause only moves the clock, and what happens meanwhile."""

    def __init__(self, monkeypatch, meanwhile):
        self.now = 100.0
        self.meanwhile = meanwhile
        monkeypatch.setattr(on_host.time, "monotonic", lambda: self.now)

    def pause_until(self, moment):
        self.now = moment
        self.meanwhile()


@pytest.fixture
def net(tmp_path, monkeypatch):
    """A folder of network interfaces; returns the function that writes one."""
    root = tmp_path / "net"
    monkeypatch.setattr(on_host, "NET_SYSFS", str(root))

    def write(name, **files):
        (root / name / "statistics").mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            folder = root / name / "statistics" if file.endswith("bytes") else root / name
            (folder / file).write_text(f"{text}\n")

    return write


def measured(monkeypatch, meanwhile, *, most=20.0, **more):
    clock = Clock(monkeypatch, meanwhile)
    load = on_host.Load(**(more or {"facts": on_host.choose_port({})}))
    return load.measure(clock, most)


@pytest.mark.parametrize("busier", ["xmit", "rcv"])
def test_the_busier_direction_of_a_port_is_measured_over_a_second(sysfs, monkeypatch, busier):
    def counted(data, other):
        sysfs(**{f"mlx5_0__ports__1__counters__port_{one}_data": str(data if one == busier else other)
                 for one in ("xmit", "rcv")})  # fmt: skip

    counted(1_000, 1_000)
    # 19 % of 400 Gb/s for a second, in units of four bytes
    found = measured(monkeypatch, lambda: counted(1_000 + 76_000_000_000 // 32, 1_001))
    assert found == {"load_pct": 19.0, "load_gbps": 76.0, "load_s": 1.0}


def test_above_the_share_a_run_is_put_off_with_the_figure(sysfs, monkeypatch):
    def counted(data):
        sysfs(mlx5_0__ports__1__counters__port_xmit_data=str(data), mlx5_0__ports__1__counters__port_rcv_data="7")

    counted(0)
    with pytest.raises(on_host.Refusal) as refused:
        measured(monkeypatch, lambda: counted(84_000_000_000 // 32))
    assert refused.value.code == "BUSY"
    assert refused.value.facts == {"load_pct": 21.0, "load_gbps": 84.0, "load_s": 1.0, "limit_pct": 20.0}
    assert "84 Gb/s through mlx5_0/1, 21 % of its 400 Gb/s" in refused.value.reason


def ethernet(sysfs, **more):
    sysfs(mlx5_0__ports__1__link_layer="Ethernet", mlx5_0__ports__1__gid_attrs__ndevs__0="eth7", **more)


def test_on_ethernet_the_interface_counts_beside_the_port(sysfs, net, monkeypatch):
    ethernet(sysfs, mlx5_0__ports__1__counters__port_xmit_data="0", mlx5_0__ports__1__rate="100 Gb/sec (4X EDR)")
    net("eth7", tx_bytes=0, rx_bytes=0)

    def meanwhile():
        ethernet(sysfs, mlx5_0__ports__1__counters__port_xmit_data=str(5_000_000_000 // 32))
        net("eth7", tx_bytes=10_000_000_000 // 8)

    assert measured(monkeypatch, meanwhile)["load_pct"] == 15.0


def test_software_has_the_speed_of_its_card(sysfs, net, monkeypatch):
    ethernet(sysfs, mlx5_0__parent="eth1", mlx5_0__ports__1__rate="2.5 Gb/sec (1X SDR)")
    net("eth1", speed=10_000, tx_bytes=0, rx_bytes=0)
    assert measured(monkeypatch, lambda: net("eth1", rx_bytes=1_000_000_000 // 8))["load_pct"] == 10.0


@pytest.mark.parametrize("speed", ["-1", "", "0", "unknown"])
def test_an_unknown_rate_is_said_and_nothing_is_put_off(sysfs, net, monkeypatch, speed):
    ethernet(sysfs, mlx5_0__parent="eth1")
    net("eth1", speed=speed, tx_bytes=0, rx_bytes=0)
    found = measured(monkeypatch, lambda: net("eth1", rx_bytes=1 << 50))
    assert found == {"load": "not known: the rate of mlx5_0/1 is not"}


def test_counters_that_are_missing_or_begin_anew_are_said(sysfs, monkeypatch):
    unknown = {"load": "not known: nothing counts the bytes of mlx5_0/1"}
    assert measured(monkeypatch, lambda: None) == unknown
    sysfs(mlx5_0__ports__1__counters__port_xmit_data="9000")
    assert measured(monkeypatch, lambda: sysfs(mlx5_0__ports__1__counters__port_xmit_data="1")) == unknown


def test_an_interface_of_a_tcp_baseline_is_measured_as_well(net, monkeypatch):
    net("eth0", speed=1000, tx_bytes=0, rx_bytes=0)
    found = measured(monkeypatch, lambda: net("eth0", tx_bytes=12_500_000), interface="eth0")
    assert found["load_pct"] == 10.0
