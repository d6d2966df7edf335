"""usage: mcp_hub.py PATH COMMAND: while the command runs, whoever comes to this UNIX socket says a line with the number of a port
on loopback, and is led there."""
import asyncio
import sys


async def copy(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


async def led(reader, writer):
    port = int(await reader.readline())
    for host in ("127.0.0.1", "::1"):
        try:
            there, here = await asyncio.open_connection(host, port)
        except OSError:
            continue
        await asyncio.gather(copy(reader, here), copy(there, writer))
        return
    writer.close()


async def main(path, command):
    async with await asyncio.start_unix_server(led, path):
        return await (await asyncio.create_subprocess_shell(command)).wait()

sys.exit(asyncio.run(main(*sys.argv[1:])))
