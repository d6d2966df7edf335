#!/usr/bin/python3 -B
"""F14: The wall clock is put forward and back by hours under a daemon that runs: leaves are valid at the time that it is,
tokens end with it, budgets and open connections go by time that passes, the log says it and verifies. And a daemon whose monotonic clock has just begun."""
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, client, faulty, scene, tap  # noqa: E402

HOUR = 3600
START = 6 * HOUR  # the daemon's clock goes so far before ours, so that the origins' certificates are valid when it is put back
JUMPS = (3 * HOUR, -5 * HOUR, 0)  # from there, one after the other
BUDGET = 4


def leaf(address, host):
    """The validity of what the gate shows, in seconds since 1970; nobody verifies it here, for the clock of this
    process is another."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    r, st = client.Gate(address, timeout=4).connect(host + ":443")
    with context.wrap_socket(st.sock, server_hostname=host) as s:
        der = s.getpeercert(True)
    out = subprocess.run(["openssl", "x509", "-inform", "DER", "-noout", "-startdate", "-enddate"], input=der,
                         stdout=subprocess.PIPE, check=True).stdout.decode()
    return [ssl.cert_time_to_seconds(line.partition("=")[2]) for line in out.split("\n") if line]


def asks(s, gate, path="/x", host=scene.PLAIN):
    """The status of one request whose leaf is not verified (see leaf)."""
    try:
        return gate.get(host, path).status
    except (OSError, client.Ended) as e:
        return repr(e)


class Unverified(client.Gate):
    def tls(self, host, *args, **kw):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return super().tls(host, *args, **dict(kw, context=context))


def at_each(t, s, plan, at, kept):
    """What holds wherever the clock stands."""
    plan.clock(START + at)
    now, what = time.time() + START + at, "clock at %+d h" % (at // HOUR)
    for host in (scene.PLAIN, scene.GITHUB, "new%d.any.example.com" % (at % 9999)):
        begins, ends = leaf(s.bound, host)
        t.ok(begins <= now <= ends, "%s: the leaf of %s is valid" % (what, host),
             "%d to %d, now %d" % (begins - now, ends - now, 0))
    gate = Unverified(s.bound, timeout=6)
    t.eq(asks(s, gate), 200, what + ": an uncredentialed request is served")
    t.eq(asks(s, gate, "/user", scene.GITHUB), 200, what + ": a credentialed one, too")
    t.eq(kept.ask("GET /kept HTTP/1.1\r\nHost: %s\r\n\r\n" % scene.PLAIN).status, 200,
         what + ": a connection from before goes on")
    t.eq(asks(s, gate, "/budget"), 429, what + ": a budget that is used up stays so")
    time.sleep(2.2)  # two looks of the logger, in which it must not begin another file


def tokens(t, s, plan):
    """Good until its hour is over by the clock; of a time that has not come, never."""
    a = api.Api(s.d.socket)
    token = a.ask("POST", "/v1/identities", {"policy": "coder"})["token"]
    gate = Unverified(s.named, token="sandbox:" + token, timeout=6)
    t.eq(asks(s, gate), 200, "a token of now is good")
    for at, want, what in ((2 * HOUR, 407, "two hours later it has expired"),
                           (-2 * HOUR, 407, "two hours earlier nobody can have made it"),
                           (0, 200, "and at its time it is good")):
        plan.clock(START + at)
        try:
            r, st = gate.connect(scene.PLAIN + ":443")
            st.close()
            got = r.status
        except client.Ended as e:
            got = repr(e)
        t.eq(got, want, what)
    a.close()


def lives(t, s, plan):
    """A sandbox's times to live go by time that passes, wherever the clock stands; its dates by the clock."""
    a = api.Api(s.d.socket)

    def left(sid):
        """What its date says, by the daemon's clock."""
        return a.ask("GET", "/v1/sandboxes/" + sid)["expires_at"] - (time.time() + START + at)

    def there(sid):
        return any(x["id"] == sid for x in a.ask("GET", "/v1/sandboxes")["sandboxes"])
    at = 0
    plan.clock(START)
    try:
        long = a.create(policy="coder", ttl=HOUR)["id"]
    except api.Refused as e:
        return t.skip("times to live of sandboxes", "no sandbox can be made here: %s" % e)
    short, began = a.create(policy="coder", ttl=6)["id"], time.monotonic()
    at = -5 * HOUR
    plan.clock(START + at)
    t.ok(tap.wait_for(lambda: not there(short), 25, 0.2) and time.monotonic() - began > 5,
         "put back by five hours: a time to live of 6 s is as long", "%.1f s" % (time.monotonic() - began))
    for at in (3 * HOUR, -5 * HOUR):
        plan.clock(START + at)
        t.ok(there(long) and -3 <= left(long) - HOUR + (time.monotonic() - began) <= 3,
             "clock at %+d h: one of an hour is there, and its date moves with the clock" % (at // HOUR), left(long))
    at = 0
    plan.clock(START)
    t.ok(0 < left(long) <= HOUR, "and back")
    a.close()
    at = -5 * HOUR
    controller, = [pid for pid, role in s.d.roles() if role == "controller"]
    os.kill(controller, signal.SIGSTOP)  # so that it dies without having seen the clock
    plan.clock(START + at)
    os.kill(controller, signal.SIGKILL)
    a = None

    def again():
        nonlocal a
        try:
            a = a or api.Api(s.d.socket)
            return there(long)
        except (OSError, api.Refused, client.Ended, ValueError):
            a = None
            return False
    t.ok(tap.wait_for(again, 15, 0.1), "the next controller knows it")
    t.ok(0 < left(long) <= HOUR + 1, "and gives it its whole time to live at most", left(long))
    a.close()
    s.d.stop()
    at = 7 * HOUR
    plan.clock(START + at)
    s.d.serve()
    a = api.Api(s.d.socket)
    row = a.show(long) if there(long) else {}
    t.eq(row.get("state"), "stopped", "a daemon that starts when the clock was put forward by hours keeps it")
    t.ok(0 < left(long) <= HOUR if row else False, "with what is left of its time", row)
    a.delete(long)
    a.close()
    plan.clock(START)


def revoked(t, s, plan):
    """A daemon that lives while the clock is hours ahead forgets no revocation."""
    a = api.Api(s.d.socket)
    told = [a.ask("POST", "/v1/identities", {"policy": "coder"}) for _ in range(3)]
    a.ask("DELETE", "/v1/identities/" + told[0]["id"])
    a.close()

    def status(of):
        try:
            r, st = Unverified(s.named, token="sandbox:" + of["token"], timeout=6).connect(scene.PLAIN + ":443")
            st.close()
            return r.status
        except client.Ended as e:
            return repr(e)
    t.eq([status(x) for x in told[:2]], [407, 200], "one of two tokens is revoked")
    for at in (3 * HOUR, 0):
        s.d.stop()
        plan.clock(START + at)
        s.d.serve()
    t.eq([status(x) for x in told[:2]], [407, 200], "after a daemon's life three hours later: the same one")
    a = api.Api(s.d.socket)
    a.ask("DELETE", "/v1/identities/" + told[2]["id"])
    t.eq(status(told[2]), 407, "and one that had expired then can still be revoked")
    a.close()


def put(s):
    """What the log says of the clock: texts, and by how many hours it was put."""
    said = [r["detail"] for r in s.d.kinds("lifecycle", event="clock_changed")]
    by = [re.fullmatch(r"put (forward|back) by ([0-9]+)\.[0-9]{3} s", x) for x in said]
    return said, by, [(1 if m[1] == "forward" else -1) * round(int(m[2]) / HOUR) for m in by if m]


def stamps(t, s):
    """What the log says of it."""
    tap.wait_for(lambda: sum(put(s)[2]) == 0, 10, 0.1)  # the logger looks at the clock each second
    said, by, moves = put(s)
    t.ok(by and all(by), "the log says when the clock was put", *said)
    t.eq(sum(moves), 0, "by as much as it was: in all by nothing")
    t.ok({3, -8, 5} <= set(moves), "each of the three times", str(moves))
    records = s.d.records()
    places = [i for i, r in enumerate(records) if r.get("event") == "clock_changed"]
    back = [i for i in range(1, len(records)) if records[i]["received"] < records[i - 1]["received"]]
    t.ok(all(i in places for i in back), "the time goes back at no other line", str([records[i] for i in back][:2]))
    t.eq([r["seq"] for r in records], list(range(1, len(records) + 1)), "lines are numbered one by one all the same")
    files = s.d.audit_files()
    t.ok(len(files) <= 3, "and only steps forward make a file old (rotate: every 30m)", *files)
    past = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + START - 4 * HOUR))
    r = s.d.command("audit", "query", s.d.audit_dir, "--json", "--limit", "1000", "--until", past)
    t.ok(r.returncode == 0 and r.stdout.count("\n") >= 3, "records of hours ago are found", r.stdout[:300], r.stderr)


