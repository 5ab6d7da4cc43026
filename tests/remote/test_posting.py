"""One POST to an address that somebody else chose: what is refused, what is connected to, what bounds it."""

import ipaddress
import socket
import threading
import time

import pytest

from remote.posting import LONGEST_BODY, BadTarget, NotPosted, Target, parse, post, why_not
from tests.webhooks.receiver import drip, receiving

LOOPBACK = [ipaddress.ip_network("127.0.0.0/8")]


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    with receiving(tmp_path_factory.mktemp("tls")) as receiver:
        yield receiver


@pytest.fixture(scope="module")
def plain():
    with receiving() as receiver:
        yield receiver


@pytest.fixture(autouse=True)
def _anew(request):
    yield
    for name in ("tls", "plain"):
        if name in request.fixturenames:
            receiver = request.getfixturevalue(name)
            receiver.taken.clear()
            receiver.status, receiver.headers, receiver.behave = 204, {}, None


@pytest.mark.parametrize(
    "url",
    [
        # no place to ask
        "", "hooks.example.com", "//hooks.example.com/", "https://", "https:///x", "https://:443/", "file:///etc/passwd",
        "gopher://127.0.0.1:6379/_FLUSHALL", "ftp://example.com/", "javascript:alert(1)", "https://host:0/",
        "https://host:99999/", "https://host:x/", "https://exa mple.com/", "https://example.com/a b", "https://a\\b.com/",
        "https://example.com/\r\nX: y", "https://example.com\t/", "https://ex\u00e4mple.com/", "https://\uff11\uff12\uff17.0.0.1/",
        "https://-x.com/", "https://x..com/", "https://.x.com/", "https://x_y.com/", "https://" + "a" * 64 + ".com/",
        "https://example.com/" + "x" * 500, "https://[::1", "https://example.com#x", "https://example.com/#",
        # a user or a password
        "https://user@example.com/", "https://user:password@example.com/", "https://example.com@127.0.0.1/",
        "https://@example.com/",
        # without TLS
        "http://example.com/", "http://93.184.215.14/",
        # inner addresses
        "https://127.0.0.1/", "https://10.0.0.1/", "https://172.16.0.1/", "https://192.168.1.1/", "https://169.254.169.254/",
        "https://100.64.0.1/", "https://0.0.0.0/", "https://255.255.255.255/", "https://224.0.0.1/", "https://192.0.2.1/",
        "https://198.18.0.1/", "https://240.0.0.1/", "https://168.63.129.16/", "https://[::1]/", "https://[::]/",
        "https://[fe80::1]/", "https://[fd00:ec2::254]/", "https://[fc00::1]/", "https://[ff02::1]/", "https://[2001:db8::1]/",
        # IPv4 hidden in IPv6
        "https://[::ffff:7f00:1]/", "https://[::ffff:127.0.0.1]/", "https://[::ffff:93.184.215.14]/", "https://[::7f00:1]/",
        "https://[64:ff9b::7f00:1]/", "https://[64:ff9b::a9fe:a9fe]/", "https://[2002:7f00:1::]/", "https://[2001:0:7f00:1::]/",
        # odd spellings of a number
        "https://127.1/", "https://2130706433/", "https://0x7f000001/", "https://0x7f.0.0.1/", "https://0177.0.0.1/",
        "https://127.0.0.1./", "https://127.0.0.01/", "https://127.0.0.256/", "https://1.1.1.1.1/", "https://example.com.0x7f/",
        "https://017700000001/", "https://[fe80::1%25eth0]/", "https://[0:0:0:0:0:0:0:1]/", "https://[2606:4700::0001]/",
    ],
)  # fmt: skip
def test_what_is_refused_before_anything_is_asked(url):
    with pytest.raises(BadTarget) as refused:
        parse(url)
    assert str(refused.value).endswith((".", "/…"))


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://hooks.example.com", Target("hooks.example.com", 443, "/", True)),
        ("https://HOOKS.example.com:8443/a?b=c", Target("hooks.example.com", 8443, "/a?b=c", True)),
        ("https://xn--exmple-cua.com/", Target("xn--exmple-cua.com", 443, "/", True)),
        ("https://1.1.1.1/x", Target("1.1.1.1", 443, "/x", True)),
        ("https://[2606:4700::1111]/", Target("2606:4700::1111", 443, "/", True)),
    ],
)
def test_what_is_taken(url, target):
    assert parse(url) == target


def test_an_allowed_network_opens_just_itself():
    allowed = [ipaddress.ip_network("10.1.0.0/16"), ipaddress.ip_network("fd00:1::/32")]
    assert parse("http://10.1.2.3:8080/x", allowed=allowed).port == 8080
    assert parse("https://[fd00:1::5]/", allowed=allowed)
    for url in ("https://10.2.0.1/", "http://[::ffff:a01:203]/", "http://hooks.example.com/", "https://[fd00:2::5]/"):
        with pytest.raises(BadTarget):
            parse(url, allowed=allowed)


def test_no_special_address_is_ever_public():
    """Every block that is registered for something special is refused, whatever Python calls global."""
    for text in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/29",
        "192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4",
        "240.0.0.0/4", "::/96", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/32",
        "2001:db8::/32", "2002::/16",
        "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
    ):  # fmt: skip
        network = ipaddress.ip_network(text)
        for address in (network[0], network[1], network[-1]):
            assert why_not(address, []), address


