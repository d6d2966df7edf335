"""paramiko's and AsyncSSH's clients of SFTP as programs use them. argv: which, host, user, a folder that may be read, one that may be
written and removed, one that may not be seen. Says "ok"."""
import asyncio
import io
import sys
import time

which, host, user, readable, writable, closed = sys.argv[1:]
data = bytes(range(256)) * 4000


def with_paramiko():
    import paramiko
    t = paramiko.Transport((host, 22))
    t.connect(username=user, password="placeholder")
    s = paramiko.SFTPClient.from_transport(t)
    assert sorted(s.listdir(readable)) == ["big", "deep", "inside", "one.txt"], s.listdir(readable)
    assert {a.filename: a.st_size for a in s.listdir_attr(readable)}["one.txt"] == 4
    assert s.open(readable + "/one.txt").read() == b"one\n"
    s.putfo(io.BytesIO(data), writable + "/p")  # which asks for its size afterwards
    got = io.BytesIO()
    s.getfo(writable + "/p", got)
    assert got.getvalue() == data
    s.posix_rename(writable + "/p", writable + "/q")
    s.truncate(writable + "/q", 10)
    assert s.stat(writable + "/q").st_size == 10
    with s.open(writable + "/q", "a") as f:
        f.write("more")
    assert s.open(writable + "/q").read() == data[:10] + b"more"
    s.mkdir(writable + "/pd")
    s.chdir(writable + "/pd")
    s.open("rel", "w").write("x")
    assert s.normalize(".") == writable + "/pd" and s.listdir() == ["rel"]
    s.remove("rel")
    s.rmdir(writable + "/pd")
    s.remove(writable + "/q")
    for what in (lambda: s.open(closed + "/secret"), lambda: s.listdir(closed), lambda: s.open(readable + "/one.txt", "w"),
                 lambda: s.symlink(closed, writable + "/l"), lambda: s.stat(closed + "/secret"),
                 lambda: s.open(readable + "/../" + closed.split("/")[-1] + "/secret"), lambda: s.chown(writable, 0, 0)):
        try:
            what()
        except (PermissionError, OSError) as e:
            assert "ermission" in str(e) or "durward" in str(e), e
        else:
            raise SystemExit("not refused")
    assert s.open(readable + "/one.txt").read() == b"one\n"
    t.close()


def held():
    """Asks for more than it ever takes, then for another name; stays until it is killed."""
    import paramiko
    from paramiko.sftp import CMD_READ, CMD_RENAME, int64
    t = paramiko.Transport((host, 22))
    t.connect(username=user, password="placeholder")
    s = paramiko.SFTPClient.from_transport(t)
    f = s.open(readable + "/large")
    for i in range(60):
        s._async_request(f, CMD_READ, f.handle, int64(i << 16), 1 << 16)
    s._async_request(f, CMD_RENAME, (writable + "/h1").encode(), (writable + "/h2").encode())
    open("/tmp/held", "w").close()
    time.sleep(60)


async def with_asyncssh():
    import asyncssh
    async with asyncssh.connect(host, username=user, password="placeholder", known_hosts="/etc/ssh/ssh_known_hosts") as c:
        async with c.start_sftp_client() as s:
            assert "one.txt" in await s.listdir(readable)
            async with s.open(writable + "/a", "wb") as f:
                await f.write(data)
            async with s.open(writable + "/a", "rb") as f:
                assert await f.read() == data
            await s.get(readable + "/deep", "/tmp/deep", recurse=True)
            assert open("/tmp/deep/er/two.txt").read() == "two\n"
            await s.put("/tmp/deep", writable + "/deep", recurse=True)
            assert await s.exists(writable + "/deep/er/two.txt")
            await s.rmtree(writable + "/deep")
            await s.remove(writable + "/a")
            for what in (lambda: s.open(closed + "/secret"), lambda: s.listdir(closed), lambda: s.open(readable + "/one.txt", "w")):
                try:
                    await what()
                except asyncssh.SFTPPermissionDenied:
                    pass
                else:
                    raise SystemExit("not refused")


if which == "paramiko":
    with_paramiko()
elif which == "held":
    held()
else:
    asyncio.run(with_asyncssh())
print("ok")
