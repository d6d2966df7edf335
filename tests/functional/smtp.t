#!/usr/bin/python3 -B
"""Mail with real clients inside a sandbox and a real server outside: the login is the vault's, and a message goes to
nobody that a rule does not name, however it is said."""
import base64
import json
import os
import shutil
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, deaths as died, durward, exim, scan, smtp, tap  # noqa: E402

HOST = "mail.example.com"
LETTER = "From: agent@acme.example\r\nSubject: letter\r\n\r\nwelcome-4711\r\n"


def allow(scheme="smtp", **more):
    rule = {"allow": "%s://%s" % (scheme, HOST), "recipients": ["*@acme.example"], "senders": ["*@acme.example"],
            "message_megabytes": 4, "with": {"smtp_login": "app"}}
    rule.update(more)
    return {k: v for k, v in rule.items() if v is not None}


def bed(t, name, rules, server):
    d = durward.Durward(t, name)
    d.secret("mail_password", smtp.PASSWORD)
    d.secrets["app"] = {"smtp_login": {"user": smtp.USER, "password": "mail_password"}}
    d.policies["coder"] = {"rules": rules}
    d.resolve.update({HOST + ":587": server.starttls, HOST + ":465": server.tls, HOST + ":25": server.plain})
    d.extra.update(upstream={"ca": [server.pem], "resolve": d.resolve})
    return d


def raw(box, *steps, host=HOST, port=587):
    steps = [[s, 1] if isinstance(s, str) else s for s in steps]
    return box.py("smtp_raw.py", host, str(port), stdin=json.dumps([s + [""] * (3 - len(s)) for s in steps]), timeout=60)


def send(box, text=LETTER, to="bob@acme.example", **place):
    """One message; -> the last reply."""
    return raw(box, "EHLO x\r\n", "MAIL FROM:<agent@acme.example>\r\n", "RCPT TO:<%s>\r\n" % to, "DATA\r\n",
               [text + ".\r\n", 1, "354"], **place)[-1]


def ordinary(t, box, d, server):
    out = box.py("smtp_driver.py", HOST, timeout=90)
    t.eq(out, "ok", "smtplib: in clear, STARTTLS, TLS at once, UTF-8, 8 bits, 2 MB")
    came = {}
    for m in server.messages():
        subject = [line for line in m["text"].split("\r\n") if line.startswith("Subject: ")][0][9:]
        came[subject] = m
    t.eq(sorted(came), ["again", "eight", "implicit", "large", "part", "plain", "tls", "utf8"], "all of them came")
    t.ok(all(m["tls"] for m in server.messages()) and all(x["tls"] and x["good"] and x["user"] == smtp.USER for x in server.logins()),
         "in TLS, with the vault's login", str(server.logins()[:3]))
    t.ok(came["plain"]["text"].endswith("\r\n\r\n.\r\n..\r\n.leading dots\r\n"), "dots are as they were", came["plain"]["text"])
    t.eq((came["again"]["to"], came["part"]["to"]), (["bob@acme.example", "eve@acme.example"], ["bob@acme.example"]), "to whom they go")
    t.ok("BODY=8BITMIME" in came["eight"]["options"] and "SMTPUTF8" in came["utf8"]["options"] and
         "gr\u00c3\u00bc" in came["eight"]["text"], "8 bits and UTF-8", str(came["utf8"])[:300])
    t.eq(came["large"]["text"].count("0123456789abcde\r\n"), 120000, "2 MB are whole")


