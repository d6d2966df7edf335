#!/usr/bin/python3 -B
"""`sandbox: { nested: true }`: containers inside by real programs, whose traffic is the sandbox's; what an attacker gets
who has namespaces of his own; what is refused. As root and as an ordinary user with ids of /etc/subuid."""
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, engine, person, registry, scan, scene, tap  # noqa: E402

NO = ("EPERM", "EACCES", "EINVAL", "EROFS", "ENOENT", "ENODEV")
HOST, IMAGES = "deps.example.com", "images.example.com"


def make(t):
    s = scene.Scene(t)
    for name, more in (("nest", {"nested": True}), ("small", {"nested": True, "pids": 64})):
        s.d.policy(name, s.rules, s.env)
        s.d.policies[name]["sandbox"] = more
    return s


def refusals(t, s):
    d = s.d
    r = d.run(["true"], ["--policy", "nest"])
    t.ok(r.returncode == 125 and "--no-bind" in r.stderr, "a bind is refused, with the remedy", r.stderr)
    for more, what in (({"backend": "docker", "docker": {"image": "x"}}, "with an engine's container"),):
        text = json.dumps(dict(d.config(), policies={"p": {"rules": [], "sandbox": dict({"nested": True}, **more)}}))
        r = d.check(text)
        t.ok(r.returncode != 0 and "nested" in r.stdout + r.stderr, "refused by check: " + what, r.stdout, r.stderr)


def without_ids(t, s):
    r = s.d.run(["true"], ["--policy", "nest", "--no-bind"])
    t.ok(r.returncode == 125 and "/etc/subuid" in r.stderr, "without uids of its own it is refused, with the remedy",
         r.stderr)


def attack(t, c, box):
    with open(os.path.join(durward.INSIDE, "nested.py"), "rb") as f:
        c.write(box, "/workspace/nested.py", f.read())
    r = c.exec(box, "python3 /workspace/nested.py", split=True, timeout=60)
    try:
        got = json.loads(r["stdout"])
    except ValueError:
        t.ok(False, "the probe answers", r)
        return
    t.eq((set(got["caps"]), got["nnp"]), ({"00000000a82435ff"}, "1"), "17 capabilities, which no program can raise")
    m = got["mounts"]
    below = m["below"] if isinstance(m["below"], dict) else {}
    t.eq((m["entered"], below.get("/proc")), ("ok", "ok"), "namespaces and a /proc of their own can be made")
    t.ok(below and all(v in NO for v in below["sysctls"].values()), "no setting of the kernel or of the network can be "
         "written there", below)
    t.ok(below and all(v in NO for v in below["seen"].values()) and below["keys"] == "" and len(below["pids"]) < 4,
         "nor anything of the host be seen", below)
    t.ok(below and all(v in NO for v in below["kinds"].values()), "no file system can be mounted that reads a disk, a server or "
         "the kernel", below)
    t.ok(all(v[0] in NO and v[1] in NO and v[2] in NO and all(x in NO for x in v[4:]) for v in m["kept"].values()),
         "what we cover or freeze stays so in mounts of their own", m["kept"])
    n = got["network"]
    t.ok(n["entered"] == "ok" and n["out"] == "ENETUNREACH" and n["back"] in NO and n["process 1"] in NO + ("none",) and
         n["interfaces"] == ["lo"] and n["packet"] == "EAFNOSUPPORT" and
         n["raw"] == n["netfilter"] == "EPROTONOSUPPORT", "a network of their own leads nowhere", n)
    free = got["listeners"].pop("bind 80")
    t.ok(free == "ok" and all(v in NO + ("EADDRINUSE",) for k, v in got["listeners"].items() if v != "no ip(8)"), "the sandbox's network is not "
         "its root's: the gate's ports are taken, others can be had", free, got["listeners"])
    t.ok(all(v in NO for v in got["processes"].values()), "nor is process 1", got["processes"])
    t.ok(isinstance(got["many"], int) and 100 < got["many"] <= 256, "namespaces are bounded (%s of 256)" % got["many"])
    t.ok(got["device"] in NO and got["host name"] in NO and got["chown"] == "ok", "no devices, no host name; owners of its own",
         got)


