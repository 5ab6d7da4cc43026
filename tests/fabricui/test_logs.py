"""What a line of the log holds."""

import json
import logging

from django.http import HttpResponse
from django.test import RequestFactory

from audit import about
from audit.request_id import RequestIdMiddleware, request_id
from fabricui.json_lines import LONGEST, JSONLines
from fabricui.logs import RequestLineMiddleware


def line(message, *arguments, **extra):
    record = logging.LogRecord("deploy.story", logging.INFO, __file__, 1, message, arguments, None)
    record.__dict__.update(extra)
    return JSONLines().format(record)


def test_a_line_is_one_object_with_request_and_rollout():
    with request_id("c0ffee"), about.rollout("r1"):
        said = json.loads(line("rollout %s\nis %s", "r1", "PROVEN"))
    assert said.pop("at").endswith("+00:00")
    assert said.pop("pid")
    assert said == {
        "level": "INFO", "logger": "deploy.story", "message": "rollout r1\nis PROVEN", "request": "c0ffee",
        "rollout": "r1",
    }  # fmt: skip
    assert "\n" not in line("two\nlines")


def test_outside_of_both_nothing_is_said_of_them():
    assert not {"request", "rollout"} & json.loads(line("x")).keys()
    assert json.loads(line("x", rollout="r2"))["rollout"] == "r2"


def test_what_is_too_long_is_cut():
    assert len(json.loads(line("x" * (LONGEST + 100)))["message"]) == LONGEST


def test_a_request_is_told_without_its_query(caplog):
    caplog.set_level(logging.INFO, "fabricui.requests")
    inner = RequestIdMiddleware(lambda request: HttpResponse("x", status=201))
    answer = RequestLineMiddleware(inner)(RequestFactory().get("/board/?q=a-name&code=secret"))
    (record,) = caplog.records
    said = json.loads(JSONLines().format(record))
    assert said["request"] == answer["X-Request-ID"]
    assert (said["method"], said["path"], said["status"]) == ("GET", "/board/", 201)
    assert "secret" not in json.dumps(said)


def test_health_is_not_told(caplog):
    caplog.set_level(logging.INFO, "fabricui.requests")
    RequestLineMiddleware(lambda request: HttpResponse())(RequestFactory().get("/healthz"))
    assert caplog.records == []


def test_a_rollout_names_itself_in_its_lines(monkeypatch):
    from deploy import rollout as line_of

    seen = []
    monkeypatch.setattr(line_of, "_run", lambda *_: seen.append(about.current_rollout()))

    class Row:
        public_id = "r7"

    line_of.run(rollout=Row(), hosts=[])
    assert seen == ["r7"]
    assert about.current_rollout() == ""
