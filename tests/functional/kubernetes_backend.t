#!/usr/bin/python3 -B
"""Sandboxes that are pods of a cluster (`backend: kubernetes`), in a real Kubernetes: made, used and deleted by the API, the
command, Python's SDK and Deep Agents as those of any backend; behind their node's gate, and not at all where there is none.

`make kubernetes-test KUBERNETES=FOLDER` runs it: DURWARD_KUBERNETES names the folder of Kubernetes' programs."""
import json
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, engine, kubernetes, scan, scene, tap, terminal  # noqa: E402

try:
    import yaml
except ImportError:
    yaml = None

SCRIPTS = os.path.join(durward.SUITE, "clients", "agents")
GET = "curl -sS -m 10 -o /dev/null -w '%%{http_code}' %s 2>/dev/null"
PODS = "/api/v1/namespaces/%s/pods"
SIGNAL = 1  # a frame


def account(t, c):
    """As the manifest has it: the namespace, and a token that may do no more than what the backend does."""
    with open(os.path.join(durward.TOP, "deploy/kubernetes/sandboxes.yaml")) as f:
        objects = list(yaml.safe_load_all(f))
    code, said = c.apply(*objects)
    t.eq(code, 0, "the API server takes namespace, account and role") or t.diag(said)
    code, said = tap.wait_for(lambda: (lambda r: r if r[0] == 0 else None)(c.kubectl(
        "create", "token", "durward-sandboxes", "-n", "agents")), 20, 0.2) or (1, "")
    return t.write("cluster/token", said, 0o400)


def own_image(c):
    """Durward's own image, as far as a pod needs it."""
    init = os.path.join(os.path.dirname(os.path.dirname(durward.program())), "libexec/durward/durward-init")
    c.take(kubernetes.image("localhost/durward:1", engine.rootfs(files=[("usr/libexec/durward/durward-init", init)]), ["/bin/sh"]))


def pods(c, namespace="agents"):
    return {p["metadata"]["name"]: p for p in c.items(PODS % namespace)}


def keepers():
    found = {}
    for pid, _ in tap.descendants():
        try:
            with open("/proc/%d/cmdline" % pid, "rb") as f:
                if f.read().startswith(b"durward: cluster\0"):
                    with open("/proc/%d/stat" % pid) as g:
                        found[pid] = int(g.read().rpartition(")")[2].split()[1])
        except OSError:
            pass
    return [pid for pid, parent in found.items() if parent not in found]


def shape(t, c, a, box):
    p = pods(c)[box]
    spec = p["spec"]
    t.eq((p["metadata"]["labels"]["durward.internal/policy"], [x["image"] for x in spec["containers"]]), ("coder", ["localhost/agent:1"]),
         "a sandbox is a pod of that name, with its policy's image and its policy as a label")
    mounts = [m["name"] for x in spec["containers"] for m in x["volumeMounts"]]
    t.eq((spec["automountServiceAccountToken"], spec["nodeSelector"], sorted(mounts)), (False, {
        "node-restriction.kubernetes.io/durward": "ready"}, ["durward", "init", "tmp", "var-tmp", "workspace"]),
        "it has no token of the API server, and asks for a node with Durward")
    t.eq(spec["containers"][0]["resources"]["limits"], {"memory": "268435456"}, "the policy's limits are its own")
    t.eq(a.sh(box, "id -u; pwd; echo $HOME; cat /proc/1/cmdline | tr '\\0' ' '; touch /x 2>/dev/null || echo closed; grep -E "
              "'^(CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t'"),
         (0, b"1000\n/workspace\n/workspace\n/run/durward/init pod wait closed\nCapBnd:0000000000000000\nNoNewPrivs:1\nSeccomp:2\n"),
         "no root, no capability, nothing to write but what is its own")