def out(c, box, script, timeout=60):
    code, text = c.sh(box, script, timeout=timeout)
    return code, text.decode("utf-8", "replace")


def bubblewrap(t, c, box):
    code, said = out(c, box, "bwrap --unshare-all --share-net --ro-bind / / --proc /proc --dev /dev --tmpfs /tmp "
                             "sh -c 'id -u; ls /proc | grep -c ^[0-9]; curl -sS https://%s/bw; "
                             "curl -sS -m 5 https://evil.example.com/ || echo refused $?'" % HOST)
    t.ok(code == 0 and '"/bw"' in said and said.endswith("refused 6\n"), "bubblewrap inside, its curl through the gate", said)
    code, said = out(c, box, "bwrap --unshare-all --ro-bind / / --proc /proc --dev /dev curl -sS -m 5 https://%s/ || "
                             "echo refused $?" % HOST)
    t.ok("refused" in said, "a network of its own leads nowhere", said)


CONTAINERFILE = """FROM localhost/base:1
RUN curl -sS -o /fetched https://%(h)s/in-build && chown 1234:5 /fetched && cp /bin/busybox /bin/su && chmod 4755 /bin/su
USER 1234
CMD ["sh", "-c", "id -u; stat -c '%%u:%%g' /fetched; curl -sS https://%(h)s/in-run; curl -sS -m 5 https://evil.example.com/ || echo refused $?"]
""" % {"h": HOST}


def containers(t, s, c, box):
    """podman and buildah, with the sandbox's own configuration and a range of uids."""
    for program in ("podman", "crun", "buildah"):
        if not shutil.which(program):
            t.skip("containers inside", program + " is not installed")
            return
    c.write(box, "/workspace/base.tar", engine.rootfs())
    c.write(box, "/workspace/Containerfile", CONTAINERFILE.encode())
    code, said = out(c, box, "podman import -q base.tar localhost/base:1 2>&1")
    t.ok(code == 0, "podman import", said)
    code, said = out(c, box, "podman build -q -t app . 2>&1", 120)
    t.ok(code == 0, "podman build: a request, another's file, a set-user-ID bit", said)
    code, said = out(c, box, "podman run --rm app", 60)
    t.ok(code == 0 and said.startswith("1234\n1234:5\n") and '"/in-run"' in said and said.endswith("refused 6\n"),
         "podman run: as its own user, through the gate, and an unlisted host is refused in the innermost", said)
    code, said = out(c, box, "podman run -d -q --name other app sleep 60 && podman exec other id -u && podman exec -u 0 other id -u; podman exec "
                             "other curl -sS https://%s/in-exec; podman rm -f -t 0 other" % HOST, 60)
    t.ok("\n1234\n0\n" in said and '"/in-exec"' in said, "podman exec, in a container whose process is not root's", said)
    code, said = out(c, box, "b=$(buildah from localhost/base:1) && buildah run $b curl -sS https://%s/buildah && "
                             "buildah commit -q $b two && podman images -q two | wc -l" % HOST, 120)
    t.ok(code == 0 and '"/buildah"' in said and said.endswith("1\n"), "buildah from, run, commit", said)
    code, said = out(c, box, "podman run --rm --network none app 2>&1", 60)
    t.ok("in-run" not in said and "refused 6" in said, "a container without a network has none", said)
    # the placeholder is what a container can be given; the secret is put in at the gate, as always
    code, said = out(c, box, "podman run --rm -e GITHUB_TOKEN app sh -c 'curl -sS -H \"Authorization: Bearer $GITHUB_TOKEN\" "
                             "https://api.github.com/user'", 60)
    t.ok(code == 0 and "octo" in said, "a credential of a rule works from a container", said)
    seen = [r.target for r in s.plain.requests]
    t.eq([p for p in ("/in-build", "/in-run", "/buildah") if p not in seen], [], "the origin had each of them")


