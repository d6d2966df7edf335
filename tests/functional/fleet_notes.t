#!/usr/bin/python3 -B
"""What hosts of a fleet tell one another by a real PostgreSQL: a token that one host revokes, every host refuses, within
a second where it is connected; one that was cut off applies what it missed, and takes no token for long before that."""
import glob
import os
import shutil
import signal
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import client, fleet, postgres, scan, tap  # noqa: E402
from harness.fleet import NOTED, OK, REVOKED, UNREAD  # noqa: E402

KNOWN = 3


def begun(t, nodes):
    t.ok(all(n.says_soon(n.issue(), OK) for n in nodes), "each host takes its own tokens")


def everywhere(t, nodes):
    """Revoked on one host, refused on all: of a host's own tokens, and of those of a key that two hosts have."""
    a, b, c = nodes
    own, kept, shared = a.issue(), a.issue(), a.issue()
    t.eq([b.says(shared), c.says(shared)[0]], [OK, 407], "two hosts with one key take the same token, a third does not")
    gate = a.gate(own)
    held = gate.tls(NOTED)
    c.revoke(own)
    t.ok(a.says_soon(own, REVOKED), "a token of this host that another one revokes is refused here")
    try:
        t.ok(held.ask(("GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % NOTED).encode(), "GET").status != 200, "what was open with it ends")
    except (client.Ended, OSError):
        t.ok(True, "what was open with it ends")
    held.close()
    a.revoke(shared)
    t.ok(b.says_soon(shared, REVOKED), "one that two hosts take is refused by the other one, too")
    took = [seconds(a, c), seconds(a, c), seconds(a, c)]
    t.ok(min(took) <= 1, "within a second", "%.3f s" % min(took))
    t.eq([a.says(kept), b.says(kept)], [OK, OK], "another token of it is taken on both")
    t.ok(a.d.wait_records(1, "lifecycle", event="token_revoked", target=own["id"]), "and it is on record there")


def seconds(a, by):
    """From the beginning of a revocation on one host to its end on another; a loaded machine adds what it likes."""
    token = a.issue()
    begun = time.monotonic()
    by.revoke(token)
    a.says_soon(token, REVOKED)
    return time.monotonic() - begun


def of_the_api(t, nodes):
    """A token for the API is good on the host that made it alone, and may be revoked on any."""
    a, b, _ = nodes
    text = a.d.command("token", "create", "--scope", "read", "--socket", a.d.socket).stdout.strip()
    token = text.split(".")[0]
    listed = lambda: token in a.d.command("token", "ls", "--json", "--socket", a.d.socket).stdout  # noqa: E731
    t.ok(listed(), "a token for the API")
    r = b.d.command("token", "revoke", token, "--socket", b.d.socket)
    t.ok(r.returncode == 0 and tap.wait_for(lambda: not listed(), 3, 0.05), "is revoked on another host", r.stderr)
    made = a.d.command("token", "create", "--scope", "admin", "--socket", a.d.socket)
    token = made.stdout.strip().split(".")[0]
    for n in (a, b):
        asked = n.api()
        t.eq(asked.raw("DELETE", "/v1/identities/" + token)[0], 404, "but not as an identity")
        asked.close()
    mark = a.issue()
    b.revoke(mark)
    t.ok(a.says_soon(mark, REVOKED) and listed(), "nor is that said to the fleet, of which what was said later has come")


def cut_off(t, nodes):
    """It goes on for the time of the configuration and no longer; then it applies what it missed."""
    a, b, _ = nodes
    missed, kept = a.issue(), a.issue()
    env = a.access()
    t.eq(a.d.command("token", "ls", env=env).returncode, 0, "a token for the API is taken")
    a.relay.cut()
    begun = time.monotonic()
    b.revoke(missed)
    t.eq(a.says(missed), OK, "who is cut off does not know it")
    gate = a.gate(kept)
    held = gate.tls(NOTED)
    t.ok(a.says_soon(kept, UNREAD, KNOWN + 3), "goes on for its time, and then takes no token")
    took = time.monotonic() - begun
    t.ok(KNOWN - 1.5 <= took <= KNOWN + 1, "which is what the configuration says", "%.1f s" % took)
    t.ok(ended(held), "what was open with one ends")
    t.ok(tap.wait_for(lambda: "fleet" in a.d.command("token", "ls", env=env).stderr, 3), "nor one for the API")
    held.close()
    t.eq(a.d.stop(), 0, "it is started again, cut off")
    a.d.serve()
    t.eq(a.says(kept), UNREAD, "and takes none, since it does not know")
    unsaid = a.issue()
    a.revoke(unsaid)
    b_own = b.issue()
    a.revoke(b_own)
    os.kill(a.d.daemon.pid, signal.SIGKILL)
    a.d.daemon.wait()
    a.d.serve()
    t.eq(b.says(b_own), OK, "what it revokes meanwhile is not known elsewhere")
    a.relay.join()
    t.ok(a.says_soon(kept, OK), "connected again it takes them")
    t.eq([a.says(missed), a.says(unsaid)], [REVOKED, REVOKED], "but none that was revoked meanwhile, there or here")
    t.ok(b.says_soon(b_own, REVOKED), "and what it revoked before it was killed is refused elsewhere")


def ended(st):
    st.sock.settimeout(5)
    try:
        return not st.sock.recv(1)
    except socket.timeout:
        return False
    except OSError:
        return True


def killed(t, nodes, db):
    """While role and database die."""
    a, b, _ = nodes
    first, second = a.issue(), a.issue()
    t.ok(a.kill("fleet") and b.kill("fleet"), "the fleet's roles of two hosts are killed")
    b.revoke(first)
    t.ok(a.says_soon(first, REVOKED), "what is revoked at once holds when they are back")
    db.process.kill()
    db.process.wait()
    b.revoke(second)
    t.ok(b.kill("controller"), "the controller dies while there is no database")
    db.start()
    t.ok(a.says_soon(second, REVOKED, 15), "what was revoked while there was none holds when it is back")
    kept = b.issue()
    db.sql("REVOKE DELETE ON durward_note FROM fleet", "fleet")
    t.ok(b.kill("fleet"), "a fleet's role begins anew at a database that refuses to prune")
    third = b.issue()
    a.revoke(third)
    t.ok(b.says_soon(third, REVOKED, 15), "which is read all the same")
    t.eq(b.says(kept), OK, "and what is not revoked there is taken")
    db.sql("GRANT DELETE ON durward_note TO fleet", "fleet")


def lost(t, nodes, db):
    """A database that forgets what it said was on disk, as an asynchronous replica that becomes primary: who has read it says it
    again, so that a host that starts later knows it."""
    a, b, c = nodes
    token = b.issue()
    b.d.stop()
    a.revoke(token)
    there = "SELECT count(*) FROM durward_note WHERE kind = 'revoked' AND id = '%s'" % token["id"]
    mark = c.issue()
    t.ok(tap.wait_for(lambda: db.sql(there, "fleet").strip() == "1", 5, 0.05), "a revocation is in the database")
    a.revoke(mark)
    t.ok(c.says_soon(mark, REVOKED), "and another host has read it")
    a.d.stop()
    db.sql("DELETE FROM durward_note WHERE kind = 'revoked'", "fleet")
    b.d.serve()
    t.ok(b.says_soon(token, OK), "the database has lost it: who starts now does not know it")
    db.process.kill()
    db.process.wait()
    db.start()
    t.ok(b.says_soon(token, REVOKED, 15), "another connection, and the host that knows it has said it again")
    a.d.serve()


def lies(t, nodes, db):
    """Whoever has the database can have tokens refused, and no more."""
    a = nodes[0]
    good = a.issue()
    put = "INSERT INTO durward_note (kind, id, body, until) VALUES ('%s', '%s', %s, 99999999999)"
    for kind, note, body in (("revoked", "rt-none", "'99999999999999999999.-'"), ("revoked", good["id"], "'x'"),
                             ("revoked", "sb-1", "'1.-'"), ("unknown", "x", "'x'"), ("revoked", "long", "repeat('x', 400000)"),
                             ("revoked", "tk-none", "'1.0123456789abcdef'")):
        db.sql(put % (kind, note, body), "fleet")
    other = a.issue()
    nodes[1].revoke(other)
    t.ok(a.says_soon(other, REVOKED), "rows that mean nothing do not hide those behind them")
    t.eq(a.says(good), OK, "and revoke nothing")
    db.sql(put % ("revoked", "bad", "E'a\\nb'"), "fleet")
    t.ok(a.says_soon(good, UNREAD, KNOWN + 3), "where rows cannot be read it is not known what was revoked")
    db.sql("DELETE FROM durward_note WHERE id = 'bad'", "fleet")
    t.ok(a.says_soon(good, OK), "until they can")


def secrets(t, nodes):
    own = scan.Scanner(password=fleet.PASSWORD.encode())
    found = {role: scan.scan_process(pid, own, role)[0] for pid, role in nodes[0].d.roles(nodes[0].d.daemon.pid)
             if role in ("fleet", "controller")}
    t.eq(found, {"fleet": [], "controller": []}, "neither the role nor the controller has the password")


def one_key(a, b):
    """b's tokens are signed as a's, as where a listener stands behind one name."""
    b.d.stop()
    mine, theirs = (glob.glob(n.d.dir + "/state/**/token.key", recursive=True)[0] for n in (b, a))
    kept = os.stat(mine)
    shutil.copyfile(theirs, mine)
    os.chown(mine, kept.st_uid, kept.st_gid)
    b.d.serve()


def main(t):
    why = postgres.missing()
    if why:
        t.skip("everything", why)
        return
    nodes, db, _ = fleet.noted(t, revocations="%ds" % KNOWN)
    one_key(*nodes[:2])
    t.part(begun, t, nodes)
    t.part(everywhere, t, nodes)
    t.part(of_the_api, t, nodes)
    t.part(killed, t, nodes, db)
    t.part(cut_off, t, nodes)
    t.part(lost, t, nodes, db)
    t.part(lies, t, nodes, db)
    t.part(secrets, t, nodes)


tap.run(main)
