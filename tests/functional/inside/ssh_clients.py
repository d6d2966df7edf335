"""Clients of SSH for Python as programs use them; the environment is that of tests/functional/ssh_clients.t. argv: which. Says "ok"."""
import os
import sys
import tempfile

HOST, PORT, USER, KEY, KNOWN, UP, READ = (os.environ.get("SSH_" + x, "") for x in ("HOST", "PORT", "USER", "KEY", "KNOWN", "UP", "READ"))
INSIDE = os.environ["SSH_REFUSED"] == "1"


def connect(**how):
    import paramiko
    c = paramiko.SSHClient()
    c.load_host_keys(KNOWN)
    c.set_missing_host_key_policy(paramiko.RejectPolicy())
    c.connect(HOST, int(PORT), USER, allow_agent=False, look_for_keys=False, **how)
    return c


def login():
    return {"password": "placeholder"} if INSIDE else {"key_filename": KEY}


def with_scp():
    """scp.py: the protocol of old."""
    import scp
    at = tempfile.mkdtemp()
    with open(at + "/it is", "wb") as f:
        f.write(bytes(range(256)) * 5000)
    with scp.SCPClient(connect(**login()).get_transport()) as s:
        s.put(at + "/it is", UP + "/it's", preserve_times=True)
        s.get(UP + "/it's", at + "/back", preserve_times=True)
        s.get(READ + "/deep", at + "/deep", recursive=True)
        s.put(at + "/deep", UP + "/scp.py", recursive=True)
    with open(at + "/it is", "rb") as f, open(at + "/back", "rb") as g:
        assert f.read() == g.read()
    assert os.path.exists(at + "/deep/er/three.txt"), os.listdir(at + "/deep")


def with_paramiko():
    """A program that logs in with a key, whichever it has."""
    import paramiko
    how = {"key_filename": KEY}
    if INSIDE:
        how = {"pkey": paramiko.RSAKey.generate(2048)}
    c = connect(**how)
    _, out, _ = c.exec_command("echo hello world")
    assert out.read() == b"hello world\n" and out.channel.recv_exit_status() == 0
    _, out, _ = c.exec_command("exit 7")
    assert out.channel.recv_exit_status() == 7
    stdin, out, _ = c.exec_command("wc -c")
    stdin.write(b"x" * 1000000)
    stdin.channel.shutdown_write()
    assert out.read().strip() == b"1000000"
    if INSIDE:
        _, out, err = c.exec_command("id")
        assert out.channel.recv_exit_status() == 128 and b"denied" in err.read()
    c.close()


def with_git():
    """libgit2, which logs in with what it is given."""
    import pygit2
    at = tempfile.mkdtemp()

    class Calls(pygit2.RemoteCallbacks):
        refused = None

        def credentials(self, url, user, allowed):
            return pygit2.UserPass(user, "placeholder") if INSIDE else pygit2.Keypair(user, KEY + ".pub", KEY, "")

        def certificate_check(self, certificate, valid, host):
            return True

        def push_update_reference(self, name, message):
            self.refused = message
    url = "ssh://%s@%s:%s%s" % (USER, HOST, PORT, os.environ["SSH_REPO"])
    repo = pygit2.clone_repository(url, at + "/r", callbacks=Calls())
    who = pygit2.Signature("T", "t@example.com")
    repo.create_commit("HEAD", who, who, "by libgit2", repo.head.peel().tree.id, [repo.head.target])
    calls = Calls()
    repo.remotes["origin"].push(["+HEAD:refs/heads/agent/libgit2"], callbacks=calls)
    assert calls.refused is None, calls.refused
    repo.remotes["origin"].fetch(callbacks=Calls())
    assert repo.references["refs/remotes/origin/agent/libgit2"].target == repo.head.target
    calls = Calls()
    repo.remotes["origin"].push(["+HEAD:refs/heads/libgit2"], callbacks=calls)
    assert ("durward" in (calls.refused or "")) == INSIDE, calls.refused


{"scp": with_scp, "paramiko": with_paramiko, "git": with_git}[sys.argv[1]]()
print("ok")