HOST_PROGRAMS = "-v /usr:/usr:ro -v /lib:/lib:ro -v /lib64:/lib64:ro -v /tmp/networks.py:/networks.py:ro"
READY = "ready() { for i in $(seq 100); do podman logs $1 | grep -q ready && return; sleep 0.1; done; }; "
SERVE = HOST_PROGRAMS + " app python3 /networks.py echo"


def names(t, c, box):
    """Names, and the ways from one network to others."""
    said = out(c, box, READY + "for n in front back; do podman network create $n; podman run -d --network $n --name in-$n --network-alias also-$n %s "
                       "$n; ready in-$n; done; podman network create --internal shut" % SERVE)[1]
    script = "for n in in-front also-front in-front.dns.podman in-back; do echo | nc -w 3 $n 7000 2>&1; done"
    code, said = out(c, box, "podman run --rm --network front app sh -c '%s'; podman run --rm --network front,back app sh -c 'echo | nc -w 3 in-back "
                             "7000'; podman inspect -f '{{.NetworkSettings.Networks.back.IPAddress}}' in-back >/workspace/ip" % script)
    t.eq(said, "front 1\n" * 3 + "nc: bad address 'in-back'\nback 1\n", "names and aliases of a container's own networks resolve, others' do not")
    code, said = out(c, box, "podman run --rm --network front app sh -c \"echo | nc -w 3 $(cat /workspace/ip) 7000\" 2>&1")
    t.ok("back" not in said and "can't connect" in said, "nor is another network's container reached by its address", said)
    code, said = out(c, box, "podman run --rm --network shut app 2>&1; podman run --rm --network shut,front app curl -sS https://%s/both" % HOST)
    t.ok("curl: (6)" in said and "curl: (7)" not in said and "in-run" not in said and '"/both"' in said, "an internal network has no way out, nor names of what is "
         "outside; another one of the container has", said)
    code, said = out(c, box, READY + "podman network create --internal --disable-dns bare; podman run -d --network bare --name bare %s bare; ready bare; podman run "
                             "--rm --network bare app nc -w 3 $(podman inspect -f '{{.NetworkSettings.Networks.bare.IPAddress}}' bare) 7000 </dev/null; podman rm -f -t 0 "
                             "bare; podman network rm bare" % SERVE)
    t.ok("bare 0\n" in said, "a network without a gateway connects its containers, the first of which has the first address", said)


def folder(t, c, box):
    """Whoever could listen in the place of podman's backend would be handed containers' networks."""
    code, said = out(c, box, "cd /run; for how in '-o 1000 -m 700' '-m 777'; do rm -rf durward-containers; install -d $how durward-containers; podman run --rm app 2>&1; "
                             "done; rm -rf durward-containers")
    t.ok(said.count("is another user's, or open to others") == 2 and "in-run" not in said, "where the folder of the networks' socket is another user's, or open to others, "
         "no container is begun", said)


def health(t, c, box):
    code, said = out(c, box, "podman run -d --health-cmd true --health-interval disable app sleep 99; w=$(podman run -d --health-cmd true --health-interval 1h app sleep "
                             "99); cd /run/durward-containers; for i in $(seq 100); do [ -e health-$w ] && break; sleep 0.1; done; ls | grep -c health-; podman rm -f -t 0 $w")
    t.ok("1\n" in said.splitlines(True), "a check of health is one process; without an interval there is none", said)


def few(t, c, box):
    """A keeper that has few descriptors."""
    code, said = out(c, box, READY + "prlimit --nofile=128 podman run -d --name few -p 7001:7000 -p 7100-7107:7100-7107 %s few; ready few; python3 "
                             "/tmp/networks.py hold 100 32; podman rm -f -t 0 few" % SERVE)
    got = next((json.loads(line) for line in said.splitlines() if line[:1] == "{"), {"carried": 0})
    t.ok(5 < got["carried"] <= 32 and got["then"] == "7", "connections for which it has no descriptor are reset, and later ones are carried (%s of 32)" % got["carried"], said)


