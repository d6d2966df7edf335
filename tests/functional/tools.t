#!/usr/bin/python3 -B
"""curl, wget and gh inside one sandbox, each with the proxy variables and with none; gh and glab by the presets of GitHub and
GitLab, at the vendor's host and at a company's."""
import base64
import json
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, origin, scan, scene, tap  # noqa: E402

CURL = ("curl -sS https://api.github.com/user && "
        "curl -sS -H \"Authorization: token $GITHUB_TOKEN\" https://api.github.com/repos/acme/x && "
        "curl -sS -H 'Content-Type: application/json' -d '{\"title\":\"by curl\"}' "
        "https://api.github.com/repos/acme/x/issues && "
        "curl -sSN -H \"Authorization: Bearer $OPENAI_API_KEY\" "
        "-H 'Content-Type: application/json' -d '{\"stream\":true,\"model\":\"m\"}' "
        "https://api.openai.com/v1/chat/completions && "
        "curl -sS https://api.github.com/user https://api.github.com/repos/acme/x -o /dev/null "
        "-o /dev/null")
WGET = ("wget -q -O - https://api.github.com/user && wget -q -O - --header "
        "\"Authorization: Bearer $GITHUB_TOKEN\" https://api.github.com/repos/acme/x && "
        "wget -q -O - --post-data='{\"title\":\"by wget\"}' "
        "https://api.github.com/repos/acme/x/issues")
GH = ("gh api user --jq .login && gh api repos/acme/x --jq .full_name && "
      "gh api repos/acme/x/issues -f title=by-gh --jq .title && "
      "gh api repos/acme/x/issues --jq length")


GLAB = ("glab api user && glab api projects/acme%%2Fdoor && glab issue list -R acme/door && glab issue create -R acme/door -t by-glab "
        "-d x --yes && glab issue view 7 -R acme/door && glab issue close 7 -R acme/door && glab mr list -R acme/door && glab mr view 3 -R "
        "acme/door && glab release list -R acme/door && glab label list -R acme/door && glab variable list -R acme/door && glab ci list -R "
        "acme/door && glab schedule list -R acme/door; echo status $?")


class Lab:
    """GitLab's API, as far as glab asks for it."""

    def __init__(self, host):
        at = "https://%s/acme/door" % host
        who = {"id": 1, "username": "octo", "name": "Octo", "web_url": "https://%s/octo" % host}
        issue = {"id": 70, "iid": 7, "title": "by-glab", "state": "opened", "web_url": at + "/-/issues/7", "author": who, "labels": [],
                 "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z", "references": {"full": "acme/door#7"},
                 "issue_type": "issue"}
        merge = dict(issue, iid=3, title="kept", web_url=at + "/-/merge_requests/3", source_branch="a", target_branch="main")
        project = {"id": 1, "path_with_namespace": "acme/door", "path": "door", "name": "door", "web_url": at, "default_branch": "main",
                   "http_url_to_repo": at + ".git", "ssh_url_to_repo": "git@%s:acme/door.git" % host, "namespace": {"full_path": "acme"},
                   "issues_enabled": True, "merge_requests_enabled": True}
        top = "/api/v4/projects/acme/door"
        self.answers = {"/api/v4/user": who, top: project, top + "/issues": [issue], top + "/issues/7": issue,
                        top + "/merge_requests": [merge], top + "/merge_requests/3": merge}
        self.one = issue

    def __call__(self, req, conn):
        path = req.path.replace("%2F", "/").replace("%2f", "/")
        if req.method in ("POST", "PUT"):
            conn.reply(req, 201 if req.method == "POST" else 200, self.one)
        else:
            conn.reply(req, 200, self.answers.get(path, []))


HUB = ("gh api user --jq .login && gh api graphql -f query='{viewer{login}}' --jq .data.viewer.login && gh repo view acme/door --json "
       "nameWithOwner --jq .nameWithOwner && gh issue list -R acme/door --json title --jq .[].title && gh run list -R acme/door && "
       "gh workflow list -R acme/door && gh secret list -R acme/door && gh release upload v1 door.txt -R acme/door && "
       "gh release download v1 -R acme/door -p kept.txt -O -; echo status $?")


