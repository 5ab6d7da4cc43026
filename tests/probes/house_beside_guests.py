"""A house with two servers around RDMA guests that run already; a program, because Django has the tests' database.

`python -m tests.probes.house_beside_guests FOLDER GUESTS` prints one JSON line once the guests are a probe set that is
probed, and ends when its input does.
"""

import json
import sys
import time
from dataclasses import replace
from pathlib import Path

from lab import data_plane
from lab.free_ports import free_port
from lab.guests.guests import Guests, probe_key_file
from lab.house import House
from lab.site import Site


def main(folder: Path, guests: Path) -> None:
    with Site.up(folder / "lab", servers=2, hcas=1, owned=True) as site:
        house = House(
            folder=folder, site=site, web_port=free_port(), register_port=free_port(),
            probe_key=probe_key_file(guests),
        )  # fmt: skip
        try:
            house.start()
            # The demo's own interval, and as little work as there is: other tests may share the processors.
            settings = replace(data_plane.scope_settings(), profiles=("link",), bytes_per_run=1 << 20)
            scope = data_plane.furnish(house, Guests.attach(guests), settings=settings)
            sys.stdout.write(json.dumps(_facts(house, scope) | {"begun": time.time()}) + "\n")
            sys.stdout.flush()
            sys.stdin.read()
        finally:
            house.stop()


def _facts(house, scope):
    return {
        "url": house.url, "password": house.operator_password, "scope": data_plane.scope_url(house, scope),
        "database": str(house.folder / "fabricui.sqlite3"), "tree": house.tree.pid,
    }  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
