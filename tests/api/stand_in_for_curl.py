"""What stands in for curl where there is none: the options that the examples of docs/api/ use, and no other."""

import argparse
import http.client
import sys
from urllib.parse import urlsplit


def main() -> None:
    """Send one request, print the answer as `curl -i` does."""
    options = argparse.ArgumentParser(allow_abbrev=False)
    options.add_argument("-s", action="store_true")
    options.add_argument("-i", action="store_true", required=True)
    options.add_argument("-X", default="")
    options.add_argument("-H", action="append", default=[])
    options.add_argument("--json")
    options.add_argument("url")
    asked = options.parse_args()
    body = None if asked.json is None else (sys.stdin.read() if asked.json == "@-" else asked.json).encode()
    headers = {"Accept": "*/*", "User-Agent": "stand-in"}
    if body is not None:
        headers |= {"Accept": "application/json", "Content-Type": "application/json"}
    headers |= dict(one.split(": ", 1) for one in asked.H)
    url = urlsplit(asked.url)
    connection = http.client.HTTPConnection(url.netloc, timeout=30)
    address = f"{url.path}?{url.query}" if url.query else url.path
    connection.request(asked.X or ("GET" if body is None else "POST"), address, body, headers)
    found = connection.getresponse()
    head = [f"HTTP/1.1 {found.status} {found.reason}", *(f"{name}: {value}" for name, value in found.getheaders())]
    sys.stdout.write("\n".join(head) + "\n\n" + found.read().decode())


main()