class Hub:
    """GitHub's APIs, as far as gh asks for them; what was uploaded lies on another host."""

    def __init__(self, host, files):
        api, self.top = ("https://" + host, "") if host.startswith("api.") else ("https://%s/api/v3" % host, "/api/v3")
        asset = api + "/repos/acme/door/releases/assets/5"
        door = {"id": "R", "name": "door", "nameWithOwner": "acme/door", "owner": {"login": "acme"}, "hasIssuesEnabled": True,
                "issues": {"nodes": [{"title": "by-gh"}], "totalCount": 1, "pageInfo": {"hasNextPage": False, "endCursor": ""}}}
        upload = "https://uploads.github.com" if host.startswith("api.") else "https://%s/api/uploads" % host
        release = {"id": 9, "tag_name": "v1", "upload_url": upload + "/repos/acme/door/releases/9/assets{?name,label}",
                   "assets": [{"id": 5, "name": "kept.txt", "url": asset, "size": 5}]}
        self.graph = {"viewer": {"login": "octo"}, "repository": door}
        self.answers = {"/user": {"login": "octo"}, "/repos/acme/door/releases/tags/v1": release, "/repos/acme/door/releases/9": release,
                        "/repos/acme/door/actions/runs": {"total_count": 0, "workflow_runs": []},
                        "/repos/acme/door/actions/workflows": {"total_count": 0, "workflows": []},
                        "/repos/acme/door/actions/secrets": {"total_count": 0, "secrets": []},
                        "/repos/acme/door": {"id": 1, "name": "door", "full_name": "acme/door", "owner": {"login": "acme"}}}
        self.files = files

    def __call__(self, req, conn):
        path = req.path.removeprefix(self.top)
        if path in ("/graphql", "/api/graphql"):
            query = json.loads(req.body)["query"]
            told = {k: v for k, v in self.graph.items() if re.search(r"[{\s]%s[({]" % k, query)}
            if "release(" in query:
                told["repository"] = {"release": {"databaseId": 9, "isDraft": False}}
            told.update({k: {"fields": []} for k in re.findall(r"(\w+): ?__type", query)})  # which version it is
            conn.reply(req, 200, {"data": told})
        elif path.endswith("/assets/5"):
            conn.reply(req, 302, b"", headers=[("Location", self.files)])
        elif req.method == "POST":
            conn.reply(req, 201, {"id": 6, "name": "door.txt", "state": "uploaded"})
        elif path == "/_codeload/kept":
            conn.reply(req, 200, b"kept\n", kind="application/octet-stream")
        else:
            conn.reply(req, 200 if path in self.answers else 404, self.answers.get(path, {"message": "Not Found"}))


def hub(t):
    """gh, at GitHub and at GitHub Enterprise Server, with the one line that such a server takes."""
    if not shutil.which("gh"):
        t.skip("gh by the preset", "gh is not installed")
        return
    d, scanner = durward.Durward(t, "hub"), scan.Scanner()
    secret, corp = scan.canary("ghp_"), "github.corp.example"
    scanner.add("github", secret)
    d.secret("github", secret, kind="github-pat")
    t.write("hub/work/door.txt", "kept\n")
    files = "objects.githubusercontent.com"
    doubles = {h: origin.Origin(t, d.ca, h, Hub(corp if h == corp else "api.github.com",
                                                "https://%s/_codeload/kept" % (corp if h == corp else files)))
               for h in ("api.github.com", "uploads.github.com", files, corp)}
    for host, o in doubles.items():
        d.origin(host, o)
    d.policy("hub", [{"use": "github", "secret": "github"}, {"use": "github", "secret": "github", "preset_hosts": corp}],
             {"TOKEN": "{{placeholder github}}", "GH_NO_UPDATE_NOTIFIER": "1"})
    for host, hosts, name in (("github.com", ("api.github.com", "uploads.github.com"), "GH_TOKEN"), (corp, (corp,), "GH_ENTERPRISE_TOKEN")):
        r = d.run(["sh", "-c", "export GH_HOST=%s %s=$TOKEN; %s" % (host, name, HUB)], ["--policy", "hub"], timeout=60)
        t.ok(r.stdout.split() == ["octo", "octo", "acme/door", "by-gh", "kept", "status", "0"], "gh at %s, by its preset" % host, r.stdout,
             r.stderr, *["%s %s %s" % (q.method, q.path, q.status) for h in hosts for q in doubles[h].requests])
        asked = [q for h in hosts for q in doubles[h].requests]
        wrong = [q.path for q in asked if len(q.credentials()) != 1 or not carried(q.get("authorization"), secret.decode())]
        t.ok(len(asked) >= 10 and not wrong, "the token arrives once in each of its %d requests" % len(asked), wrong)
        for text in (r.stdout, r.stderr):
            scanner.search(text, "output")
    t.eq([q.credentials() for q in doubles[files].requests], [[]], "and not where the vendor's files lie")
    t.eq([x.get("code") for x in d.kinds("denied")], [], "none is refused")
    scanner.tree(d.work)
    scanner.tree(d.audit_dir)
    t.ok(not scanner.hits, "no secret in outputs and records", *scanner.report())


