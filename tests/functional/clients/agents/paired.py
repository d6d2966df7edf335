"""pair() with a backend that is no sandbox of ours: commands run in a plain process, in a network
namespace if one is given. Asked by one line of JSON, answers with one."""
import asyncio
import json
import os
import subprocess
import sys
import time
import warnings

from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
from deepagents.backends.sandbox import BaseSandbox

from durward_deepagents import BypassWarning, PairedSandbox, PairingError, pair
from durward_deepagents.pairing import ELSEWHERE


class Plain(BaseSandbox):
    id = "plain"

    def __init__(self, namespace=None):
        self.prefix = ["ip", "netns", "exec", namespace] if namespace else []
        self.commands = []

    def execute(self, command, *, timeout=None):
        self.commands.append(command)
        r = subprocess.run(self.prefix + ["env", "-i", "PATH=/usr/bin:/bin", "HOME=/nonexistent", "sh", "-c", command],
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           timeout=timeout or 60)
        return ExecuteResponse(output=r.stdout.decode("utf-8", "replace"), exit_code=r.returncode)

    def upload_files(self, files):
        for path, data in files:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(data)
        return [FileUploadResponse(path=path) for path, _ in files]

    def download_files(self, paths):
        return [FileDownloadResponse(path=p, content=open(p, "rb").read()) for p in paths]


def shown(p):
    v = p.verification
    return {"gate": v.through_gate, "around": v.around, "detail": v.detail}


USER = "curl -sS -m 10 https://api.github.com/user"


def failed(fn):
    try:
        fn()
    except PairingError as e:
        return str(e)
    return None


def refused(fn):
    """What could not be tried is an error before anything is issued."""
    try:
        fn()
    except ValueError as e:
        return "elsewhere" in str(e)
    return False


def useless(backend):
    try:
        pair(backend)
    except TypeError as e:
        return str(e)
    return None


def main():
    ask = json.loads(sys.argv[1])
    kw = {"policy": "coder", "proxy_host": ask.get("proxy_host")}
    out, plain = {}, Plain(ask.get("namespace"))
    out["useless"] = [useless(x) for x in (object(), None, Plain)]
    out["bare"] = plain.execute(USER).exit_code
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        p = pair(plain, elsewhere=ask["elsewhere"], folder=ask["folder"], **kw)
    out["warned"] = [str(w.message) for w in told if w.category is BypassWarning]
    out["seen"] = shown(p)
    out["user"] = p.execute(USER).output
    out["async"] = asyncio.run(p.aexecute(USER)).output
    out["python"] = p.execute("python3 -c \"import urllib.request as u; "
                              "print(u.urlopen('https://api.github.com/user').read())\"").output
    out["denied"] = p.execute("curl -sS -o /dev/null -w '%{http_connect}' https://evil.example.com/").output
    out["heredoc"] = p.execute("cat <<'E'\nit's $HOME\nE\n").output
    out["env"] = p.execute("env").output
    out["files"] = [p.write(ask["folder"] + "-work/a", "one").error, p.read(ask["folder"] + "-work/a").file_data["content"]]
    out["token"], out["commands"] = p.identity.token, plain.commands
    os.rename(ask["folder"] + "/env", ask["folder"] + "/away")
    gone = p.execute("echo ran")
    out["gone"] = [gone.exit_code != 0, "ran" in gone.output]
    os.rename(ask["folder"] + "/away", ask["folder"] + "/env")
    token = p.identity.token
    p.close()
    p.close()
    out["closed"] = [p.execute("echo ran").output, os.path.exists(ask["folder"])]
    out["after"] = token

    out["locked"] = failed(lambda: pair(plain, elsewhere=ask["elsewhere"], folder=ask["folder"], require_lock=True, **kw))
    out["left"] = os.path.exists(ask["folder"])
    out["untried"] = [refused(lambda e=e: pair(plain, elsewhere=e, require_lock=True, **kw))
                      for e in (["bogus"], ["tcp:1.1.1.1"], [], "tcp:1.1.1.1:443", ["udp:[::1:53"], [7])]
    out["nowhere"] = failed(lambda: pair(plain, elsewhere=[], **dict(kw, proxy_host=ask["closed"])))
    q = PairedSandbox(plain, ttl=2, **kw)
    first = q.identity
    for _ in range(100):  # a token of two seconds is made anew before a command
        answer = q.execute(USER).output
        if time.time() > first.expires + 0.5:
            break
        time.sleep(0.1)
    out["renewed"] = [q.identity.id != first.id, answer]
    q.close()
    q = PairedSandbox(plain, **kw)
    plain.execute("sed -i 's/sandbox:...../sandbox:AAAAA/' %s/env" % q.folder)
    out["stranger"] = q.verify([]).detail
    q.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pair(plain, elsewhere=ELSEWHERE if ask["namespace"] else ask["elsewhere"][1:], require_lock=True, **kw) as q:
            out["tight"] = shown(q)
    plain.execute("rm -rf '%s-work'" % ask["folder"])
    print(json.dumps(out))


main()
