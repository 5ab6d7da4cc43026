"""A loopback TCP relay that hands every byte on late: a slow management network. Also the way through a TLS door.

Run as `python -m lab.relay ADDRESS PORT TARGET_PORT DELAY_MS`; it ends with the supervisor.
"""

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable

Connection = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: float) -> None:
    """Hand on what is read, each piece `delay_s` after it came, and then the end."""
    late: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(maxsize=256)
    clock = asyncio.get_running_loop().time

    async def deliver() -> None:
        while True:
            due, piece = await late.get()
            await asyncio.sleep(max(0.0, due - clock()))
            if not piece:
                break
            writer.write(piece)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
        else:  # TLS cannot end one direction alone
            writer.close()

    delivery = asyncio.create_task(deliver())
    with contextlib.suppress(ConnectionError):
        while piece := await reader.read(65536):
            await late.put((clock() + delay_s, piece))
    await late.put((clock() + delay_s, b""))
    with contextlib.suppress(ConnectionError):
        await delivery


def relaying(address: str, target_port: int, *, delay_s: float = 0.0) -> Connection:
    """What to do with each connection: hand it on to `target_port` of `address`, every piece `delay_s` late."""

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(address, target_port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pump(reader, far_writer, delay_s), _pump(far_reader, writer, delay_s))
        for end in (writer, far_writer):
            end.close()

    return relay


async def serve(address: str, port: int, target_port: int, delay_ms: int) -> None:
    """Relay `address`:`port` to `target_port` of the same address until killed."""
    server = await asyncio.start_server(relaying(address, target_port, delay_s=delay_ms / 1000), address, port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))