def carried(field, key):
    """As a token, or as the password of a login."""
    word, _, value = (field or "").partition(" ")
    return value == key if word.lower() in ("bearer", "token") else base64.b64decode(value).decode() == "x-access-token:" + key


def glab(t):
    program = shutil.which("glab") or os.path.join(durward.clients_dir(), "bin/glab")
    if not os.path.exists(program):
        t.skip("glab", "glab is not installed: Debian has it from its release 13 on")
        return
    program = os.path.realpath(program)
    d, scanner = durward.Durward(t, "lab"), scan.Scanner()
    secret = scan.canary("glpat-")
    scanner.add("gitlab", secret)
    d.secret("gitlab", secret)
    rules = []
    for host, more in (("gitlab.com", {}), ("gitlab.corp.example", {"preset_hosts": "gitlab.corp.example"})):
        o = origin.Origin(t, d.ca, host, Lab(host))
        d.origin(host, o)
        rules.append(dict({"use": "gitlab", "secret": "gitlab"}, **more))
        if not more:
            com = o
        else:
            corp = o
    d.policy("lab", rules, {"GITLAB_TOKEN": "{{placeholder gitlab}}", "GLAB_CHECK_UPDATE": "false"})
    binds = [] if program.startswith("/usr/") else ["--bind", "%s:/run/tools/glab:ro" % program]
    for o, host in ((com, ""), (corp, "GITLAB_HOST=gitlab.corp.example ")):
        r = d.run(["sh", "-c", "export PATH=/run/tools:$PATH %s; %s" % (host, GLAB.replace("%%", "%"))], ["--policy", "lab"] + binds, timeout=60)
        name = o.names[0]
        t.ok("status 0" in r.stdout and '"octo"' in r.stdout and "by-glab" in r.stdout and "kept" in r.stdout, "glab at %s" % name, r.stdout,
             r.stderr, *["%s %s %s" % (q.method, q.path, q.status) for q in o.requests[-3:]])
        wrong = [q.path for q in o.requests if q.credentials() != [("private-token", secret.decode())]]
        t.ok(len(o.requests) >= 13 and not wrong, "the token arrives once in each of its %d requests" % len(o.requests), wrong,
             [q.credentials() for q in o.requests[:2]])
        for text in (r.stdout, r.stderr):
            scanner.search(text, "output")
    denied = ["%s %s %s" % (x.get("method"), x.get("path"), x.get("code")) for x in d.kinds("denied")]
    t.ok(not denied, "0 of %d requests are refused" % (len(com.requests) + len(corp.requests)), *denied)
    scanner.tree(d.work)
    scanner.tree(d.audit_dir)
    t.ok(not scanner.hits, "no secret in outputs and records", *scanner.report())


def main(t):
    t.part(glab, t)
    t.part(hub, t)
    s = scene.Scene(t)
    box = durward.Sandbox(s.d)
    outputs = []
    for proxy in (False, True):
        mode = "with proxy variables" if proxy else "transparent"
        status, out, err = box.sh(CURL, proxy=proxy)
        outputs += [out, err]
        t.ok(status == 0 and out.count('"octo"') == 1 and '"acme/x"' in out and
             '"title": "by curl"' in out and "[DONE]" in out, "curl, " + mode, out, err)
        status, out, err = box.sh(WGET, proxy=proxy)
        outputs += [out, err]
        t.ok(status == 0 and '"octo"' in out and '"acme/x"' in out and "by wget" in out,
             "wget, " + mode, out, err)
        if not shutil.which("gh"):
            t.skip("gh, " + mode, "gh is not installed")
            continue
        status, out, err = box.sh(GH, proxy=proxy, env={"GH_NO_UPDATE_NOTIFIER": "1"})
        outputs += [out, err]
        lines = out.split()
        t.ok(status == 0 and lines[:3] == ["octo", "acme/x", "by-gh"], "gh, " + mode, out, err)
    entries = {r.get("entry") for r in s.d.kinds("admitted")}
    t.ok(entries >= {"transparent", "connect"}, "both ways in were used", str(entries))
    scan.scan_sandbox(t, box, s.scanner)
    scan.scan_roles(t, box, s.scanner)
    status, err = box.close()
    t.eq(status, 0, "the sandbox ended well")
    s.judge([(s.github, s.github_credential), (s.openai, s.openai_credential)],
            outputs + [err], "tools")


tap.run(main)
