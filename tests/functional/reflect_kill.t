#!/usr/bin/python3 -B
"""`on_reflect: kill`: a reply with the secret in it ends the sandbox, and nothing of it comes in."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, client, nginx, scene, shapes, tap  # noqa: E402

ECHO = "echo.example.com"


def daemon(t, s):
    a = api.Api(s.d.socket)
    sid = a.create(policy="coder")["id"]
    other = a.create(policy="coder")["id"]
    code, out = a.sh(sid, "curl -s -o /dev/null -w '%%{http_code}' https://%s/quiet" % ECHO)
    t.eq((code, out), (0, b"200"), "a reply without it passes")
    try:
        code, out = a.sh(sid, "curl -s https://%s/" % ECHO)
        t.ok(s.github_secret not in out, "nothing of it comes in", out)
    except (api.Refused, OSError) as e:
        t.ok(True, "nothing of it comes in (%s)" % e)

    def state():
        try:
            return a.show(sid)
        except api.Refused as e:
            return {"state": e.code}
    t.ok(tap.wait_for(lambda: state()["state"] not in ("running", "stopping"), 10, 0.05),
         "the sandbox ends", str(state()))
    t.eq(a.show(other)["state"], "running", "another one does not")
    events = [(e["event"], e["detail"]) for e in a.ask("GET", "/v1/events?limit=1000")["events"]
              if e["sandbox"] == sid]
    t.ok(("killed", "a secret came back in a reply") in events, "an event says why", str(events))
    (record,) = s.d.wait_records(1, "aborted", code="secret_reflected")
    whose = [r["sandbox"] for r in s.d.kinds("admitted", id=record["id"])]
    t.eq(whose, [sid], "the records say whose it was")
    t.ok(s.d.wait_records(1, "lifecycle", event="killed"), "and its end is on record")
    a.delete(other)
    a.close()


def remote(t, s, address):
    a = api.Api(s.d.socket)
    token = a.ask("POST", "/v1/identities", {"policy": "coder"})["token"]
    gate = client.Gate(address, s.ca_file(), token="sandbox:" + token)
    t.eq(gate.get(ECHO, "/quiet").status, 200, "remote: served")
    try:
        r = gate.get(ECHO, "/")
        t.ok(s.github_secret not in r.body, "remote: nothing of it comes back", str(r.status))
    except (client.Ended, OSError):
        t.ok(True, "remote: nothing of it comes back")

    def refused():
        answer, st = gate.connect(ECHO + ":443")
        st.close()
        return (answer.status, answer.code) == (407, "token_revoked")
    t.ok(tap.wait_for(refused, 5, 0.05), "remote: and the token is revoked")
    a.close()


def run(t, s):
    r = s.d.run(["sh", "-c", "curl -s https://%s/; sleep 20; echo still here" % ECHO])
    t.ok(r.returncode == 125 and "a secret came back" in r.stderr, "run: ends with 125 and why",
         str(r.returncode), r.stderr)
    t.ok("still here" not in r.stdout and s.github_secret.decode() not in r.stdout,
         "run: at once, and without it", r.stdout)


def main(t):
    s = scene.Scene(t)

    def handler(req, conn):
        if req.path == "/quiet":
            conn.reply(req, 200, {"quiet": True})
        else:
            shapes.echo(req, conn)
    s.echo = s.add(ECHO, handler)
    s.rule(allow=ECHO, on_reflect="kill", **{"with": {"bearer": "github"}})
    address = "127.0.0.1:%d" % nginx.free_port()
    s.d.listen.append({"http": address})
    s.d.serve()
    t.part(daemon, t, s)
    t.part(remote, t, s, address)
    t.eq(s.d.stop(), 0, "the daemon ends well")
    t.part(run, t, s)
    s.clean((), "kill")


tap.run(main)