def programs(t, box, d, server):
    before = len(server.messages())
    status, out, err = box.sh("printf 'Subject: curl\\n\\nline\\n.\\nline\\n' > /tmp/m; curl -sS --max-time 30 --ssl-reqd "
                              "smtp://%s:587 --user a:b --mail-from agent@acme.example --mail-rcpt bob@acme.example -T /tmp/m; "
                              "echo $?" % HOST, timeout=60)
    t.eq(out.strip(), "0", "curl, with STARTTLS, a login and bare newlines: " + err)
    status, out, err = box.sh("curl -sS --max-time 30 smtps://%s --user a:b --mail-from agent@acme.example --mail-rcpt bob@acme.example "
                              "-T /tmp/m --crlf; echo $?" % HOST, timeout=60)
    t.eq(out.strip(), "0", "curl, smtps: " + err)
    came = server.messages()[before:]
    t.eq([m["text"].rstrip() for m in came], ["Subject: curl\r\n\r\nline\r\n.\r\nline"] * 2, "as it was")
    if not shutil.which("swaks"):
        t.skip("swaks", "swaks is not installed")
        return
    for options, what in (("--pipeline", "a pipeline"), ("--auth LOGIN --auth-user a --auth-password b", "AUTH LOGIN"),
                          ("--auth PLAIN --auth-user a --auth-password b", "AUTH PLAIN")):
        status, out, err = box.sh("swaks --server %s --port 587 --from agent@acme.example --to bob@acme.example,eve@acme.example "
                                  "--timeout 30 %s" % (HOST, options), timeout=60)
        t.eq(status, 0, "swaks, %s: %s" % (what, (out + err)[-300:] if status else ""))


def mutt(t, box, d, server):
    """With a login of its own, which is no one's, and the CA that its environment names."""
    if not shutil.which("mutt"):
        t.skip("mutt", "mutt is not installed")
        return
    before = len(server.messages())
    for scheme, port in (("smtp", 587), ("smtps", 465)):
        status, out, err = box.sh(
            "cd /tmp && printf 'by %s\\n.\\n' | mutt -n -F /dev/null -e 'set smtp_url=%s://a:b@%s:%d; set ssl_force_tls; "
            "set from=agent@acme.example; set use_envelope_from; set copy=no; set record=' "
            "-e \"set ssl_ca_certificates_file=$SSL_CERT_FILE\" -s mutt -- bob@acme.example" % (scheme, scheme, HOST, port), timeout=60)
        t.eq(status, 0, "mutt, %s: %s" % (scheme, (out + err)[-300:] if status else ""))
    came = server.messages()[before:]
    t.eq([(m["sender"], m["to"], m["text"].split("\r\n\r\n", 1)[1]) for m in came],
         [("agent@acme.example", ["bob@acme.example"], "by %s\r\n.\r\n" % s) for s in ("smtp", "smtps")], "as it was written")


