"""What `./run test` runs: stages with a budget each, in lanes that go beside one another.

A lane is a list of stages one after another. Lanes that mostly wait for real daemons go beside one another; the rows
keep both processors busy alone, and the simulator loses packets when a third lane goes beside two. Budgets in minutes:
install 4, first block 10, second block 16, RDMA guests 7 (design §8 has 4.5, 8 and 3: thousands of tests on rows, the
faults and emulated guests need more).
"""

import sys
from dataclasses import dataclass, field

PYTHON = sys.executable
PYTEST = (PYTHON, "-m", "pytest")


@dataclass(frozen=True)
class Stage:
    """Commands run one after another until one fails; `budget_s` is its share of the whole."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    budget_s: int
    postgresql: bool = False  # runs with DATABASE_URL naming a private PostgreSQL
    junit: bool = False  # its last command is pytest and reports skipped tests
    simulated: bool = False  # rests on the simulated fabric: what failed is tried once more by itself (ADR 37)
    environment: dict[str, str] = field(default_factory=dict)


LINT = Stage(
    "lint",
    (
        (PYTHON, "-m", "ruff", "check", "."),
        (PYTHON, "-m", "ruff", "format", "--check", "."),
        (PYTHON, "manage.py", "makemigrations", "--check", "--dry-run"),
        (PYTHON, "manage.py", "check"),
        (PYTHON, "manage.py", "vendor", "--check"),
    ),
    60,
)
CONTRACTS = Stage("contracts of the house", ((str(PYTHON).replace("python", "lint-imports"),),), 60)
TYPES = Stage("types", ((PYTHON, "-m", "mypy", "."),), 180)
UNIT = Stage(
    "unit, property, rows on SQLite",
    ((*PYTEST, "tests", "-n", "2", "-m", "not contract and not browser and not pg and not rdma"),),
    600,
    junit=True,
)
CONTRACT_LAB = Stage(
    "contract: OpenSM and the lab",
    ((*PYTEST, "tests/lab", "-m", "contract and not browser"),),
    240,
    junit=True,
    simulated=True,
)
_FAULTS = "tests/end_to_end/test_faults.py"
FAULTS = Stage("contract: faults on the lab", ((*PYTEST, _FAULTS, "-m", "contract"),), 240, junit=True, simulated=True)
CONTRACT = Stage(
    "contract: two real OpenSM",
    ((*PYTEST, "tests", "--ignore=tests/lab", f"--ignore={_FAULTS}", "-m", "contract and not browser"),),
    840,
    junit=True,
    simulated=True,
)
ONCE = Stage("demo --once from the users' lock", ((PYTHON, "-m", "tests.once_from_lock"),), 120)
BROWSER = Stage(
    "browser: pages, axe, one move", ((*PYTEST, "tests", "-m", "browser"),), 480, junit=True, simulated=True
)
RDMA = Stage("RDMA guests", ((*PYTEST, "tests", "-m", "rdma"),), 400, junit=True, simulated=True)
POSTGRESQL = Stage("rows on PostgreSQL", ((*PYTEST, "tests", "-m", "pg"),), 120, postgresql=True, junit=True)

BLOCKS: tuple[tuple[tuple[Stage, ...], ...], ...] = (
    ((LINT, CONTRACTS, TYPES), (UNIT,)),
    ((POSTGRESQL, BROWSER), (CONTRACT_LAB, CONTRACT, ONCE, FAULTS)),  # one computes, the other waits for daemons
    ((RDMA,),),  # alone: both processors emulate
)