def young(t):
    """Monotonic time that began 3 s ago: what counts from the host's start must bear it."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        return t.skip("a daemon whose monotonic clock has just begun", "a time namespace wants root")
    s = scene.Scene(t, name="young")
    address = s.listener()
    with open("/proc/uptime") as f:
        up = int(float(f.read().split()[0]))
    mono = int(time.clock_gettime(time.CLOCK_MONOTONIC))
    offset = ["--monotonic", str(3 - mono), "--boottime", str(3 - up)]
    if subprocess.run(["unshare", "-T"] + offset + ["--fork", "true"], stderr=subprocess.DEVNULL).returncode:
        return t.skip("a daemon whose monotonic clock has just begun", "this kernel has no time namespaces")
    s.d.prefix = ["unshare", "-T"] + offset + ["--fork", "--kill-child=SIGTERM"]
    s.rules[-1]["budget"] = {"requests": "3/h"}
    s.d.serve()
    gate = s.gate(address, timeout=6)
    t.eq([asks(s, gate) for _ in range(4)], [200, 200, 200, 429], "just started: served, and its budget counts")
    t.eq(asks(s, gate, "/user", scene.GITHUB), 200, "with a credential, too")
    t.ok(not s.d.kinds("lifecycle", event="clock_changed"), "and no clock is said to have changed")
    with open("/proc/%d/task/%d/children" % ((s.d.daemon.pid,) * 2)) as f:
        os.kill(int(f.read()), signal.SIGTERM)  # the daemon itself; unshare holds signals back
    t.eq(s.d.daemon.wait(20), 0, "and it ends well")


def main(t):
    plan = faulty.stage(t)
    plan.clock(START)
    s = scene.Scene(t)
    s.rules.insert(0, {"allow": scene.PLAIN + "/budget", "budget": {"requests": "%d/h" % BUDGET}})
    s.rule(allow=".any.example.com")
    s.d.audit["rotate"] = {"every": "30m", "compress": "none"}
    s.bound, s.named = s.listener(), s.listener(None)
    s.d.serve()
    gate = Unverified(s.bound, timeout=6)
    t.eq([asks(s, gate, "/budget") for _ in range(BUDGET + 1)], [200] * BUDGET + [429], "a budget is used up")
    with gate.tls(scene.PLAIN) as kept:
        for at in JUMPS:
            t.part(at_each, t, s, plan, at, kept)
    t.part(tokens, t, s, plan)
    t.part(stamps, t, s)
    t.part(lives, t, s, plan)
    t.part(revoked, t, s, plan)
    t.eq(s.d.stop(), 0, "the daemon ends well")
    v = s.d.command("audit", "verify", s.d.audit_dir)
    t.ok(v.returncode == 0, "the log verifies", v.stdout, v.stderr)
    s.clean((), "clock")
    plan.clock(0)
    t.part(young, t)


tap.run(main, timeout=180)
