#!/usr/bin/python3 -B
"""/metrics: on the API's socket and on a listener of its own, scraped by a real Prometheus, checked
by promtool, beside what the audit log says; the alert rules and the dashboard in deploy/."""
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, nginx, scene, tap  # noqa: E402

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RULES = os.path.join(TOP, "deploy/prometheus-durward.rules.yml")
DASHBOARD = os.path.join(TOP, "deploy/grafana-durward.json")
SERIES = re.compile(r'^(\w+)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'(\w+)="([^"]*)"')


def fetch(url, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as r:
            return r.status, r.read().decode(), r.headers.get("content-type")
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode(), e.headers.get("content-type")


def parse(text):
    """[(name, labels, value)]"""
    return [(m[1], dict(LABEL.findall(m[2] or "")), float(m[3]))
            for m in map(SERIES.match, text.splitlines()) if m]


def value(series, name, **labels):
    return sum(v for n, have, v in series
               if n == name and all(have.get(k) == w for k, w in labels.items()))


def shape(t, text, kind):
    t.eq(kind, "text/plain; version=0.0.4; charset=utf-8", "the content type is Prometheus' text")
    r = subprocess.run(["promtool", "check", "metrics"], input=text.encode(), timeout=30,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    t.eq((r.returncode, r.stdout.decode()), (0, ""), "promtool has nothing to say about it")
    series = parse(text)
    t.eq(len({(n, tuple(sorted(have.items()))) for n, have, _ in series}), len(series),
         "no series comes twice")
    for name in {n[:-7] for n, _, _ in series if n.endswith("_bucket")}:
        rows = [(have["role"], v) for n, have, v in series if n == name + "_bucket"]
        for role in {r for r, _ in rows}:
            up = [v for r, v in rows if r == role]
            t.ok(up == sorted(up) and up[-1] == value(series, name + "_count", role=role),
                 "%s of the %s adds up" % (name, role), str(up))


def traffic(t, gate):
    for _ in range(5):
        r = gate.get("api.github.com", "/user")
    t.eq(r.status, 200, "an allowed request")
    for _ in range(3):
        r = gate.get("api.github.com", "/gists", method="POST", body=b"{}")
    t.eq((r.status, r.code), (403, "denied_by_rule"), "a denied one")


def same_as_log(t, s, read):
    """Counters equal the records, once the last report is in."""
    log = {}
    for r in s.d.records():
        if r["kind"] in ("admitted", "denied", "completed", "aborted"):
            key = (r["kind"], r.get("policy", ""))
            log[key] = log.get(key, 0) + 1

    def counted():
        series = read()
        got = {}
        for name, label in (("durward_requests_total", "decision"),
                            ("durward_request_ends_total", "end")):
            for n, have, v in series:
                if n == name:
                    key = (have[label], have["policy"])
                    got[key] = got.get(key, 0) + v
        return got == log, got
    t.ok(tap.wait_for(lambda: counted()[0], 6, 0.2),
         "requests by policy and decision equal the audit log", repr(log), repr(counted()[1]))
    t.ok(sum(log.values()) >= 13, "which is of %d records" % sum(log.values()))


def filled(t, read):
    def all_there():
        series = read()
        want = {"durward_sessions_total": "gate", "durward_handshakes_total": "gate",
                "durward_mints_total": "signer", "durward_dials_total": "injector",
                "durward_origin_handshakes_total": "injector",
                "durward_pool_reused_total": "injector", "durward_pool_fresh_total": "injector",
                "durward_secrets_released_total": "vault",
                "durward_scrubbed_bytes_total": "injector",
                "durward_audit_records_total": "logger",
                "durward_request_duration_seconds_count": "logger",
                "durward_audit_lag_seconds_count": "logger",
                "durward_dial_duration_seconds_count": "injector",
                "durward_mint_duration_seconds_count": "gate"}
        return [n for n, role in want.items() if value(series, n, role=role) <= 0]
    t.ok(tap.wait_for(lambda: not all_there(), 6, 0.2), "every role reports its own",
         str(all_there()))
    series = read()
    for role in ("parent", "signer", "vault", "dialer", "gate", "injector", "logger", "controller",
                 "builder"):
        rss = value(series, "durward_role_memory_bytes", role=role)
        t.ok(1 << 20 < rss < 1 << 31, "memory of the %s: %d KiB" % (role, rss // 1024))
    t.eq(value(series, "durward_audit_failing"), 0, "the log is written")


def listener(t, gate, url):
    t.eq(fetch(url + "/healthz")[:2], (200, "ok\n"), "/healthz")
    t.eq(fetch(url + "/readyz")[:2], (200, "ready\n"), "/readyz")
    t.eq(fetch(url + "/v1/sandboxes")[0], 404, "nothing of the API is there")
    t.eq(fetch(url + "/metrics", Origin="http://evil.example")[0], 403, "nothing for a browser")
    r, st = gate.connect(url.split("//")[1])
    st.close()
    t.eq(r.status, 403, "a paired client does not get there through its gate")


def restarts(t, s, read, role):
    """Counters of a process that died stay in the sum of its role."""
    before = value(read(), "durward_mints_total", role=role)
    starts = value(read(), "durward_role_starts_total", role=role)
    for pid, name in s.d.roles():
        if name == role:
            os.kill(pid, 9)
    t.ok(tap.wait_for(lambda: value(read(), "durward_role_starts_total", role=role) == starts + 1,
                      10, 0.2), "a %s that was killed was started again" % role)
    t.ok(before > 0 and value(read(), "durward_mints_total", role=role) >= before,
         "and what the first one counted is kept")


def prometheus(t, target):
    """A real one; -> a function that asks it."""
    scratch = t.mkdir("prometheus")
    port = nginx.free_port()
    conf = t.write("prometheus/prometheus.yml", json.dumps({
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [RULES],
        "scrape_configs": [{"job_name": "durward", "static_configs": [{"targets": [target]}]}]}))
    log = open(os.path.join(scratch, "log"), "wb")
    t.popen(["prometheus", "--config.file=" + conf, "--storage.tsdb.path=" + scratch + "/data",
             "--web.listen-address=127.0.0.1:%d" % port, "--log.level=warn"],
            stdout=log, stderr=log, cwd=scratch)
    log.close()

    def ask(path, **query):
        url = "http://127.0.0.1:%d/api/v1/%s?%s" % (port, path, urllib.parse.urlencode(query))
        try:
            with urllib.request.urlopen(url, timeout=5) as r:
                return json.load(r)["data"]
        except (OSError, ValueError):
            return None
    return ask


def number(ask, query):
    d = ask("query", query=query)
    return float(d["result"][0]["value"][1]) if d and d["result"] else None


def scraped(t, s, ask, read):
    t.ok(tap.wait_for(lambda: number(ask, 'up{job="durward"}') == 1, 30, 0.5),
         "a real Prometheus scrapes the listener")
    want = value(read(), "durward_requests_total", decision="denied")
    t.ok(tap.wait_for(lambda: number(
        ask, 'sum(durward_requests_total{decision="denied"})') == want, 10, 0.5),
        "and has the %d denied requests" % want)
    with open(DASHBOARD) as f:
        board = json.load(f)
    expressions = [x["expr"].replace("$instance", ".*") for p in board["panels"]
                   for x in p["targets"]]
    t.ok(len(expressions) > 20, "the dashboard has %d expressions" % len(expressions))
    bad = [x for x in expressions if ask("query", query=x) is None]
    t.eq(bad, [], "Prometheus takes each of them")
    with open(RULES) as f:
        text = f.read()
    known = set(ask("label/__name__/values") or ())
    absent = sorted(set(re.findall(r"\bdurward_\w+", text + " ".join(expressions))) - known - {
        # never more than 0 here: no line is written
        "durward_scrub_hits_total", "durward_secrets_failed_total", "durward_audit_failing",
        "durward_secrets_unreadable",
        "durward_handshakes_refused_total", "durward_mints_refused_total",
        "durward_origin_resumed_total", "durward_refused_total", "durward_watch_skipped_total"})
    t.eq(absent, [], "every metric that they name is there")
    groups = ask("rules")
    t.ok(groups and all(r["health"] in ("ok", "unknown") for g in groups["groups"]
                        for r in g["rules"]), "the alert rules run", str(groups)[:500])


def alert(t, gate, ask):
    """A foreign credential wakes somebody."""
    firing = 'ALERTS{alertname="DurwardForeignCredential",alertstate="firing"}'
    t.eq(number(ask, firing), None, "no alert yet")

    def again():
        gate.get("api.github.com", "/user", headers="Authorization: Bearer ghp_stolen\r\n")
        return number(ask, firing) is not None
    t.ok(tap.wait_for(again, 30, 1), "a foreign credential fires its alert in a real Prometheus")


def main(t):
    if not shutil.which("promtool") or not shutil.which("prometheus"):
        raise tap.Skip("prometheus is not installed")
    r = subprocess.run(["promtool", "check", "rules", RULES], stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, timeout=30)
    t.eq(r.returncode, 0, "promtool accepts the alert rules") or t.diag(r.stdout)
    s = scene.Scene(t)
    port = nginx.free_port()
    s.d.listen.append({"metrics": "127.0.0.1:%d" % port})
    address = s.listener()
    s.d.serve()
    gate = s.gate(address)
    url = "http://127.0.0.1:%d" % port
    traffic(t, gate)
    status, text, kind = fetch(url + "/metrics")
    t.eq(status, 200, "GET /metrics on its listener")
    shape(t, text, kind)

    def read():
        return parse(fetch(url + "/metrics")[1])
    c = api.Api(s.d.socket)
    r = c.raw("GET", "/metrics")
    t.ok(r[0] == 200 and b"durward_build_info" in r[-1], "GET /metrics on the API's socket")
    same_as_log(t, s, read)
    t.part(filled, t, read)
    t.part(listener, t, gate, url)
    ask = prometheus(t, "127.0.0.1:%d" % port)
    t.part(scraped, t, s, ask, read)
    t.part(alert, t, gate, ask)
    t.part(restarts, t, s, read, "signer")
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=240)