def posted(receiver, host="hooks.example.com", path="/x", addresses=("127.0.0.1",), allowed=LOOPBACK, **more):
    target = Target(host, receiver.port, path, bool(receiver.ca_file))
    asked = []

    def resolver(name, port):
        asked.append((name, port))
        return addresses

    status = post(target, b"{}", {"X-Test": "1"}, allowed=allowed, ca_file=receiver.ca_file, resolver=resolver, **more)
    return status, asked


def test_the_name_is_resolved_once_and_kept_for_tls(tls):
    status, asked = posted(tls)
    assert (status, asked) == (204, [("hooks.example.com", tls.port)])
    path, headers, body = tls.taken[0]
    assert (path, body, headers["X-Test"]) == ("/x", b"{}", "1")
    assert headers["Host"] == f"hooks.example.com:{tls.port}"


def test_the_address_that_was_judged_is_the_one_connected_to(tls, monkeypatch):
    """A name that points elsewhere at the second look gains nothing: there is no second look."""
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: pytest.fail("it was resolved again")
                        if _[0] == "hooks.example.com" else REAL(*_, **__))  # fmt: skip
    assert posted(tls)[0] == 204


REAL = socket.getaddrinfo


@pytest.mark.parametrize(
    "addresses", [("127.0.0.1",), ("93.184.215.14", "127.0.0.1"), ("::ffff:127.0.0.1",), ("169.254.169.254",)]
)
def test_a_name_that_leads_inside_is_refused_and_nothing_is_connected(tls, addresses):
    with pytest.raises(BadTarget, match=r"^hooks\.example\.com: "):
        posted(tls, addresses=addresses, allowed=[])
    assert tls.taken == []


def test_a_certificate_for_another_name_is_refused(tls):
    with pytest.raises(NotPosted, match="certificate is not valid"):
        posted(tls, host="other.example.com")
    with pytest.raises(NotPosted, match="certificate is not valid"):  # of an authority that nobody knows
        post(
            Target("hooks.example.com", tls.port, "/", True),
            b"",
            {},
            allowed=LOOPBACK,
            resolver=lambda *_: ["127.0.0.1"],
        )
    assert tls.taken == []


def test_plain_http_goes_only_inside_of_an_allowed_network(plain):
    assert posted(plain, host="127.0.0.1")[0] == 204
    with pytest.raises(BadTarget):
        posted(plain, host="127.0.0.1", allowed=[])


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_no_redirect_is_followed(plain, status):
    plain.status, plain.headers = status, {"Location": f"http://127.0.0.1:{plain.port}/elsewhere"}
    with pytest.raises(NotPosted, match="no redirect is followed"):
        posted(plain, host="127.0.0.1")
    assert [path for path, *_ in plain.taken] == ["/x"]


@pytest.mark.parametrize("status", [400, 404, 500, 503])
def test_what_is_no_yes_is_a_no(plain, status):
    plain.status = status
    with pytest.raises(NotPosted, match=f"answered {status}"):
        posted(plain, host="127.0.0.1")


def test_no_proxy_of_the_environment_is_used(plain, monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert posted(plain, host="127.0.0.1")[0] == 204


def test_an_answer_that_never_ends_does(plain):
    plain.behave = drip
    began = time.monotonic()
    with pytest.raises(NotPosted):
        posted(plain, host="127.0.0.1", total_s=0.7)
    assert time.monotonic() - began < 5


def test_silence_ends_too(plain):
    plain.behave = lambda handler: time.sleep(1.5)
    with pytest.raises(NotPosted, match="did not answer properly"):
        posted(plain, host="127.0.0.1", total_s=0.4)


def test_what_answers_is_never_quoted(plain):
    def nonsense(handler):
        handler.wfile.write(b"a secret of the inner network\r\n\r\n")
        handler.close_connection = True

    plain.behave = nonsense
    with pytest.raises(NotPosted) as failed:
        posted(plain, host="127.0.0.1")
    assert "secret" not in str(failed.value)


def test_a_huge_answer_is_not_read(plain):
    def flood(handler):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
        for _ in range(1000):
            handler.wfile.write(b"x" * 100_000)

    plain.behave = flood
    began = time.monotonic()
    assert posted(plain, host="127.0.0.1")[0] == 200
    assert time.monotonic() - began < 5


def test_nobody_there_and_no_name():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(NotPosted, match="No connection to 127"):
        post(Target("127.0.0.1", port, "/", False), b"", {}, allowed=LOOPBACK)
    with pytest.raises(NotPosted, match="could not be resolved"):
        post(Target("nowhere.invalid", 443, "/", True), b"", {})
    with pytest.raises(NotPosted, match="has no address"):
        post(Target("nowhere.example", 443, "/", True), b"", {}, resolver=lambda *_: [])
    with pytest.raises(NotPosted, match="bytes"):
        post(Target("127.0.0.1", port, "/", False), b"x" * (LONGEST_BODY + 1), {}, allowed=LOOPBACK)


def test_a_name_that_takes_for_ever_takes_no_more_than_the_whole_time(tls):
    asked, over = threading.Event(), threading.Event()

    def slow(host, port):
        asked.set()
        over.wait(60)
        return ["127.0.0.1"]

    began = time.monotonic()
    with pytest.raises(NotPosted, match=r"hooks\.example was not resolved in"):
        post(parse("https://hooks.example/x"), b"{}", {}, allowed=LOOPBACK, total_s=0.3, resolver=slow)
    assert asked.is_set()
    assert time.monotonic() - began < 30
    over.set()
    assert tls.taken == []