def refused(t, box, d, server):
    logins, messages = len(server.logins()), len(server.messages())
    ehlo = "EHLO x\r\n"
    for what, steps, code in (
            ("another domain", ["MAIL FROM:<a@acme.example>\r\n", "RCPT TO:<bob@evil.example>\r\n", "DATA\r\n"], "smtp_recipient"),
            ("another sender", ["MAIL FROM:<a@evil.example>\r\n", "RCPT TO:<bob@acme.example>\r\n", "DATA\r\n"], "smtp_sender"),
            ("no sender", ["MAIL FROM:<>\r\n", "RCPT TO:<bob@acme.example>\r\n", "DATA\r\n"], "smtp_sender"),
            ("a size", ["MAIL FROM:<a@acme.example> SIZE=4000001\r\n", "RCPT TO:<bob@acme.example>\r\n", "DATA\r\n"], "smtp_size"),
            ("a route", ["MAIL FROM:<a@acme.example>\r\n", "RCPT TO:<@acme.example:bob@evil.example>\r\n", "DATA\r\n"], "plain address"),
            ("a percent", ["MAIL FROM:<a@acme.example>\r\n", "RCPT TO:<bob%evil.example@acme.example>\r\n", "DATA\r\n"], "plain address"),
            ("a bang path", ["MAIL FROM:<a@acme.example>\r\n", "RCPT TO:<evil.example!bob@acme.example>\r\n", "DATA\r\n"], "plain address"),
            ("quotes", ["MAIL FROM:<a@acme.example>\r\n", "RCPT TO:<\"bob@evil.example\"@acme.example>\r\n", "DATA\r\n"], "plain address"),
            ("an address of IPv4", ["MAIL FROM:<a@acme.example>\r\n", "RCPT TO:<bob@[127.0.0.1]>\r\n", "DATA\r\n"], "plain address"),
            ("a parameter", ["MAIL FROM:<a@acme.example> AUTH=ceo@acme.example\r\n", "RCPT TO:<bob@acme.example>\r\n", "DATA\r\n"], "not carried"),
            ("no EHLO before it", None, "503")):
        steps = ["MAIL FROM:<a@acme.example>\r\n", "RCPT TO:<bob@acme.example>\r\n", "DATA\r\n"] if steps is None else [ehlo] + steps
        said = raw(box, *steps)
        t.ok(any(code in s for s in said) and not any(s.startswith("354") for s in said), what + " is refused", str(said))
    said = raw(box, ehlo, *(c + "\r\n" for c in ("VRFY bob", "EXPN all", "ETRN x", "TURN", "BDAT 5 LAST", "XCLIENT NAME=x", "HELP", "NOSUCH")))
    t.eq([s[:3] for s in said[2:]], ["502"] * 7 + ["500"], "commands that are not carried")
    said = raw(box, ehlo, "AUTH CRAM-MD5\r\n", "AUTH LOGIN\r\n", "*\r\n", "AUTH PLAIN\r\n", "eHh4\r\n", "AUTH PLAIN eHh4\r\n")
    t.eq([s[:3] for s in said[2:]], ["504", "334", "501", "334", "235", "503"], "logins of the sandbox's")
    t.eq((len(server.logins()), len(server.messages())), (logins, messages), "and the server heard of nothing")
    text = "Subject: large\r\n\r\n" + ("x" * 98 + "\r\n") * 41000
    t.ok("smtp_size" in send(box, text), "a message that is larger than it may be", "")
    t.ok("a line of the message" in send(box, "Subject: x\r\n\r\n" + "x" * 999 + "\r\n"), "a line of 999 bytes")
    t.ok(send(box, "Subject: x\r\n\r\n" + "x" * 998 + "\r\n").startswith("250"), "one of 998")
    t.eq(len(server.messages()), messages + 1, "the server has the last alone")


def strict(t, box, d, server):
    messages = len(server.messages())
    for what, first in (("a bare newline", "NOOP\n"), ("a return within", "NO\rOP\r\n"), ("a byte 0", "NO\0OP\r\n"),
                        ("a line of 1025 bytes", "NOOP " + "x" * 1018 + "\r\n"), ("a line without an end", "x" * 1200),
                        ("a login of 13000 bytes", "AUTH PLAIN " + "x" * 13000 + "\r\n")):
        said = raw(box, "EHLO x\r\n", [first + "NOOP\r\n", 2])
        t.ok("smtp_protocol" in said[2] and said[3].endswith("end"), what + " ends it", str(said)[:300])
    said = raw(box, "EHLO x\r\n", ["STARTTLS\r\nMAIL FROM:<a@acme.example>\r\n", 1])
    t.eq(said[2], "end", "a command behind STARTTLS")
    said = raw(box, "EHLO x\r\n", "STARTTLS\r\n", ["MAIL FROM:<a@acme.example>\r\n", 1])
    t.ok(said[2].startswith("220") and said[3] == "end", "a command in place of TLS", str(said))
    said = raw(box, "EHLO x\r\n", "MAIL FROM:<a@acme.example>\r\n", "RCPT TO:<bob@acme.example>\r\n", ["DATA\r\nSubject: early\r\n\r\nx\r\n.\r\n", 1])
    t.ok("smtp_protocol" in said[4], "text before it is asked for", str(said))
    said = raw(box, *["NOSUCH\r\n"] * 100)
    t.ok(said[-1].startswith("421"), "a hundred refusals end it", str(said[-2:]))
    t.eq(len(server.messages()), messages, "nothing came of them")


