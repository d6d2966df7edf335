#!/usr/bin/python3 -B
"""curl, wget and gh inside one sandbox, each with the proxy variables and with none."""
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, scan, scene, tap  # noqa: E402

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


def main(t):
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