def ports(t, c, box):
    said = out(c, box, READY + "podman run -d --name one -p 80:7000 %s one; podman run -d --name two -p 7000 %s two; for n in one two; do "
                       "ready $n; done; for p in 80 $(podman port two | sed s/.*://); do python3 -c 'import socket, sys; s = "
                       "socket.create_connection((\"localhost\", sys.argv[1])); s.shutdown(1); print(s.recv(9))' $p; done" % (SERVE, SERVE))[1]
    t.ok("b'one 0\\n'\nb'two 0\\n'\n" in said, "two containers have one port, mapped to 80 and to one that podman chose", said)
    said = out(c, box, "curl -sS -m 5 http://%s/still" % HOST)[1]
    t.ok("Durward denied" in said, "whoever has port 80 in the sandbox gets nothing that is sent elsewhere: the gate does", said)
    code, said = out(c, box, READY + "podman run -d --name echo -p 7001:7000 -p 7001:7000/udp %s echo; ready "
                             "echo; python3 /tmp/networks.py ask; python3 /tmp/networks.py hold 1100 1024; setpriv --reuid "
                             "1000 --regid 1000 --clear-groups python3 - other </tmp/networks.py; podman run --rm --network host -u 0 %s app python3 /networks.py other; python3 "
                             "/tmp/networks.py other" % (SERVE, HOST_PROGRAMS))
    got = [json.loads(line) for line in said.splitlines() if line[:1] in "{\""]
    if not t.ok(len(got) == 5, "mapped ports are asked", said):
        return
    t.eq(got[0], {"tcp": ["3000000"] * 2, "udp": [True] * 3, "clients": 40}, "TCP and UDP by IPv4 and IPv6 of localhost, and both ends of a connection")
    t.ok(1000 <= got[1]["carried"] <= 1024 and got[1]["then"] == "7", "connections are bounded (%s of 1024), and later ones are carried" % got[1]["carried"], got)
    t.eq(got[2:], ["PermissionError", "FileNotFoundError", "0{}"], "another user's program does not reach the keeper, nor does a container with the sandbox's network")
    t.eq(out(c, box, "ps -A -o comm | grep -c durward-net")[1], "4\n", "a process for each of three networks that have containers, and their keeper")
    code, said = out(c, box, "podman run --rm -p 7001:1 app 2>&1; podman run --rm -p 1:1/sctp app 2>&1")
    t.ok("port 7001 of the sandbox: Address already in use" in said and "sctp cannot be mapped" in said, "a port that is taken, and one of SCTP: refused in words", said)


def networks(t, s, c, box):
    """Networks of their own for containers."""
    with open(os.path.join(durward.INSIDE, "networks.py"), "rb") as f:
        c.write(box, "/tmp/networks.py", f.read())
    out(c, box, "chmod 644 /tmp/networks.py")
    t.part(folder, t, c, box)
    t.part(health, t, c, box)
    t.part(names, t, c, box)
    t.part(ports, t, c, box)
    before = len(s.d.kinds("denied"))
    code, said = out(c, box, "cd /tmp; python3 -m http.server 9876 >/dev/null 2>&1 & p=$!; python3 -m http.server -b 127.0.0.1 9877 >/dev/null 2>&1 & p=\"$p $!\"; "
                             "for i in 6 7; do until curl -s http://127.0.0.1:987$i/ >/dev/null; do sleep 0.1; done; done; podman run --rm "
                             "app sh -c 'for h in host.containers.internal:9876 host.docker.internal:9876 host.docker.internal:9877 192.0.2.1; do curl -sS -m 5 http://$h/ 2>&1 | grep "
                             "-e DOCTYPE -e Durward; done'; kill $p")
    t.ok(said.count("DOCTYPE") == 2 and "Durward denied" in said and len(s.d.kinds("denied")) > before,
         "the sandbox's own services are reached by its names, but those at 127.0.0.1 alone; an address that no rule names is refused by the gate, and recorded", said)
    code, said = out(c, box, "kill -9 $(pgrep -x durward-net); podman run --rm --network front app curl -sS https://%s/again" % HOST)
    t.ok('"/again"' in said, "a network whose process was killed begins anew with its next container", said)
    code, said = out(c, box, "kill -9 $(pgrep -x durward-nets); podman run --rm app curl -sS https://%s/anew; podman rm -fa -t 0 >/dev/null; podman network rm front back "
                             "shut; for i in $(seq 100); do pgrep durward- >/dev/null || break; sleep 0.1; done; ps -A -o comm | grep -c -e durward-net -e durward-health; "
                             "grep -c ' 0A ' /proc/net/tcp" % HOST)
    t.ok('"/anew"' in said and said.endswith("\n0\n2\n"), "the keeper of the networks begins anew with the next container, and nothing is left after the last", said)
    t.part(few, t, c, box)