def smuggled(t, box, d, server):
    """What one reader takes for a message's end and another does not, before a second message. The server here takes all
    of them for ends that Debian's aiosmtpd 1.4.3 does."""
    second = "MAIL FROM:<ceo@acme.example>\r\nRCPT TO:<bob@evil.example>\r\nDATA\r\nSubject: smuggled\r\n\r\nx\r\n"
    good, bad = 0, []
    for end in ("\n.\n", "\n.\r\n", "\r.\r", "\r\n.\n", "\r\n.\r", "\r.\r\n", "\n.\r", "\r\n\0.\r\n", "\r\n.\r\r\n",
                "\r\r\n.\r\r\n", "\n\n.\n\n", "\r\n..\r\n", "\r\n.\0\r\n", "\r\n. \r\n"):
        before = len(server.messages())
        said = send(box, "Subject: first\r\n\r\nx" + end + second)
        came = server.messages()[before:]
        good += said.startswith("250")
        if len(came) != said.startswith("250") or [m["to"] for m in came] not in ([], [["bob@acme.example"]]):
            bad.append((end, said, came))
    t.eq(bad, [], "no end but one reaches the server")
    t.ok(good >= 4, "bare newlines are carried as lines", str(good))
    t.ok(not any(m["sender"].startswith("ceo") for m in server.messages()), "no second message of any")


def answered(t, box, d, server):
    """What the server says of a message is what the client hears."""
    messages = len(server.messages())
    t.ok(send(box, to="nobody@acme.example").startswith("550 5.1.1 No such user"), "a recipient that the server does not have")
    t.ok(send(box, to="later@acme.example").startswith("450 4.2.1"), "one that it may have later")
    said = raw(box, "EHLO x\r\n", "MAIL FROM:<a@acme.example>\r\n", "RCPT TO:<bob@acme.example>\r\n", "RCPT TO:<nobody@acme.example>\r\n",
               "DATA\r\n", "MAIL FROM:<a@acme.example>\r\n", "RCPT TO:<bob@acme.example>\r\n", "DATA\r\n", LETTER + ".\r\n", "QUIT\r\n")
    t.ok(said[5].startswith("550") and said[9].startswith("250") and said[10].startswith("221"),
         "a message goes to all or to none, and the connection lives on", str(said))
    t.ok(send(box, LETTER + "refuse-me\r\n").startswith("554 5.6.0 Not this one"), "a message that the server does not take")
    t.eq([m["text"] == LETTER for m in server.messages()[messages:]], [True, False], "what it has")


def guessed(t, box, d, server):
    """Nothing that the server says back tells a sandbox which of its guesses at the password is right; the login is forgotten
    before a word of the sandbox's is said."""
    said = []
    for guess in (smtp.PASSWORD, smtp.PASSWORD[:-1] + "9", "x" * len(smtp.PASSWORD)):
        coded = base64.b64encode(guess.encode()).decode().rstrip("=")
        came = [send(box, to="echo+%s@acme.example" % g) for g in (guess, coded)]
        came.append(send(box, "Subject: x\r\n\r\nsay-back " + guess + "\r\n"))
        said.append(json.dumps(came).replace(guess, "GUESS").replace(coded, "CODED"))
    t.ok(said[0] == said[1] == said[2] and said[0].count("GUESS") == 2 and said[0].count("CODED") == 1,
         "an echo of the password is an echo as of any word", *said)
    slow = ("(printf 'Subject: held\\r\\n\\r\\n'; sleep 3) | curl -sS --max-time 30 smtp://%s:587 --mail-from a@acme.example "
            "--mail-rcpt bob@acme.example -T -" % HOST)
    held = threading.Thread(target=box.sh, args=(slow,), kwargs={"timeout": 60})
    n = len(server.logins())
    held.start()
    t.ok(tap.wait_for(lambda: len(server.logins()) > n, 10), "a message is under way")
    scan.scan_front(t, d, "smtp-back", HOST, scan.Scanner(app=smtp.PASSWORD.encode()))
    held.join()


