"""Real workers: endpoints that hang hold the worker of the queue `webhooks`, and no other."""

import threading

import pytest

from tests.fabricui.running import Running
from tests.webhooks.receiver import receiving
from webhooks.terms import ROUND_S

# Two endpoints that hang and have more than a round can send; then something happens, and every follower is to hear.
PROGRAM = """
import time
from django.core.management import call_command
from audit import follow, nudge
from audit.models import ChainHead, FollowerCursor
from audit.values import SYSTEM
from inventory.operations import create_subnet
from webhooks import operations
from webhooks.models import Delivery
from webhooks.terms import OF_OWNER

def until(claim, seconds):
    deadline = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < deadline, claim.__name__
        time.sleep(0.05)

def are_sent():
    return Delivery.objects.filter(tries=1).count() >= OF_OWNER

def all_heard():
    return FollowerCursor.objects.filter(number__gte=newest).count() == len(follow.names())

call_command("migrate", verbosity=0)
for number in range(2):
    url = f"http://127.0.0.1:{port}/{number}"
    endpoint, _ = operations.create_endpoint(name=f"slow {number}", url=url, kinds=["stuck"], actor=SYSTEM)
    for _ in range(20):
        operations.send_test(endpoint=endpoint, actor=SYSTEM)
until(are_sent, 60)
create_subnet(name="lab", actor=SYSTEM)
newest = ChainHead.objects.get().number
until(all_heard, within_s)
"""


@pytest.fixture
def running():
    found = Running(FABRICUI_WEBHOOK_NETWORKS="127.0.0.0/8")
    try:
        yield found
    finally:
        found.stop()


def test_followers_hear_while_webhooks_hang(running):
    """A round over these endpoints takes at least ROUND_S; nobody else waits for its end."""
    over = threading.Event()
    with receiving() as receiver:
        receiver.behave = lambda handler: over.wait(60)
        for name in ("broker", "webhooks", "housekeeping"):
            running.start(name)
        try:
            running.python(f"port, within_s = {receiver.port}, {ROUND_S * 0.75}\n{PROGRAM}")
        finally:
            over.set()