def pulled(t, s):
    """`podman pull`, by the preset of registries: it is asked for a token first, which stays on the host."""
    if not shutil.which("podman"):
        t.skip("podman pull", "podman is not installed")
        return
    token = scan.canary("tok-").decode()
    s.scanner.add("token", token.encode())
    images = s.add(IMAGES, registry.oci(IMAGES, token))
    s.d.policy("pulls", [{"use": "oci", "preset_hosts": {"registry": IMAGES}}])
    s.d.policies["pulls"]["sandbox"] = {"nested": True}
    s.d.save()
    r = s.d.run(["sh", "-c", "podman pull -q %s/acme/widget:1 && m=$(podman image mount %s/acme/widget:1) && cat $m/door.txt; podman push -q "
                 "%s/acme/widget:1 2>&1 | tail -1; find / -xdev -name '*.json' -size -64k -exec cat {} + 2>/dev/null | grep -c %s" % (
                     (IMAGES,) * 3 + (token,))], ["--policy", "pulls", "--no-bind"], timeout=90)
    said = r.stdout.splitlines()
    t.ok("kept" in said and said[-1:] == ["0"], "podman pull: challenge, token, manifest, layer; the token is not inside", r.stdout, r.stderr,
         [(q.method, q.path, str(q.status)) for q in images.requests], s.d.kinds("denied"))
    t.ok("Durward denied this request" in r.stdout and not [q for q in images.requests if q.method not in ("GET", "HEAD")], "and podman push is refused", r.stdout)
    s.scanner.search(r.stdout + r.stderr, "output")
    docker_pull(t, s, images, token)


def docker_pull(t, s, images, token):
    """Docker's own client, whose engine is inside as well: podman's service."""
    docker = shutil.which("docker")
    if not docker or not os.path.realpath(docker).startswith("/usr/"):
        t.skip("docker pull", "docker is not installed below /usr, and nothing is bound into such a sandbox")
        return
    before = len(images.requests)
    r = s.d.run(["sh", "-c", "export DOCKER_HOST=unix:///tmp/engine; podman system service -t 60 $DOCKER_HOST & for i in $(seq 100); do "
                 "[ -S /tmp/engine ] && break; sleep 0.1; done; docker pull -q %s/acme/widget:1 && docker image ls -q | wc -l; "
                 "docker push %s/acme/widget:1 2>&1 | tail -1; kill $!" % (IMAGES, IMAGES)], ["--policy", "pulls", "--no-bind"], timeout=90)
    asked = images.requests[before:]
    t.ok("%s/acme/widget:1\n1\n" % IMAGES in r.stdout and [q for q in asked if "Bearer " + token == q.get("authorization")],
         "docker pull", r.stdout, r.stderr, [(q.method, q.path, str(q.status)) for q in asked])
    t.ok(asked and {q.method for q in asked} <= {"GET", "HEAD"}, "and docker push writes nothing", r.stdout, r.stderr)
    s.scanner.search(r.stdout + r.stderr, "output")