def records(t, d):
    d.settle()
    admitted = [r for r in d.kinds("admitted") if r.get("scheme") == "smtp"]
    one = [r for r in admitted if r.get("count") == 2][:1]
    t.ok(one and one[0].get("user") == smtp.USER and one[0].get("credential") == "app" and one[0].get("role") == "smtp-back" and
         one[0].get("statements") == "acme.example:2", "a message is on record before it goes", str(one))
    ends = d.ends(admitted)
    t.ok(admitted and all(r["id"] in ends for r in admitted), "each has one end", str([r for r in admitted if r["id"] not in ends][:3]))
    t.ok(any(r.get("bytes_up", 0) > 1900000 for r in ends.values()), "with its bytes")
    t.ok(any(r.get("code") == "smtp_refused" and "a recipient at acme.example" in r.get("detail", "") for r in ends.values()),
         "what the server refused", str([r for r in ends.values() if r["code"] != "ok"][:3]))
    denied = {r.get("code"): r for r in d.kinds("denied")}
    t.ok(denied.get("smtp_recipient", {}).get("detail") == "a recipient at evil.example" and "smtp_sender" in denied and
         "smtp_size" in denied and "smtp_message" in denied and "smtp_protocol" in denied, "each refusal is one more", str(sorted(denied)))
    log = b"".join(open(p, "rb").read() for p in d.audit_files())
    t.ok(b"welcome-4711" not in log and b"bob@" not in log and smtp.PASSWORD.encode() not in log, "no text, no name before the '@', no secret")


def deaths(t, box, d):
    """While the text of a message is on its way: where the connection lives, a client looks for the answer at the text's end."""
    def works():
        try:
            return send(box).startswith("250")
        except (ValueError, IndexError, TypeError):
            return False
    died.each(t, box, d, "smtp", "(printf 'Subject: never\\n\\nhalf'; until [ -e ~/died ]; do sleep 0.1; done; echo ' of it') | "
              "curl -sSv smtp://%s:587 --mail-from agent@acme.example --mail-rcpt bob@acme.example -T -" % HOST,
              ("curl: (55)", "curl: (56)", "< 451 4.3.0 durward: failed"), works)


def more(t, server):
    """Other logins, bounds, a server in clear; and servers, and those between, that would have the login in clear or a reply
    of their own believed. Each has a name of its own."""
    hello = b"250-x\r\n250-STARTTLS\r\n250 AUTH PLAIN LOGIN\r\n"
    fakes = [(what, "f%d.example.com" % i, smtp.Scripted(*texts), code) for i, (what, texts, code) in enumerate((
        ("no STARTTLS", (b"220 x\r\n", b"250-x\r\n250 AUTH PLAIN\r\n", b"235 ok\r\n"), "upstream_tls"),
        ("more behind the answer to STARTTLS", (b"220 x\r\n", hello, b"220 go\r\n250 AUTH PLAIN\r\n", b""), "upstream_protocol"),
        ("no TLS behind it", (b"220 x\r\n", hello, b"220 go\r\n", b"250 x\r\n"), "upstream_tls"),
        ("STARTTLS refused", (b"220 x\r\n", hello, b"454 no\r\n", b"235 ok\r\n"), "upstream_tls"),
        ("two replies at once", (b"220 x\r\n250 x\r\n", b""), "upstream_protocol"),
        ("no reply at all", (b"HTTP/1.1 200 OK\r\n", b""), "upstream_protocol"),
        ("a reply of 21000 bytes", (b"220-x\r\n" * 3000, b""), "upstream_protocol")))]
    rules = [allow(allow="smtp://" + host) for _, host, _, _ in fakes]
    secrets = {}
    for name, auth, word in (("login", "login", smtp.PASSWORD), ("xoauth2", "xoauth2", smtp.TOKEN), ("wrong", "plain", "another-4711")):
        secrets[name] = {"smtp_login": {"user": smtp.USER, "password": name + "_word", "auth": auth}}
        rules.append(allow(allow="smtp://%s.example.com" % name, **{"with": {"smtp_login": name}}))
    rules += [allow(allow="smtp://few.example.com", message_recipients=2, budget={"requests": "2/h"}),
              allow(allow="smtp://echo.example.com", allow_plaintext=True, **{"with": {"smtp_login": "wrong"}}),
              allow(allow="smtp://clear.example.com:25", allow_plaintext=True), allow(allow="smtp://bare.example.com")]
    d = bed(t, "more", rules, server)
    d.secrets.update(secrets)
    for name, word in (("login", smtp.PASSWORD), ("xoauth2", smtp.TOKEN), ("wrong", "another-4711")):
        d.secret(name + "_word", word)
        d.resolve[name + ".example.com:587"] = server.starttls
    d.resolve.update({"few.example.com:587": server.starttls, "clear.example.com:25": server.plain, "bare.example.com:587": server.starttls})
    echo = smtp.Scripted(b"220 x\r\n", b"250-x\r\n250 AUTH PLAIN\r\n", b"535-5.7.8 no login of \"a\\nother-4711\"\r\n535 5.7.8 4711\r\n")
    d.resolve.update({host + ":587": fake.address for _, host, fake, _ in fakes}, **{"echo.example.com:587": echo.address})
    box = durward.Sandbox(d)
    for auth in ("login", "xoauth2"):
        said = send(box, host=auth + ".example.com")
        t.ok(said.startswith("250") and server.logins()[-1]["mechanism"].lower() == auth, "auth: " + auth, said)
    said = send(box, host="echo.example.com")
    t.ok("the server says 535 5.7.8: upstream_login" in said and "4711" not in said, "a server that says a login that it refuses", said)
    t.ok(d.wait_records(1, "aborted", detail="the server says 535 5.7.8"), "of which nothing is on record but its code")
    said = send(box, host="wrong.example.com")
    t.ok(said.startswith("451") and "upstream_login" in said, "a wrong password", said)
    said = send(box, host="clear.example.com", port=25)
    t.ok(said.startswith("250") and not server.messages()[-1]["tls"], "in clear where the rule says so", said)
    said = raw(box, "EHLO x\r\n", "MAIL FROM:<a@acme.example>\r\n", *["RCPT TO:<b%d@acme.example>\r\n" % i for i in range(3)],
               host="few.example.com")
    t.eq([s[:3] for s in said[3:]], ["250", "250", "452"], "as many recipients as the rule leaves")
    said = [send(box, host="few.example.com") for _ in range(3)]
    t.ok([s[:3] for s in said] == ["250", "250", "451"] and "budget" in said[2], "and as many messages", str(said))
    for what, host, fake, code in fakes:
        said = send(box, host=host)
        t.ok(code in said and not any(b"AUTH" in s.upper() for s in fake.said), what, said + repr(fake.said)[:200])
        fake.close()
    said = send(box, host="bare.example.com")
    t.ok("upstream_tls" in said, "a server whose certificate is not for that name", said)
    box.close()


