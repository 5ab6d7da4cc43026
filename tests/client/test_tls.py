"""The client over TLS: an authority of one's own is taken when it is named; nothing is said to anybody else."""

import datetime
import ipaddress
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from fabricui.client.configuration import Configuration
from fabricui.client.door import Door
from fabricui.client.failures import Exit, Failure
from tests.client.test_door import OK, Scripted

LOOPBACK = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))


def certificate(name, *, issuer=None, alt=None, days=1):
    """(certificate, key) that `issuer` (or itself) has signed; an authority unless it has an alternative name."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    authority, signer = issuer or (None, key)
    now = datetime.datetime.now(tz=datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if authority is None else authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=2))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=alt is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if alt is None:
        use = dict.fromkeys(
            (
                "content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only",
                "decipher_only",
            ),
            False,
        )  # fmt: skip
        signs = x509.KeyUsage(digital_signature=True, key_cert_sign=True, crl_sign=True, **use)
        made = made.add_extension(signs, critical=True)
    else:
        made = made.add_extension(x509.SubjectAlternativeName([alt]), critical=False)
    return made.sign(signer, hashes.SHA256()), key


def pem(path, *parts):
    """A file of certificates and keys."""
    data = b""
    for part in parts:
        if isinstance(part, x509.Certificate):
            data += part.public_bytes(serialization.Encoding.PEM)
        else:
            data += part.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
    path.write_bytes(data)
    return str(path)


class Site(Scripted):
    """The scripted server behind TLS."""

    def __init__(self, chain):
        super().__init__()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.server.handle_error = lambda *_: None  # a client that does not trust it hangs up

    @property
    def url(self):
        return super().url.replace("http:", "https:")


@pytest.fixture
def authority():
    return certificate("own authority")


@pytest.fixture
def serve(tmp_path):
    """Start a site with a certificate; all of them end with the test."""
    sites = []

    def start(signed):
        site = Site(pem(tmp_path / f"site{len(sites)}.pem", *signed))
        sites.append(site)
        site.answers = [OK] * 5
        return site

    yield start
    for site in sites:
        site.server.shutdown()
        site.thread.join()
        site.server.server_close()


def ask(site, ca_file=""):
    return Door(Configuration(site.url, "fui_canary", ca_file, 5), sleep=lambda seconds: None).get("servers")


def is_refused(site, ca_file=""):
    """Whether it is refused for its certificate, at once, and before anything was said."""
    with pytest.raises(Failure) as raised:
        ask(site, ca_file)
    failure = raised.value
    assert (failure.exit_code, failure.code) == (Exit.UNREACHABLE, "untrusted_certificate")
    assert "fui_canary" not in str(failure.as_json())
    return site.asked == [] and "Nothing was sent" in failure.mend


def test_an_authority_of_ones_own_is_taken_when_it_is_named(serve, authority, tmp_path):
    site = serve(certificate("fabricui", issuer=authority, alt=LOOPBACK))
    assert ask(site, pem(tmp_path / "ca.pem", authority[0])) == {"items": []}
    assert site.asked[0][2]["Authorization"] == "Token fui_canary"


def test_without_its_name_nothing_is_sent(serve, authority, tmp_path):
    site = serve(certificate("fabricui", issuer=authority, alt=LOOPBACK))
    assert is_refused(site)
    assert is_refused(site, pem(tmp_path / "other.pem", certificate("another authority")[0]))


def test_a_certificate_that_signed_itself_is_refused(serve, authority, tmp_path):
    assert is_refused(serve(certificate("fabricui", alt=LOOPBACK)))
    assert is_refused(serve(certificate("fabricui", alt=LOOPBACK)), pem(tmp_path / "ca.pem", authority[0]))


def test_a_certificate_of_another_host_or_of_yesterday_is_refused(serve, authority, tmp_path):
    ca_file = pem(tmp_path / "ca.pem", authority[0])
    assert is_refused(serve(certificate("x", issuer=authority, alt=x509.DNSName("elsewhere.example"))), ca_file)
    assert is_refused(serve(certificate("x", issuer=authority, alt=LOOPBACK, days=-1)), ca_file)
