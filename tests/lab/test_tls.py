"""The TLS door of a lab: what goes in comes out, and only who trusts its certificate goes in."""

import asyncio
import socket
import ssl
import stat

import pytest

from lab import tls

ADDRESS = "127.0.0.1"


@pytest.fixture
def key_file(tmp_path):
    return tmp_path / "door.pem"


@pytest.fixture
def certificate(key_file):
    return tls.make_certificate(ADDRESS, key_file=key_file)


async def shout(reader, writer):
    """Answer with what came, in capitals, and hang up, as a server does after `Connection: close`."""
    writer.write((await reader.readline()).upper())
    await writer.drain()
    writer.close()


def ask(port, trusted):
    """The whole answer to one line, asked with `trusted` as the only certificate."""
    context = ssl.create_default_context(cadata=trusted)
    with (
        socket.create_connection((ADDRESS, port), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname=ADDRESS) as connection,
    ):
        connection.sendall(b"a report\n")
        return b"".join(iter(lambda: connection.recv(100), b""))


def asked_through_the_door(key_file, trusted):
    async def run():
        behind = await asyncio.start_server(shout, ADDRESS, 0)
        async with behind, tls.door(behind.sockets[0].getsockname()[1], key_file=key_file) as port:
            return await asyncio.wait_for(asyncio.to_thread(ask, port, trusted), timeout=15)

    return asyncio.run(run())


def test_an_answer_comes_back_and_ends(key_file, certificate):
    assert asked_through_the_door(key_file, certificate) == b"A REPORT\n"
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert "PRIVATE KEY" not in certificate


def test_nobody_is_let_in_who_trusts_another_certificate(key_file, certificate, tmp_path):
    other = tls.make_certificate(ADDRESS, key_file=tmp_path / "other.pem")
    with pytest.raises(ssl.SSLCertVerificationError):
        asked_through_the_door(key_file, other)


def test_the_certificate_is_for_one_address(key_file, tmp_path):
    certificate = tls.make_certificate("10.0.2.2", key_file=key_file)
    with pytest.raises(ssl.SSLCertVerificationError, match="IP address mismatch"):
        asked_through_the_door(key_file, certificate)