CURL = ("printf 'Subject: %s\\r\\n\\r\\nwelcome-4711\\r\\n' | curl -sS -v --max-time 60 smtp://%s:587 --mail-from agent@acme.example "
        "--mail-rcpt bob@acme.example -T - 2>&1")


def held(calls):
    def look():
        found = calls.ask("GET", "/v1/approvals")["approvals"]
        return found if len(found) == 1 else None
    return (tap.wait_for(look, 10, 0.05) or [{}])[0]


def asked(t, server):
    """`ask` holds a message and shows to whom it goes; a budget of bytes."""
    d = bed(t, "asked", [], server)
    ask = allow()
    ask["ask"] = ask.pop("allow")
    d.policies["coder"]["rules"] = [ask, allow(allow="smtp://few.example.com", budget={"upload": "100KB/h"})]
    d.resolve["few.example.com:587"] = server.starttls
    d.serve()
    calls = api.Api(d.socket)
    box, got, before = calls.create(policy="coder")["id"], [], (len(server.logins()), len(server.messages()))

    def begin(command):
        got.clear()
        thread = threading.Thread(target=lambda: got.append(api.Api(d.socket, timeout=90).sh(box, command)))
        thread.start()
        return thread

    thread = begin(CURL % ("held", HOST))
    one = held(calls)
    t.eq((one.get("url"), one.get("credential")), ("smtp://%s/bob@acme.example" % HOST, "app"),
         "a message is held, and shown with where it goes")
    t.eq((got, (len(server.logins()), len(server.messages())), d.kinds("admitted")), ([], before, []),
         "its server has heard nothing, and nothing is admitted")
    calls.ask("POST", "/v1/approvals/%s/allow" % one.get("id"))
    thread.join(60)
    t.ok(got and got[0][0] == 0 and len(server.messages()) == before[1] + 1, "allowed, it goes on", str(got)[-600:])
    (r,) = d.wait_records(1, "admitted", scheme="smtp")
    t.ok(r.get("detail", "").startswith("approved by "), "its record says who approved it", str(r))
    thread = begin(CURL % ("denied", HOST))
    calls.ask("POST", "/v1/approvals/%s/deny" % held(calls).get("id"))
    thread.join(60)
    t.ok(got and got[0][0] != 0 and b"approval_denied" in got[0][1], "denied, the client is told", str(got)[-600:])
    thread = begin("timeout 3 sh -c '%s'" % (CURL % ("left", HOST)).replace("'", "'\\''"))
    t.ok(held(calls), "another is held")
    thread.join(60)
    t.ok(tap.wait_for(lambda: not calls.ask("GET", "/v1/approvals")["approvals"], 5), "a client that leaves asks no more")
    t.eq(len(server.messages()), before[1] + 1, "one of three was there")
    large = ("(printf 'Subject: large\\n\\n'; yes 0123456789 | head -c 60000) | curl -sS -v --max-time 60 --crlf smtp://few.example.com:587 "
             "--mail-from agent@acme.example --mail-rcpt bob@acme.example -T - 2>&1")
    calls, said, took = api.Api(d.socket, timeout=90), [], []
    for _ in range(3):
        began = time.monotonic()
        said.append(calls.sh(box, large))
        took.append("%.1f s" % (time.monotonic() - began))
    t.diag("a message of 66 kB, and two that the budget ends: " + ", ".join(took))
    t.eq([s[0] == 0 for s in said], [True, False, False], "a budget of 100 kB takes one message of 66")
    t.ok(b"budget" in said[1][1], "the client is told", str(said[1])[-600:])
    t.ok(d.wait_records(1, "aborted", code="budget"), "which is on record")
    t.eq(len(server.messages()), before[1] + 2, "and no part of another is a message")
    d.stop()


