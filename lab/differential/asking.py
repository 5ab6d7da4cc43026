"""Asking the real OpenSM about many examples, some at a time."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import batched
from queue import SimpleQueue

from lab.differential.fabric import SM_PORT, net_text
from lab.differential.generator import Example
from lab.oracle import Oracle, OracleAnswer

_BATCH = 64  # how many answers are waited for together


def asked(examples: Iterable[Example], *, workers: int) -> Iterator[tuple[Example, OracleAnswer]]:
    """Each example with OpenSM's answer, in order; `workers` simulators at a time.

    Raises LabError as soon as one example got no whole answer.
    """
    with ExitStack() as stack:
        free: SimpleQueue[Oracle] = SimpleQueue()
        for _ in range(workers):
            free.put(stack.enter_context(Oracle(net_text())))

        def ask(example: Example) -> OracleAnswer:
            oracle = free.get()
            try:
                return oracle.run(example.data, sm_port=SM_PORT, options=example.options)
            finally:
                free.put(oracle)

        pool = stack.enter_context(ThreadPoolExecutor(workers))
        for some in batched(examples, _BATCH):
            yield from zip(some, pool.map(ask, some), strict=True)