def chromium(t, s, c, box):
    if not os.access("/usr/lib/chromium/chromium", os.X_OK) or not shutil.which("setpriv"):
        t.skip("Chromium with its sandbox on", "chromium is not installed")
        return
    # without --no-sandbox it does not start where it cannot have one
    browser = ("HOME=/tmp/home timeout 60 setpriv --reuid 1000 --regid 1000 --clear-groups /usr/lib/chromium/chromium --headless=new "
               "--disable-gpu --user-data-dir=/tmp/home/p --ignore-certificate-errors --dump-dom %s 2>/dev/null")
    out(c, box, "mkdir -p /tmp/home && chown 1000:1000 /tmp/home")
    code, said = out(c, box, browser % ("https://%s/chromium" % HOST), 90)
    t.ok('"target": "/chromium"' in said, "Chromium, as a user of its own and with its sandbox on, opens a page", code, said[-2000:])


def bounded(t, c):
    box = c.create(policy="small")["id"]
    code, said = out(c, box, "for u in 1001 1002 1003 1004; do setpriv --reuid $u --regid $u --clear-groups sh -c 'i=0; "
                             "while [ $i -lt 40 ]; do sleep 5 & i=$((i+1)); done' & done 2>&1; wait; set -- /proc/[0-9]*; echo $#", 40)
    t.ok("ork" in said and int(said.split()[-1]) <= 70, "processes of all its users together are bounded", said[-300:])
    c.delete(box)


def kinds(t, c):
    box = c.create(policy="nest")
    t.ok(not box["kept"], "its files are in memory", box)
    said = api.refused(c.ask, "POST", "/v1/sandboxes/%s/snapshots" % box["id"], {"name": "x"})
    t.ok(said is not None, "so there is no snapshot of it", said)
    t.ok(api.refused(c.create, policy="nest", volumes=["v:/v"]) is not None, "and it has no volumes")
    c.delete(box["id"])


def as_root(t, s, c):
    t.part(kinds, t, c)
    box = c.create(policy="nest")["id"]
    t.part(attack, t, c, box)
    t.part(bubblewrap, t, c, box)
    t.part(containers, t, s, c, box)
    if shutil.which("podman"):
        t.part(networks, t, s, c, box)
    t.part(chromium, t, s, c, box)
    t.part(bounded, t, c)
    c.delete(box)


def as_user(t, s, c):
    """Of an image, as its root is nobody on the host."""
    files = [("usr/bin/bwrap", "/usr/bin/bwrap")] + [(x.lstrip("/"), os.path.realpath(x)) for x in
                                                    engine.libraries("/usr/bin/bwrap")]
    r = s.d.command("image", "import", "-c", s.d.conf, "-", "box",
                    stdin=engine.rootfs(files=engine.python_files() + files), timeout=60)
    t.eq(r.returncode, 0, "an image is imported") or t.diag(r.stderr)
    box = c.create(policy="nest", image="box")["id"]
    t.part(attack, t, c, box)
    t.part(bubblewrap, t, c, box)
    c.delete(box)
    said = []  # a sandbox that was deleted may still have it while its files go

    def removed():
        said.append(s.d.command("image", "rm", "-c", s.d.conf, "box"))
        return said[-1].returncode == 0
    t.ok(tap.wait_for(removed, 15, 0.2), "and removed", said[-1].stderr)


def each(t):
    s = make(t)
    t.part(refusals, t, s)
    if person.name() == "root":
        t.part(without_ids, t, s)
        person.own_ids(t)
        t.part(pulled, t, s)
    elif person.name() != person.MAPPED:
        t.part(without_ids, t, s)
        return
    s.d.serve()
    c = api.Api(s.d.socket, timeout=130)
    t.part(as_root if person.name() == "root" else as_user, t, s, c)
    c.close()
    t.eq(s.d.stop(), 0, "the daemon ends well")
    s.clean()


def main(t):
    person.each(t, each, mapped=True)


tap.run(main, timeout=200)