def with_exim(t):
    """Debian's own mail server: it ends a connection on which anything comes before it was asked for."""
    why = exim.missing()
    if why:
        t.skip("Exim", why)
        return
    first = durward.Durward(t, "ca-exim")
    server = exim.Exim(t, first.ca, HOST)
    server.pem, server.plain = first.ca.pem, server.starttls
    d = bed(t, "d-exim", [allow(), allow("smtps")], server)
    box = durward.Sandbox(d)
    for part in (ordinary, programs, mutt):
        t.part(part, t, box, d, server)
    messages = len(server.messages())
    t.ok(send(box, to="nobody@acme.example").startswith("550 "), "Exim: a recipient that it does not have")
    t.ok("smtp_recipient" in str(raw(box, "EHLO x\r\n", "MAIL FROM:<a@acme.example>\r\n", "RCPT TO:<bob@evil.example>\r\n", "DATA\r\n")),
         "Exim: one that the rule does not have")
    t.eq(([line for line in server.said().splitlines() if "rejected RCPT" in line or "error" in line][1:], len(server.messages())), ([], messages),
         "and it complains of nothing else")
    box.close()


def main(t):
    why = smtp.missing()
    if why:
        t.skip("everything", why)
        return
    first = durward.Durward(t, "ca")
    server = smtp.Smtp(t, first.ca, "server", HOST, *[n + ".example.com" for n in ("login", "xoauth2", "wrong", "few", "clear")])
    server.pem = first.ca.pem
    d = bed(t, "d", [allow(), allow("smtps")], server)
    scanner = scan.Scanner(app=smtp.PASSWORD.encode())
    box = durward.Sandbox(d)
    for part in (ordinary, programs, mutt, refused, strict, smuggled, answered):
        t.part(part, t, box, d, server)
    t.part(scan.scan_sandbox, t, box, scanner)
    t.part(scan.scan_front, t, d, "smtp-front", HOST, scanner)
    t.part(guessed, t, box, d, server)
    t.part(records, t, d)
    t.part(deaths, t, box, d)
    box.close()
    t.part(more, t, server)
    t.part(asked, t, server)
    t.part(with_exim, t)


tap.run(main, timeout=400)
