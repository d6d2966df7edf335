"""paramiko or asyncssh, inside: forwards of an SSH connection. -> JSON: what each of the steps found.
usage: ssh_forward.py LIBRARY HOST USER ECHO REFUSED CLOSED SUM BRIEF (ports of 127.0.0.1 at the server)"""
import hashlib
import json
import sys

LIBRARY, HOST, USER = sys.argv[1:4]
ECHO, REFUSED, CLOSED, SUM, BRIEF = map(int, sys.argv[4:9])
SAID = b"0123456789" * 300000


def digest():
    return "%d %s" % (len(SAID), hashlib.sha256(SAID).hexdigest())


def with_paramiko():
    import paramiko
    found, told = {}, []
    transport = paramiko.Transport((HOST, 22))
    transport._parse_debug = lambda m: (m.get_boolean(), told.append(m.get_text()))
    transport.start_client(timeout=10)
    transport.auth_none(USER)

    def opened(port, host="127.0.0.1"):
        return transport.open_channel("direct-tcpip", (host, port), ("127.0.0.1", 1), timeout=10)

    def all_of(channel):
        channel.settimeout(20)
        got = b""
        while True:
            part = channel.recv(65536)
            if not part:
                return got
            got += part
    c = opened(ECHO)
    c.sendall(b"hello")
    c.settimeout(10)
    found["echo"] = c.recv(5).decode()
    c.close()
    c = opened(SUM)
    c.sendall(SAID)
    c.shutdown_write()
    found["half"] = all_of(c).decode().strip() == digest()
    c.close()
    c = opened(BRIEF)  # whose end comes first
    found["brief"] = all_of(c).decode()
    try:
        c.sendall(SAID)
        c.shutdown_write()
    except OSError as e:
        found["cut"] = str(e)
    c = opened(SUM)  # it says all, and goes at once
    c.sendall(SAID)
    c.close()
    try:
        opened(REFUSED)
        found["refused"] = "opened"
    except paramiko.ChannelException as e:
        found["refused"] = e.code
    c = opened(CLOSED)
    found["closed"] = all_of(c).decode()
    found["several"] = []
    held = []
    try:
        for _ in range(20):
            held.append(opened(ECHO))
    except paramiko.ChannelException:
        pass
    found["most"] = len(held)
    for i, c in enumerate(held):
        c.sendall(b"%d" % i)
        c.settimeout(20)
    found["several"] = [c.recv(5).decode() for c in held]
    held.pop().close()
    for _ in range(50):  # until that is gone
        try:
            held.append(opened(ECHO))
            break
        except paramiko.ChannelException:
            pass
    found["again"] = len(held)
    try:
        transport.open_channel("direct-streamlocal@openssh.com", timeout=10)
        found["local"] = "opened"
    except paramiko.ChannelException as e:
        found["local"] = e.code
    found["told"] = told
    transport.close()
    return found


async def with_asyncssh():
    import asyncssh
    found, told = {}, []

    class Client(asyncssh.SSHClient):
        def debug_msg_received(self, msg, lang, always_display):
            told.append(msg)
    c, _ = await asyncssh.create_connection(Client, HOST, username=USER, known_hosts=None, client_keys=None, agent_path=None,
                                            preferred_auth="none,publickey,password", password="x")
    reader, writer = await c.open_connection("127.0.0.1", ECHO)
    writer.write(b"hello")
    found["echo"] = (await reader.readexactly(5)).decode()
    writer.close()
    reader, writer = await c.open_connection("127.0.0.1", SUM)
    writer.write(SAID)
    writer.write_eof()
    found["half"] = (await reader.read()).decode().strip() == digest()
    writer.close()
    try:
        await c.open_connection("127.0.0.1", REFUSED)
        found["refused"] = "opened"
    except asyncssh.ChannelOpenError as e:
        found["refused"] = e.code
    reader, writer = await c.open_connection("127.0.0.1", CLOSED)
    found["closed"] = (await reader.read()).decode()
    listener = await c.forward_local_port("127.0.0.1", 0, "127.0.0.1", ECHO)
    import asyncio
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.get_port())
    writer.write(b"local")
    found["local"] = (await reader.readexactly(5)).decode()
    writer.close()
    for name, ask in (("back", lambda: c.forward_remote_port("", 0, "127.0.0.1", ECHO)), ("socket", lambda: c.open_unix_connection("/run/x"))):
        try:
            await ask()
            found[name] = "opened"
        except (asyncssh.ChannelListenError, asyncssh.ChannelOpenError) as e:
            found[name] = type(e).__name__
    found["told"] = told
    c.close()
    await c.wait_closed()
    return found


if LIBRARY == "paramiko":
    print(json.dumps(with_paramiko()))
else:
    import asyncio
    print(json.dumps(asyncio.run(with_asyncssh())))
