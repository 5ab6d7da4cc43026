"""A TLS door in front of a loopback port: agents send their credential by https to any machine but their own."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import NameOID

from lab.relay import relaying

_LIFE = timedelta(days=30)


def make_certificate(address: str, *, key_file: Path) -> str:
    """A certificate for an IPv4 address that vouches for itself, as PEM; key and certificate go into `key_file`."""
    key = generate_private_key(SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"FabricUI lab {address}")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))  # the other machine's clock may be slow
        .not_valid_after(now + _LIFE)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address(address))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, SHA256())
    )
    certificate = made.public_bytes(serialization.Encoding.PEM)
    key_file.touch(mode=0o600)
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate
    )
    return certificate.decode("ascii")


@asynccontextmanager
async def door(target_port: int, *, key_file: Path) -> AsyncIterator[int]:
    """The port of a TLS door on loopback that hands on to `target_port` while the block lasts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(key_file)
    server = await asyncio.start_server(relaying("127.0.0.1", target_port), "127.0.0.1", 0, ssl=context)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