def commands(t, a, box):
    r = a.exec(box, "echo out; echo err >&2; exit 7", split=True)
    t.eq((r["exit_code"], r["stdout"], r["stderr"]), (7, "out\n", "err\n"), "exec: both outputs and the exit status")
    t.eq(a.exec(box, "echo a; echo b >&2; echo c")["output"], "a\nb\nc\n", "both as one, in their order")
    t.eq(a.exec(box, "cat; wc -c", stdin="of the caller")["output"], "of the caller0\n", "its input, and its end")
    t.eq(a.exec(box, "printf %s \"$A-$B\"", env={"A": "a b", "B": "'$(id)'\n%41&"})["output"], "a b-'$(id)'\n%41&", "its environment, byte for byte")
    r = a.ask("POST", "/v1/sandboxes/%s/exec" % box, {"argv": ["no-such-program"]})
    t.ok(r["exit_code"] == 127 and "no-such-program" in r["message"], "a command that there is not", str(r))
    r = a.exec(box, "exec sleep 77", timeout=1)
    t.eq((r["timed_out"], a.sh(box, "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep 7[7]'")), (True, (1, b"0\n")), "one that takes too long is killed in the pod")
    t.eq(len(a.sh(box, "head -c %d /dev/zero" % (3 << 20), max_output=4 << 20)[1]), 3 << 20, "3 MiB of output arrive")
    t.eq(a.exec(box, "echo '%s' | wc -c" % ("x" * 60000))["output"].strip(), "60001", "a command of 60 kB")
    f = a.frames(box, command="read a; echo got $a; read b || echo end")
    f.send(0, b"one\n")
    f.send(0)
    out, _, last = f.finish()
    t.eq((out, last["exit_code"]), (b"got one\nend\n", 0), "input that comes while it runs, and its end")


def processes():
    """Those of the keepers, each with how many filters it has: a follower, and two a command."""
    found = {}
    for pid, _ in tap.descendants():
        try:
            with open("/proc/%d/status" % pid) as f:
                text = f.read()
        except OSError:
            continue
        if text.startswith("Name:\tdurward-cluster\n"):
            found[pid] = int(re.search(r"Seccomp_filters:\t(\d+)", text).group(1))
    return found


def begun(f):
    while f.receive()[1] != b"begun\n":
        pass


def floods(t, a, box):
    """What a client asks is bounded; who carries what the pod says has nothing but what it carries."""
    f = a.frames(box, command="exec 2>/dev/null; trap 'n=$((n+1))' USR1; trap 'echo $((n>0)); exit 9' TERM; echo begun; while :; do sleep 0.1; done")
    begun(f)
    before = processes()
    for _ in range(400):
        f.send(SIGNAL, bytes([signal.SIGUSR1]))
    f.send(SIGNAL, bytes([signal.SIGTERM]))
    most, out, end = 0, b"", time.monotonic() + 60
    while b"\n" not in out and time.monotonic() < end:
        most = max(most, len(processes()))
        f.sock.settimeout(0.01)
        try:
            out += f.receive()[1]
        except TimeoutError:
            pass
    f.sock.settimeout(30)
    t.ok(most <= len(before), "400 signals at once are sent by one process", most, before)
    if not t.eq(out, b"1\n", "and arrive, in their order"):
        f.close()
        return
    t.eq(f.finish()[2]["exit_code"], 9, "and the command ends by what it does about them")
    f = a.frames(box, command="echo begun; read x")
    begun(f)
    filters = sorted(processes().values())
    t.eq(filters[1:], [filters[0] + 1, filters[0] + 1, filters[0] + 2],
         "who asks the API server is behind a filter, and who carries a command's bytes behind one more")
    f.send(0, b"x\n")
    f.finish()


def at_terminal(t, d, box):
    p = terminal.Terminal(t, [durward.program(), "sandbox", "exec", "-i", "-t", "--socket", d.socket, box, "--", "/bin/sh", "-c",
                              "stty size; read x; echo said $x; i=0; while [ $i -lt 50 ] && [ \"$(stty size)\" != '40 99' ]; do i=$((i+1)); sleep 0.1; "
                              "done; stty size"], d.work, d.env, rows=33, cols=77)
    t.ok(p.see("33 77", 20), "durward sandbox exec -t: a terminal in the pod, of the caller's size", p.out)
    p.size(40, 99)
    p.type("yes\r")
    t.ok(p.see("said yes", 20) and p.see("40 99", 20), "what is typed arrives, and so does a new size", p.out)


