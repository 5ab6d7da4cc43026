"""Lines for syslog: their form by RFC 5424, and that real sockets of each kind take them."""

import contextlib
import re
import socket
import ssl
import threading
from datetime import UTC, datetime

import pytest

from remote.syslog import LONGEST, NotLogged, Server, line, parse, send
from tests.webhooks.receiver import certificate

AT = datetime(2026, 12, 2, 14, 11, 7, 412000, tzinfo=UTC)
DATA = rb'\[[^\]"=\s]+(?: [^\]"=\s]+="(?:[^"\\\]]|\\.)*")*\]'
FORM = re.compile(rb"<(\d{1,3})>1 (\S+) (\S{1,255}) (\S{1,48}) (\S{1,128}) (\S{1,32}) (%s) (.*)" % DATA, re.DOTALL)


def of(text="it happened", **data):
    return line(severity=1, at=AT, name="rogue_sm", text=text, data=data, host="fabric-1")


def test_a_line_has_the_form_of_the_rfc():
    priority, at, host, app, _, kind, data, text = FORM.fullmatch(of(event="7", empty="")).groups()
    assert (priority, at, host, app) == (b"105", b"2026-12-02T14:11:07.412Z", b"fabric-1", b"fabricui")
    assert (kind, data, text) == (b"rogue_sm", b'[fabricui@32473 event="7"]', b"it happened")


@pytest.mark.parametrize("evil", ['"] [x y="', "a\nb", "\\", "]", "<1>1 - - - - - -", "\0", "ü" * 5000])
def test_nothing_in_it_breaks_the_line(evil):
    made = of(text=evil, subject=evil)
    assert b"\n" not in made
    assert b"\0" not in made
    assert len(made) <= LONGEST
    made.decode()
    if len(evil) < 100:
        assert FORM.fullmatch(made)


@pytest.mark.parametrize(
    "text", ["", "host:514", "http://host", "udp://", "udp://host:x", "tcp://host/path", "tls://u@host"]
)
def test_what_is_no_server_says_what_is(text):
    with pytest.raises(ValueError, match="/dev/log, udp://"):
        parse(text)


def test_servers():
    assert parse("/dev/log") == Server("local", "/dev/log")
    assert [parse(f"{kind}://host").port for kind in ("udp", "tcp", "tls")] == [514, 601, 6514]
    assert parse("tls://[2001:db8::1]:99") == Server("tls", "2001:db8::1", 99)


def test_udp_and_the_local_socket(tmp_path):
    for wire, server in (udp(), local(tmp_path)):
        with wire:
            send(server, [of("one"), of("two")])
            assert [wire.recv(4096).endswith(text) for text in (b"one", b"two")] == [True, True]


def udp():
    wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    wire.bind(("127.0.0.1", 0))
    wire.settimeout(10)
    return wire, Server("udp", "127.0.0.1", wire.getsockname()[1])


def local(folder):
    wire = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    wire.bind(str(folder / "log"))
    wire.settimeout(10)
    return wire, parse(str(folder / "log"))


@contextlib.contextmanager
def stream(context=None, *, takes=True):
    heard, listener = [], socket.create_server(("127.0.0.1", 0))

    def serve():
        with contextlib.suppress(OSError):
            wire, _ = listener.accept()
            if context is not None:
                wire = context.wrap_socket(wire, server_side=True)
            with wire:
                while takes and (part := wire.recv(4096)):
                    heard.append(part)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1], heard, thread
    finally:
        listener.close()


def test_streams_count_their_lines(tmp_path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca_file = certificate(tmp_path)
    context.load_cert_chain(ca_file)
    for kind, one in (("tcp", None), ("tls", context)):
        with stream(one) as (port, heard, thread):
            send(Server(kind, "127.0.0.1", port), [of("one"), of("two")], ca_file=str(ca_file))
            thread.join(10)
        assert b"".join(heard) == b"".join(b"%d %s" % (len(made), made) for made in (of("one"), of("two")))


def test_a_server_that_is_away_or_hangs_up_or_is_somebody_else():
    with stream(takes=False) as (port, _, _), pytest.raises(NotLogged, match="takes nothing"):
        send(Server("tcp", "127.0.0.1", port), [of()])
    with pytest.raises(NotLogged, match="FABRICUI_SYSLOG names it"):
        send(Server("local", "/nowhere/log"), [of()])
    with stream() as (port, _, _), pytest.raises(NotLogged):  # it speaks no TLS
        send(Server("tls", "127.0.0.1", port), [of()])
