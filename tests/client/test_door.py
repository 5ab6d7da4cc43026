"""The door over real sockets: what is tried again, what is not, and where the token never goes."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from fabricui.client.configuration import Configuration
from fabricui.client.door import Door
from fabricui.client.failures import Exit, Failure


class Scripted:
    """Answers one after the other of `answers`: (status, headers, body), or None for a connection that is cut."""

    def __init__(self):
        self.answers, self.asked = [], []
        script = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self):
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                script.asked.append((self.command, self.path, dict(self.headers)))
                answer = script.answers.pop(0)
                if answer is None:
                    self.close_connection = True
                    return
                status, headers, body = answer
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = answer

            def log_message(self, *args):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def script():
    made = Scripted()
    yield made
    made.server.shutdown()
    made.thread.join()
    made.server.server_close()


def door(script, slept, url=""):
    return Door(Configuration(url or script.url, "fui_canary", "", 5), sleep=slept.append)


def refusal(act):
    with pytest.raises(Failure) as raised:
        act()
    assert "fui_canary" not in str(raised.value.as_json())
    return raised.value


OK = (200, {"Content-Type": "application/json"}, b'{"items": []}')


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_waited_for(script, status):
    slept = []
    script.answers = [(status, {"Retry-After": "7"}, b"later"), OK]
    assert door(script, slept).get("servers") == {"items": []}
    assert slept == [7]


def test_a_retry_after_beyond_all_patience_ends_it(script):
    slept = []
    script.answers = [(503, {"Retry-After": "3600"}, b"")]
    assert refusal(lambda: door(script, slept).get("servers")).exit_code is Exit.UNREACHABLE
    assert slept == []


def test_a_cut_connection_is_tried_again_with_the_same_key(script):
    slept = []
    script.answers = [None, None, OK]
    door(script, slept).post("rollouts", body={})
    assert len({headers["Idempotency-Key"] for _, _, headers in script.asked}) == 1
    assert [verb for verb, _, _ in script.asked] == ["POST"] * 3


def test_it_gives_up_at_last(script):
    slept = []
    script.answers = [None] * 5
    assert refusal(lambda: door(script, slept).get("servers")).exit_code is Exit.UNREACHABLE
    assert len(script.asked) == 5


def test_nobody_there(script):
    assert refusal(lambda: door(script, [], "http://127.0.0.1:1").get("servers")).exit_code is Exit.UNREACHABLE


def test_a_redirect_is_not_followed(script):
    script.answers = [(302, {"Location": f"{script.url}/elsewhere"}, b"")]
    assert refusal(lambda: door(script, []).get("servers")).exit_code is Exit.USAGE
    assert len(script.asked) == 1


@pytest.mark.parametrize("answer", [(200, {}, b"<html>"), (404, {"Content-Type": "text/html"}, b"no"), (200, {}, b"")])
def test_what_is_no_fabricui(script, answer):
    script.answers = [answer]
    assert refusal(lambda: door(script, []).get("servers")).exit_code is Exit.FAULT


def test_a_refusal_says_what_the_api_said(script):
    problem = {"status": 409, "code": "brand_new", "detail": "Not now.", "mend": "Later.", "request_id": "r1"}
    script.answers = [(409, {"Content-Type": "application/problem+json"}, json.dumps(problem).encode())]
    failure = refusal(lambda: door(script, []).post("rollouts", body={}))
    assert (failure.exit_code, failure.code, failure.mend) == (Exit.CONFLICT, "brand_new", "Later.")


def test_an_address_holds_nothing_but_its_parts(script):
    script.answers = [OK]
    door(script, []).get("servers", "../audit/events?x=1")
    assert script.asked[0][1] == "/api/v1/servers/..%2Faudit%2Fevents%3Fx%3D1"
