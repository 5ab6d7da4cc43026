"""The slow connection: late by what was asked, and complete."""

import os
import socket
import subprocess
import sys
import threading
import time

import pytest

from lab.free_ports import free_port
from lab.layout import repository, wait_until
from lab.sockets import is_listening

DELAY_MS = 150
ADDRESS = "127.0.0.1"


@pytest.fixture
def echo():
    """A server that sends back what it gets, and ends when its client does."""
    listener = socket.create_server((ADDRESS, 0))

    def serve():
        connection, _ = listener.accept()
        with connection:
            while data := connection.recv(65536):
                connection.sendall(data)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listener.getsockname()[1]
    listener.close()
    thread.join(timeout=5)


@pytest.fixture
def relay(echo):
    port = free_port(ADDRESS)
    process = subprocess.Popen(
        [sys.executable, "-m", "lab.relay", ADDRESS, str(port), str(echo), str(DELAY_MS)],
        env={**os.environ, "PYTHONPATH": str(repository())},
    )
    wait_until(lambda: is_listening(ADDRESS, port), timeout_s=10, what="the relay to listen")
    yield port
    process.kill()
    process.wait()


def test_every_byte_arrives_late_in_both_directions(relay):
    with socket.create_connection((ADDRESS, relay), timeout=10) as connection:
        sent = os.urandom(200_000)
        began = time.monotonic()
        threading.Thread(target=lambda: (connection.sendall(sent), connection.shutdown(socket.SHUT_WR))).start()
        first = connection.recv(1)
        waited = time.monotonic() - began
        received = first + b"".join(iter(lambda: connection.recv(65536), b""))
    assert waited >= 2 * DELAY_MS / 1000
    assert received == sent
