"""What `./run test` runs: stages with a budget each, in lanes that go beside one another.

A lane is a list of stages one after another. The waiting lane mostly waits for real daemons, so it goes beside the
lane that computes. Budgets in minutes: install 4, first block 8, second block 12, RDMA guests 5 (design §8 has 4.5,
8 and 3: thousands of tests on rows, the faults and emulated guests need more).
"""

import sys
from dataclasses import dataclass, field

PYTHON = sys.executable
PYTEST = (PYTHON, "-m", "pytest", "-p", "no:cacheprovider")


@dataclass(frozen=True)
class Stage:
    """Commands run one after another until one fails; `budget_s` is its share of the whole."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    budget_s: int
    postgresql: bool = False  # runs with DATABASE_URL naming a private PostgreSQL
    junit: bool = False  # its last command is pytest and reports skipped tests
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
    480,
    junit=True,
)
CONTRACT = Stage("contract: two real OpenSM", ((*PYTEST, "tests", "-m", "contract and not browser"),), 600, junit=True)
ONCE = Stage("demo --once from the users' lock", ((PYTHON, "-m", "tests.once_from_lock"),), 120)
BROWSER = Stage("browser: pages, axe, one move", ((*PYTEST, "tests", "-m", "browser"),), 330, junit=True)
RDMA = Stage("RDMA guests", ((*PYTEST, "tests", "-m", "rdma"),), 300, junit=True)
POSTGRESQL = Stage("rows on PostgreSQL", ((*PYTEST, "tests", "-m", "pg"),), 120, postgresql=True, junit=True)

BLOCKS: tuple[tuple[tuple[Stage, ...], ...], ...] = (
    ((LINT, CONTRACTS, TYPES), (UNIT,)),
    ((CONTRACT, ONCE), (POSTGRESQL, BROWSER)),
    ((RDMA,),),  # alone: both processors emulate
)