def files(t, a, box):
    data = bytes(range(256)) * 4096
    a.write(box, "/workspace/new/dir/f", data)
    t.ok(a.read(box, "/workspace/new/dir/f") == data, "a file is written, with the folders above it, and read byte for byte")
    t.eq(api.refused(a.read, box, "/workspace/none"), (404, "file_not_found"), "one that there is not")
    t.eq(api.refused(a.write, box, "/usr/x", b"x")[0] // 100, 4, "one that may not be written")
    t.eq([e["name"] for e in a.entries(box, "/workspace/new/dir")["entries"]], ["f"], "a directory is listed")
    a.remove(box, "/workspace/new", recursive="true")
    t.eq(a.sh(box, "ls /workspace"), (0, b""), "a tree is deleted")


def ways(t, s, a, box):
    text = a.exec(box, "curl -sS -m 10 https://api.github.com/user; echo; echo $GITHUB_TOKEN")["output"]
    t.has(text, '"login": "octo"', "curl has the credential put in, by the node's gate")
    t.ok(re.search(r"ghp_\w+", text) and s.github_secret.decode() not in text, "the environment has the gate's placeholder", text)
    codes = {u: a.exec(box, GET % ("-k " + u))["output"] for u in ("https://api.github.com/gists", "https://10.96.0.1/version", "http://192.0.2.10:6443/")}
    t.ok(set(codes.values()) <= {"403", "000"}, "what no rule allows is refused, the API server too", str(codes))
    t.has(a.exec(box, "curl -sS -m 5 https://other.example.net/ 2>&1; true")["output"], "Could not resolve", "a name of no rule does not resolve")
    denied = tap.wait_for(lambda: [r for r in s.d.kinds("denied") if r.get("path") == "/gists"], 5, 0.1) or []
    rows = {r["id"]: r for r in a.list()["sandboxes"]}
    gates = [i for i, r in rows.items() if r["labels"].get("kubernetes.pod") == box]
    t.ok(denied and denied[0].get("sandbox") in gates, "a refused host is on the node's record, of the gate whose pod it is", str(denied)[:400])


def outside(t, s, c, a, box, token):
    s.scanner.search(a.exec(box, "env; cat /etc/durward/* /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'")["output"], "the pod")
    s.scanner.search(c.kubectl("get", "pods,events", "-A", "-o", "yaml")[1], "the API server")
    before = s.scanner.bytes
    own = scan.Scanner(token=token.encode())
    for pid, _ in tap.descendants():
        try:
            with open("/proc/%d/cgroup" % pid) as f:
                if "kubepods" not in f.read():
                    continue
            scan.scan_process(pid, s.scanner, "process %d of a pod" % pid)
            scan.scan_process(pid, own, "process %d of a pod" % pid)
        except (FileNotFoundError, ProcessLookupError):
            pass
    t.ok(s.scanner.bytes > before, "the pods' memory was read")
    t.ok(not s.scanner.hits and not own.hits, "0 copies of a secret in the pod, nor of the token that made it",
         *["%s as %s in %s" % h for h in s.scanner.hits + own.hits])


def lacks(t, a, box):
    for what, path, body in (("pause", "/sandboxes/%s/pause" % box, {}), ("a fork", "/sandboxes/%s/fork" % box, {}),
                             ("a snapshot", "/snapshots", {"sandbox": box, "name": "x"})):
        said = api.refused(a.ask, "POST", "/v1" + path, body)
        t.ok(said and said[1] in ("unsupported", "not_kept"), "%s is not to be had: %s" % (what, said))
    said = api.refused(a.create, policy="coder", volumes=["v:/v"])
    t.ok(said and said[0] // 100 in (4, 5), "nor is a volume of Durward's: %s" % (said,))


def ports(t, s, a, box):
    a.exec(box, "(python3 -m http.server 8080 --directory /etc >/dev/null 2>&1 &) ; i=0; "
                "until grep -q ' [0-9A-F]*:1F90 .* 0A ' /proc/net/tcp || [ $i -ge 200 ]; do i=$((i + 1)); sleep 0.1; done")
    sock, held = a.upgrade("/v1/sandboxes/%s/forward?port=8080" % box, "durward-forward")
    sock.sendall(b"GET /passwd HTTP/1.0\r\n\r\n")
    got = held
    while True:
        more = sock.recv(65536)
        if not more:
            break
        got += more
    sock.close()
    t.has(got.decode("latin-1"), "root:x:0:0", "a port inside is reached, and its end is heard")


def refused(t, s, c, a):
    """No pod runs without its gate, or with another policy's."""
    for policy, word in (("open", "no gate of Durward"), ("other", "not of the policy other")):
        try:
            a.create(policy=policy)
            t.ok(False, "a sandbox of %s is refused" % policy)
        except api.Refused as e:
            t.ok(word in str(e), "a pod of a namespace %s does not start, and it is said why" % (
                "that is left alone" if policy == "open" else "of another policy"), str(e))
    t.ok(tap.wait_for(lambda: not pods(c, "open") and not pods(c, "reviewers"), 20, 0.2), "and nothing of them is left")
    try:
        a.create(policy="coder", image="localhost/none:1")
        t.ok(False, "an image that there is not is refused")
    except api.Refused as e:
        t.has(str(e), "localhost/none:1", "an image that there is not: it is said which")


def clients(t, s, a):
    d = s.d
    r = d.command("sandbox", "create", "--policy", "coder", "--label", "job=7", "--ttl", "10m", "--socket", d.socket)
    box = r.stdout.strip()
    t.ok(r.returncode == 0 and box.startswith("sb-"), "durward sandbox create", r.stderr)
    r = d.command("sandbox", "exec", "--socket", d.socket, box, "--", "sh", "-c", "echo out; echo err >&2; exit 5")
    t.eq((r.returncode, r.stdout, r.stderr), (5, "out\n", "err\n"), "durward sandbox exec: both outputs and the status")
    t.has(d.command("sandbox", "ls", "--socket", d.socket).stdout, "kubernetes", "durward sandbox ls names the backend")
    t.eq([x["id"] for x in a.list("?label=job%3D7")["sandboxes"]], [box], "it is found by its label")
    t.eq(d.command("sandbox", "rm", "--socket", d.socket, box).returncode, 0, "durward sandbox rm")
    python = os.path.join(durward.clients_dir(), "agents", "bin", "python")
    if not os.path.exists(python):
        t.skip("Deep Agents and Python's SDK on a pod", "%s is missing: tests/functional/clients/setup" % python)
        return
    text = ("import json\nfrom durward import Durward\nfrom durward_deepagents import DurwardSandbox\n"
            "with Durward().create('coder', ttl=600) as b:\n"
            "    r = b.exec('echo of python; exit 3')\n    b.write('/workspace/a', b'x')\n"
            "    sdk = [r.exit_code, r.output.decode() if isinstance(r.output, bytes) else r.output, b.read('/workspace/a').decode()]\n"
            "with DurwardSandbox.create('coder') as box:\n"
            "    box.upload_files([('/workspace/f.txt', b'one\\ntwo\\n')])\n"
            "    got = [box.execute('cat f.txt; exit 4').exit_code, box.download_files(['/workspace/f.txt'])[0].content.decode(),\n"
            "           box.execute('curl -sS https://api.github.com/user').output]\n"
            "print(json.dumps([sdk, got]))\n")
    r = subprocess.run([python, "-B", "-c", text], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90, cwd=d.work,
                       env={**d.env, "PYTHONPATH": os.path.join(durward.TOP, "sdk", "python", "src"), "PYTHONDONTWRITEBYTECODE": "1",
                            "DURWARD_SOCKET": d.socket, "LANGSMITH_TRACING": "false"})
    if not t.eq(r.returncode, 0, "Python's SDK and Deep Agents' backend run unchanged"):
        t.diag(r.stderr[-3000:])
        return
    sdk, got = json.loads(r.stdout.strip().splitlines()[-1])
    t.eq(sdk, [3, "of python\n", "x"], "the SDK: a command, a file")
    t.eq(got[:2], [4, "one\ntwo\n"], "Deep Agents' backend: upload, execute, download")
    t.has(got[2], '"octo"', "its command has the credential put in")


def deaths(t, s, c, a, box):
    for pid in [p for p, r in s.d.roles() if r == "controller"]:
        os.kill(pid, signal.SIGKILL)
    t.ok(tap.wait_for(lambda: works(a, box), 20, 0.3), "kill -9 of the controller: the next one takes the sandbox over", s.d.diagnostics())
    c.kubectl("delete", "pod", "-n", "agents", box, "--now")
    t.ok(tap.wait_for(lambda: a.show(box)["state"] == "stopped", 20, 0.2), "a pod that the cluster ends ends the sandbox")
    a.delete(box)


def works(a, box):
    try:
        return a.exec(box, "echo here")["output"] == "here\n"
    except (api.Refused, OSError, ValueError, KeyError):
        return False


def undertakers():
    return [pid for pid, _ in tap.descendants() if comm(pid) == "durward-clend"]


def comm(pid):
    try:
        with open("/proc/%d/comm" % pid) as f:
            return f.read().strip()
    except OSError:
        return ""


def orphans(t, s, c, a, box):
    """A keeper that is killed leaves a pod, which goes with it; where who sees to that is killed too, the next one removes it."""
    os.kill(keepers()[0], signal.SIGKILL)
    t.ok(tap.wait_for(lambda: a.show(box)["state"] == "stopped", 20, 0.2), "kill -9 of the keeper ends the sandbox")
    t.ok(tap.wait_for(lambda: box not in pods(c) and not undertakers(), 20, 0.2), "and its pod", str(list(pods(c))))
    a.delete(box)
    box = a.create(policy="coder")["id"]
    for pid in undertakers() + keepers()[:1]:
        os.kill(pid, signal.SIGKILL)
    t.ok(tap.wait_for(lambda: a.show(box)["state"] == "stopped", 20, 0.2) and box in pods(c), "both killed: the pod is left")
    swept = os.path.join(s.d.dir, "state", "cluster", ".swept")
    if os.path.exists(swept):
        os.utime(swept, (0, 0))
    other = a.create(policy="coder")["id"]
    t.ok(tap.wait_for(lambda: box not in pods(c), 20, 0.2), "its pod is removed by the next keeper", str(list(pods(c))))
    a.delete(box)
    a.delete(other)
    t.ok(tap.wait_for(lambda: not pods(c) and not keepers() and not undertakers(), 20, 0.2), "a deleted sandbox leaves no pod and no process",
         str(list(pods(c))))
    last = a.create(policy="coder")["id"]
    s.d.stop()
    t.ok(tap.wait_for(lambda: not pods(c), 30, 0.2), "with the daemon its pods end", last)


def bed(t):
    c = kubernetes.Cluster(t)
    if yaml is None:
        raise tap.Skip("python3-yaml is not there")
    token = account(t, c)
    own_image(c)
    s = scene.Scene(t)
    os.makedirs("/run/durward", 0o700)
    s.d.extra["node"] = {"namespaces": {"agents": "coder", "reviewers": "reader"}, "unbound": ["kube-system", "open"]}
    s.d.extra["cluster"] = {"api": "127.0.0.1:6443", "ca": c.ca.pem, "token": token, "image": "localhost/durward:1"}
    place = {"backend": "kubernetes", "kubernetes": {"namespace": "agents", "image": "localhost/agent:1"}}
    s.d.policies["coder"]["sandbox"] = dict(place, memory="256MiB")
    s.d.policy("reader", [])
    for name, ns in (("open", "open"), ("other", "reviewers")):
        s.d.policy(name, [])
        s.d.policies[name]["sandbox"] = {"backend": "kubernetes", "kubernetes": {"namespace": ns, "image": "localhost/agent:1"}}
    for name in ("open", "reviewers"):
        c.namespace(name)
        for kind in ("role", "rolebinding"):
            code, said = c.kubectl("get", kind, "durward-sandboxes", "-n", "agents", "-o", "json")
            copy = json.loads(said)
            copy["metadata"] = {"name": "durward-sandboxes", "namespace": name}
            c.apply(copy)
    c.kubectl("label", "node", kubernetes.NODE, "node-restriction.kubernetes.io/durward=ready")
    s.d.serve()
    a = api.Api(s.d.socket, timeout=150)
    return c, s, a


def test(t):
    c, s, a = bed(t)
    box = a.create(policy="coder", env={"OWN": "1"})["id"]
    t.part(shape, t, c, a, box)
    t.part(commands, t, a, box)
    t.part(floods, t, a, box)
    t.part(at_terminal, t, s.d, box)
    t.part(files, t, a, box)
    t.part(ways, t, s, a, box)
    t.part(ports, t, s, a, box)
    t.part(lacks, t, a, box)
    with open(s.d.extra["cluster"]["token"]) as f:
        t.part(outside, t, s, c, a, box, f.read().strip())
    t.part(clients, t, s, a)
    t.part(refused, t, s, c, a)
    t.part(deaths, t, s, c, a, box)
    t.part(orphans, t, s, c, a, a.create(policy="coder")["id"])
    s.clean(what="pods of the daemon's")


tap.run(test, timeout=280)
