#!/usr/bin/python3 -B
"""Mailboxes with real clients inside a sandbox and a real server outside: the login is the vault's, and no command reaches
a mailbox, or does to it, what a rule does not name, however it is said."""
import json
import os
import re
import shutil
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, deaths as died, durward, imap, scan, tap  # noqa: E402

HOST, READER = "mail.example.com", "reader.example.com"
LOGIN = ["a LOGIN x y\r\n", "a "]
FOLDERS = ["INBOX", "Sent", "Archive/*"]


def allow(scheme="imap", host=HOST, **more):
    rule = {"allow": "%s://%s" % (scheme, host), "folders": FOLDERS, "message_megabytes": 3, "with": {"imap_login": "app"}}
    rule.update(more)
    return {k: v for k, v in rule.items() if v is not None}


def bed(t, name, rules, server, *hosts):
    d = durward.Durward(t, name)
    d.secret("mailbox_password", imap.PASSWORD)
    d.secrets["app"] = {"imap_login": {"user": imap.USER, "password": "mailbox_password"}}
    d.policies["coder"] = {"rules": rules}
    for host in (HOST, READER) + hosts:
        d.resolve.update({host + ":143": server.starttls, host + ":993": server.tls})
    d.extra.update(upstream={"ca": [server.pem], "resolve": d.resolve})
    return d


def raw(box, *steps, host=HOST, port=143, tls=""):
    """Each step: what to send, and the beginning of the line that ends its answer; a text is a command and its line's end."""
    asked = [[s + "\r\n", s.split(" ")[0] + " "] if isinstance(s, str) else s for s in steps]
    return box.py("imap_raw.py", host, str(port), tls, stdin=json.dumps(asked), timeout=60)


def last(box, *steps, **place):
    return raw(box, LOGIN, *steps, **place)[-1]


def ordinary(t, box, d, server):
    out = box.py("imap_driver.py", HOST, timeout=90)
    t.eq(out, "ok", "imaplib: in clear, STARTTLS, TLS at once; LOGIN, PLAIN, XOAUTH2; searches, messages, flags, IDLE")
    said = server.said()
    t.eq((said.count("Login: user=<%s>" % imap.USER) > 2, "anybody" in said), (True, False), "the server knows the vault's login alone")
    t.ok(", TLS" in said and not [x for x in said.splitlines() if "imap-login: Login:" in x and "TLS" not in x], "and in TLS alone")
    t.eq(server.subjects("Sent"), ["large", "idle"], "what is in a mailbox")
    t.eq(server.subjects("Archive/2026"), ["sent", "sent"], "and what was copied and moved")


def programs(t, box, d, server):
    for url, what in (("imap://%s/INBOX;UID=1/;SECTION=TEXT" % HOST, "curl, STARTTLS"), ("imaps://%s/INBOX;UID=1/;SECTION=TEXT" % HOST, "curl, imaps")):
        status, out, err = box.sh("curl -sS --max-time 30 --ssl-reqd '%s' --user a:b" % url, timeout=60)
        t.ok(status == 0 and out.strip() == "welcome-4711", what, out + err)
    status, out, err = box.sh("printf 'Subject: curl\\r\\n\\r\\nx\\r\\n' > /tmp/m; curl -sS --max-time 30 'imaps://%s/Sent' --user a:b -T /tmp/m && "
                              "curl -sS --max-time 30 'imaps://%s/' --user a:b" % (HOST, HOST), timeout=60)
    t.ok(status == 0 and '"Archive/2026"' in out and "Secret" not in out, "curl: a message goes there, and the mailboxes", out + err)
    t.ok("curl" in server.subjects("Sent"), "it is there")
    if not shutil.which("mutt"):
        t.skip("mutt", "mutt is not installed")
        return
    for n, (scheme, port) in enumerate((("imap", 143), ("imaps", 993), ("imaps", 993))):  # what it knows already, by QRESYNC, the last time
        status, out, err = box.sh(
            "cd /tmp && TERM=xterm python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' mutt -n -F /dev/null -e 'set imap_user=a; set imap_pass=b; "
            "set ssl_force_tls; set ssl_starttls; set wait_key=no; set header_cache=/tmp/cache; set imap_condstore; set imap_qresync; set confirmcreate=no; set folder=/tmp' -e \"set ssl_ca_certificates_file=$SSL_CERT_FILE\" "
            "-e 'push \"<copy-message>/tmp/box-%d<enter><quit>\"' -f %s://%s:%d/INBOX > /tmp/mutt-%d 2>&1 < /dev/null; grep -c -E 'welcome-4711|second' /tmp/box-%d"
            % (n, scheme, HOST, port, n, n), timeout=60)
        t.ok(out.strip().splitlines()[-1:] == ["1"], "mutt, %s, for the %d. time" % (scheme, n + 1), (out + err)[-400:])


def refused(t, box, d, server):
    before = (server.folders(), server.subjects("INBOX"), server.subjects("Secret"))
    said = raw(box, LOGIN, "b SELECT Secret", "c EXAMINE \"Secret\"", "d STATUS Secret (MESSAGES)", ["e SELECT {6+}\r\nSecret\r\n", "e "],
               "f LIST \"\" *", "g SELECT &AFMAZQBjAHIAZQB0-", "h SELECT Archive/../Secret", "i SELECT /etc/passwd", "j SELECT Archive/",
               "k SELECT ~root/x", "l CREATE Other", "m RENAME Archive/2026 Other", "n DELETE Secret", "o SUBSCRIBE Secret",
               ["p APPEND Secret {5}\r\n", "p "], ["q APPEND Secret {5+}\r\nhello\r\n", "q "], "r SELECT INBOX", "s COPY 1 Secret",
               "t MOVE 1 Secret", "u RENAME INBOX Archive/x", "v NOOP")[2:]
    names = dict(zip("bcdefghijklmnopqrstuv", said))
    t.eq([k for k in "bcdeghijklmnopqstu" if not (names[k].startswith(k + " NO") and "imap_folder" in names[k])], [], "another mailbox, however it is said")
    t.ok('"Archive/2026"' in names["f"] and "Secret" not in names["f"] and names["v"].endswith("OK NOOP completed.\r\n") or names["v"],
         "LIST knows of what the rule has", names["f"])
    t.ok("Secret" not in names["f"] and "Archive/2026" in names["f"], "LIST knows of what the rule has alone", names["f"])
    t.ok(names["v"].startswith("v OK"), "and the connection goes on", names["v"])
    t.eq((server.folders(), server.subjects("INBOX"), server.subjects("Secret")), before, "nothing came of them")
    said = raw(box, LOGIN, *("%s %s" % (k, x) for k, x in zip("bcdefghijk", (
        "COMPRESS DEFLATE", "ENABLE UTF8=ACCEPT", "GETMETADATA INBOX /x", "SETACL INBOX x lrs", "SELECT INBOX (ANNOTATE)", "FETCH 1 (X-GM-MSGID)",
        "XLIST \"\" *", "LIST (REMOTE) \"\" *", "SEARCH RETURN (ALL) ALL", "URLFETCH x"))))
    t.eq([s.split(" ")[1] for s in said[2:]], ["BAD"] * 10, "commands that are not carried", )
    t.ok("COMPRESS" in said[2] and "ENABLE" in said[3], "by name", said[2])
    said = raw(box, "a CAPABILITY", LOGIN, "b CAPABILITY")
    t.ok("STARTTLS" in said[1] and "IDLE UIDPLUS MOVE" in said[3] and "ENABLE CONDSTORE QRESYNC LIST-STATUS" in said[3] and not [x for x in ("COMPRESS", "UTF8", "SORT", "CATENATE", "BINARY") if x in said[3]],
         "what is offered", said[3])
    said = last(box, "b EXAMINE INBOX", ["c APPEND Sent {3000001}\r\n", "c "])
    t.ok("imap_size" in said, "a message that is larger than it may be", said)
    said = last(box, ["b APPEND Sent {3000001+}\r\n" + "x" * 3000001 + "\r\nc NOOP\r\n", "c "])
    t.ok("imap_size" in said and said.strip().splitlines()[-1].startswith("c OK"), "or comes at once", said[-300:])


def reading(t, box, d, server):
    """Read-only: a mailbox is opened so, and nothing that reads leaves a trace."""
    before = (server.folders(), server.subjects("INBOX"), server.flags("INBOX"))
    said = raw(box, LOGIN, "b SELECT INBOX", "c FETCH 1 (BODY[])", "d FETCH 1 RFC822", "e STORE 1 +FLAGS (\\Seen)", "f STORE 1 FLAGS (\\Deleted)",
               "g EXPUNGE", "h UID EXPUNGE 1", "i COPY 1 Sent", "j MOVE 1 Sent", ["k APPEND Sent {5}\r\n", "k "], "l CREATE Archive/x",
               "m DELETE Sent", "n CLOSE", host=READER, port=993, tls="tls")[2:]
    t.ok("[READ-ONLY]" in said[0] and "welcome-4711" in said[1] and "welcome-4711" in said[2], "it reads", str(said[:3])[-600:])
    t.eq([s.split(" ")[1] for s in said[3:12]], ["NO"] * 9, "and does nothing else")
    t.ok(all("imap_action" in s for s in said[3:12]) and said[12].startswith("n OK"), "for its rule", str(said[3:]))
    t.eq((server.folders(), server.subjects("INBOX"), server.flags("INBOX")), before, "and nothing is changed")
    server.put("INBOX", b"marked")
    with server.direct() as c:
        c.select("INBOX")
        c.store("1", "+FLAGS", "\\Deleted")
    n = len(server.subjects("INBOX"))
    said = raw(box, LOGIN, "b SELECT INBOX", "c STORE 2 +FLAGS (\\Flagged)", "d STORE 2 +FLAGS (\\Deleted)", "e EXPUNGE", "f CLOSE", "g LOGOUT", host="flags.example.com")
    t.eq([s.split("\r\n")[-2].split(" ")[1] if "\r\n" in s else s for s in said[3:8]], ["OK", "NO", "NO", "OK", "OK"], "with `flag` alone")
    t.eq(len(server.subjects("INBOX")), n, "CLOSE deletes nothing of others'")
    with server.direct() as c:
        c.select("INBOX")
        c.store("1", "-FLAGS", "\\Deleted")


def number(said, word):
    found = re.search(word + r" (\d+)", said)
    return found.group(1) if found else "1"


def changes(t, box, d, server):
    """What changed since (RFC 7162), as Thunderbird and mutt ask for it, and LIST with STATUS (RFC 5819)."""
    for subject in (b"one", b"two", b"three"):
        server.put("Archive/changes", subject)
    said = raw(box, LOGIN, "b ENABLE CONDSTORE UTF8=ACCEPT", "c SELECT Archive/changes (CONDSTORE)", "d FETCH 1 (UID FLAGS MODSEQ)", "e STATUS Archive/changes (HIGHESTMODSEQ)",
               'f LIST "" * RETURN (STATUS (MESSAGES UIDNEXT HIGHESTMODSEQ))')[2:]
    t.ok("* ENABLED CONDSTORE\r\n" in said[0] and "[HIGHESTMODSEQ " in said[1] and "MODSEQ (" in said[2] and "(HIGHESTMODSEQ " in said[3], "CONDSTORE", str(said))
    t.ok('* STATUS "Archive/changes" (MESSAGES 3 ' in said[4] and "Secret" not in said[4], "LIST with STATUS has what the rule has", said[4])
    valid, since = number(said[1], "UIDVALIDITY"), number(said[1], "HIGHESTMODSEQ")
    with server.direct() as c:
        c.select("Archive/changes")
        c.store("3", "+FLAGS", "\\Flagged")
        c.store("1", "+FLAGS", "\\Deleted")
        c.expunge()
    said = raw(box, LOGIN, "b ENABLE QRESYNC", "c SELECT Archive/changes (QRESYNC (%s %s 1:9))" % (valid, since), "d UID FETCH 1:* (FLAGS) (CHANGEDSINCE %s VANISHED)" % since,
               "e SEARCH MODSEQ %s" % since, "f UID STORE 1:* (UNCHANGEDSINCE %s) +FLAGS.SILENT (\\Seen)" % since, "g UID STORE 1:* +FLAGS (\\Deleted)",
               "h EXPUNGE")[2:]
    t.ok("* VANISHED (EARLIER) " in said[1] and "MODSEQ" in said[1] and "\\Flagged" in said[1], "QRESYNC: what went and what changed", said[1])
    t.ok("* VANISHED (EARLIER) " in said[2] and said[2].count(" FETCH ") == 1, "and so does FETCH", said[2])
    t.ok("* SEARCH " in said[3] and "(MODSEQ " in said[3] and "[MODIFIED " in said[4] and "* VANISHED " in said[6], "a search, a change that lost, an expunge", str(said[3:]))
    said = raw(box, LOGIN, "b ENABLE QRESYNC", "c SELECT Secret (QRESYNC (%s %s))" % (valid, since), "d SELECT INBOX (CONDSTORE)", "e STORE 1 (UNCHANGEDSINCE 99) +FLAGS (x)",
               host=READER, port=993, tls="tls")[2:]
    t.ok("imap_folder" in said[1] and "[READ-ONLY]" in said[2] and "imap_action" in said[3], "and it is the rule's as any command", str(said))
    with server.direct() as c:
        c.delete("Archive/changes")


def strict(t, box, d, server):
    """What one reader of lines, literals and quotes takes apart in another way than the next."""
    before = (server.folders(), server.subjects("INBOX"), server.subjects("Secret"))
    for what, text in (("a line's end within quotes", 'b LIST "" "x\r\nc SELECT Secret"\r\n'), ("a bare newline", "b NOOP\nc SELECT Secret\r\n"),
                       ("a return alone", "b NOOP\rc SELECT Secret\r\n"), ("a byte 0", "b LIST \"\" \"a\0b\"\r\n"), ("no tag", "\r\nSELECT Secret\r\n"),
                       ("a command without an end", "b SEARCH " + "ALL " * 10000 + "\r\n"),
                       ("a literal of four gigabytes", "b LIST \"\" {4294967296}\r\n"), ("a literal that is too long", "b LIST \"\" {40000+}\r\n" + "x" * 40000)):
        said = last(box, [text, "z "])
        t.ok("imap_protocol" in said and said.endswith("end"), what + " ends it", said[-300:])
    for what, text in (("a line's end within a literal", "b SELECT {17+}\r\nINBOX\r\nc CREATE x\r\n"), ("an announcement within quotes", 'b SELECT "INBOX{3}"\r\n'),
                       ("a literal that is no string's", "b FETCH 1 {4+}\r\nBODY\r\n"), ("two blanks", "b  NOOP\r\n"), ("a blank at the end", "b NOOP \r\n"),
                       ("brackets that are left open", "b FETCH 1 (FLAGS\r\n"), ("a section of no form", "b FETCH 1 (BODY[1.x])\r\n")):
        said = last(box, [text, "b "], "c NOOP")
        t.ok(said.startswith("c OK"), what + " is refused", said[-300:])
    said = raw(box, ["a STARTTLS\r\nb LOGIN x y\r\n", "b "])
    t.eq(said[1], "end", "a command behind STARTTLS")
    said = raw(box, "a STARTTLS", ["b LOGIN x y\r\n", "b "])
    t.ok(said[1].startswith("a OK") and said[2] == "end", "a command in place of TLS", str(said))
    said = last(box, ["b APPEND Sent {5+}\r\nhello (\\Seen) {6+}\r\nsecond\r\n", "b "])
    t.ok("imap_protocol" in said, "a second message of one APPEND", said)
    said = last(box, ["b APPEND Sent {5+}\r\nhe\0lo\r\n", "b "])
    t.ok("imap_protocol" in said, "a byte 0 in a message", said)
    said = last(box, ["b IDLE\r\n", "+"], ["c SELECT Secret\r\n", "c "])
    t.ok("imap_protocol" in said, "a command in place of DONE", said)
    said = last(box, ["b SELECT INBOX\r\nc SEARCH ALL\r\nd STATUS Sent (MESSAGES)\r\ne NOOP\r\n", "e "])
    t.ok([x[:4] for x in said.splitlines() if x[0] in "bcde"] == ["b OK", "c OK", "d OK", "e OK"], "a pipeline is answered in its order", said)
    said = raw(box, *["a NOSUCH"] * 200)
    t.ok(said[-1].startswith("* BYE") or said[-1].endswith("end"), "two hundred refusals end it", said[-1])
    t.eq((server.folders(), server.subjects("INBOX"), server.subjects("Secret")), before, "nothing came of them")


def records(t, d):
    d.settle()
    admitted = [r for r in d.kinds("admitted") if r.get("scheme") == "imap"]
    t.ok(admitted and all(r.get("user") == imap.USER and r.get("credential") == "app" and r.get("role") == "imap-back" for r in admitted),
         "a session is on record before it goes", str(admitted[:1]))
    ends = d.ends(admitted)
    t.ok(all(r["id"] in ends for r in admitted), "each has one end", str([r for r in admitted if r["id"] not in ends][:3]))
    did = " ".join(r.get("statements", "") for r in ends.values())
    t.ok("append/Sent:3" in did and "move/Archive/2026:1" in did and "fetch/INBOX:" in did and "select/INBOX:" in did, "with what it did, and where", did[:600])
    t.ok(any(r.get("bytes_up", 0) > 1900000 and r.get("bytes_down", 0) > 1900000 for r in ends.values()), "and its bytes")
    denied = {r.get("code"): r for r in d.kinds("denied")}
    t.ok(set(denied) >= {"imap_folder", "imap_action", "imap_size", "imap_protocol"}, "each refusal is one more", str(sorted(denied)))
    t.ok([r for r in d.kinds("denied") if r.get("statements") == "select/Secret"], "with the mailbox", str(denied.get("imap_folder")))
    said = [(r.get("code"), r.get("detail") if r["code"] == "imap_command" else r.get("statements")) for r in d.kinds("denied")]
    t.ok(("imap_command", "COMPRESS: this command is not carried") in said and ("imap_protocol", "fetch") in said, "and one of no mailbox with the command", str(said)[:900])
    log = b"".join(open(p, "rb").read() for p in d.audit_files())
    t.ok(b"welcome-4711" not in log and imap.PASSWORD.encode() not in log, "no text of messages, no secret")


def deaths(t, box, d):
    def works():
        try:
            return last(box, "b NOOP").startswith("b OK")
        except (ValueError, IndexError, TypeError):
            return False
    died.each(t, box, d, "imap", "exec 3<>/dev/tcp/%s/143; printf 'a LOGIN x y\\r\\nb SELECT INBOX\\r\\nc IDLE\\r\\n' >&3; cat <&3; echo ' cut'" % HOST,
              (" cut\n",), works)


GREETING, DONE = b"* OK x\r\n", b"* CAPABILITY IMAP4rev1 AUTH=PLAIN AUTH=XOAUTH2 IDLE\r\nTAG OK x\r\n"


def fakes():
    """Servers, and those between, that would have the login in clear or an answer of their own believed."""
    capable = b"* CAPABILITY IMAP4rev1 STARTTLS AUTH=PLAIN\r\nTAG OK x\r\n"
    return [(what, "f%d.example.com" % i, imap.Scripted(*texts), code) for i, (what, texts, code) in enumerate((
        ("no STARTTLS", (GREETING, DONE, b"TAG OK x\r\n"), "upstream_tls"),
        ("more behind the answer to STARTTLS", (GREETING, capable, b"TAG OK go\r\n* CAPABILITY AUTH=PLAIN\r\n"), "upstream_protocol"),
        ("no TLS behind it", (GREETING, capable, b"TAG OK go\r\n", b"* OK x\r\n"), "upstream_tls"),
        ("STARTTLS refused", (GREETING, capable, b"TAG NO x\r\n"), "upstream_tls"),
        ("a greeting as if there was a login", (b"* PREAUTH x\r\n",), "upstream_protocol"),
        ("another tag", (GREETING, b"z OK x\r\n"), "upstream_protocol"),
        ("no answer at all", (b"HTTP/1.1 200 OK\r\n",), "upstream_protocol")))]


def spoken():
    """Servers in clear that are let in, and then say something. -> what a client gets of SELECT"""
    login = (GREETING, DONE, b"+ \r\n", b"TAG OK x\r\n", DONE)
    said = imap.PASSWORD.encode()
    return [(what, "s%d.example.com" % i, imap.Scripted(*login + texts), wanted) for i, (what, texts, wanted) in enumerate((
        ("a password that it says", (b"* OK " + said + b"\r\n* NO [" + said + b"] x\r\n* BYE " + said + b"\r\nTAG NO [NOPERM] " + said + b" \r\n",),
         lambda s: imap.PASSWORD not in s and "b NO [NOPERM] the server refuses it" in s),
        ("data that have its words, which would tell a guess from others", (b"* 1 FETCH (BODY[] {29}\r\nword: " + said + b"\r\n)\r\nTAG OK x\r\n",),
         lambda s: "word: " + imap.PASSWORD in s and "b OK" in s),
        ("mailboxes that its rule has not", (b"* LIST () \"/\" INBOX\r\n* LIST () \"/\" {6}\r\nSecret\r\n* LSUB () \"/\" \"Secret\"\r\n* STATUS Secret (MESSAGES 4)\r\n"
                                             b"TAG OK x\r\n",), lambda s: "INBOX" in s and "Secret" not in s),
        ("what is between it and us", (b"* CAPABILITY COMPRESS=DEFLATE\r\n* OK [CAPABILITY COMPRESS=DEFLATE] x\r\n* ENABLED X\r\n* ACL Secret x\r\nTAG OK [REFERRAL imap://x/] y\r\n",),
         lambda s: "COMPRESS" not in s and "ENABLED" not in s and "Secret" not in s and "REFERRAL" not in s and "b OK" in s),
        ("words that end as a literal does", (b"TAG NO wait {400}\r\n",), lambda s: "{400}" not in s and "b NO" in s),
        ("an alert, which people must see", (b"* OK [ALERT] the mailbox is full {3}\r\nTAG OK x\r\n",),
         lambda s: "* OK [ALERT] the mailbox is full ?3?" in s and "b OK" in s),
        ("a code of 50,000 bytes", (b"TAG OK [COPYUID 1 " + b"7," * 25000 + b"7 8] x\r\n",), lambda s: s.startswith("b OK [COPYUID 1 7,") and len(s) > 50000),
        ("a list that is left open", (b"* 1 FETCH (FLAGS (\r\nTAG OK x\r\n",), lambda s: "b OK" not in s),
        ("a literal without an end", (b"* 1 FETCH (BODY[] {4000}\r\nTAG OK x\r\n", b""), lambda s: "b OK" not in s),
        ("an end that nobody asked for", (b"TAG OK x\r\nD99 OK x\r\n",), lambda s: "upstream_protocol" in s or "b OK" in s),
        ("a wish for more", (b"+ more\r\n",), lambda s: "upstream_protocol" in s)))]


def more(t, server):
    """Other logins, bounds, and servers of no good. Each has a name of its own."""
    liars, speakers = fakes(), spoken()
    rules = [allow(host=host) for _, host, _, _ in liars] + [allow(host=host, allow_plaintext=True) for _, host, _, _ in speakers]
    rules += [allow(host="echo.example.com", allow_plaintext=True, **{"with": {"imap_login": "quotes"}}), allow(host="code.example.com", allow_plaintext=True, **{"with": {"imap_login": "quotes"}}), allow(host="login.example.com", **{"with": {"imap_login": "login"}}), allow(host="wrong.example.com", **{"with": {"imap_login": "wrong"}}),
              allow(host="token.example.com", allow_plaintext=True, **{"with": {"imap_login": "token"}}), allow(host="bare.example.com"),
              allow(host="few.example.com", session_commands=3), allow(host="small.example.com", megabytes=1), allow(host="short.example.com", seconds=3)]
    d = bed(t, "more", rules, server, "login.example.com", "wrong.example.com", "bare.example.com", "few.example.com", "small.example.com", "short.example.com")
    for name, auth, word in (("login", "login", imap.PASSWORD), ("wrong", "plain", "another-4711"), ("token", "xoauth2", imap.TOKEN), ("quotes", "login", 'an\\other"4711')):
        d.secret(name + "_word", word)
        d.secrets[name] = {"imap_login": {"user": imap.USER, "password": name + "_word", "auth": auth}}
    echo = imap.Scripted(GREETING, DONE, b'TAG NO [AUTHENTICATIONFAILED] LOGIN "u" "an\\\\other\\"4711": no\r\n')
    code = imap.Scripted(GREETING, DONE, b"TAG NO [PERMANENTFLAGS (word-4711)] no\r\n")
    token = imap.Scripted(GREETING, DONE, b"+ \r\n", b"TAG OK x\r\n", DONE, b"TAG OK bye\r\n")
    d.resolve.update({host + ":143": fake.address for _, host, fake, _ in liars + speakers})
    d.resolve.update({"token.example.com:143": token.address, "echo.example.com:143": echo.address, "code.example.com:143": code.address})
    d.extra["limits"] = {"tunnel_seconds": 1}  # of WebSockets
    box = durward.Sandbox(d)
    t.ok(last(box, "b NOOP", host="login.example.com").startswith("b OK"), "auth: login")
    said = last(box, host="wrong.example.com")
    t.ok(said.startswith("a NO") and "upstream_login" in said, "a wrong password", said)
    t.ok(last(box, host="token.example.com").startswith("a OK") and b"dXNlcj1hZ2VudEBhY21lLmV4YW1wbGUBYXV0aD1CZWFyZXIg" in b"".join(token.said), "auth: xoauth2",
         repr(token.said))
    said = last(box, host="echo.example.com")
    t.ok(said.startswith("a NO") and "the server says NO [AUTHENTICATIONFAILED]: upstream_login" in said and "4711" not in said, "a server that says a login that it refuses", said)
    t.ok(d.wait_records(1, "aborted", detail="the server says NO [AUTHENTICATIONFAILED]"), "of which nothing is on record but its code")
    said = last(box, host="code.example.com")
    t.ok("the server says NO [PERMANENTFLAGS]: upstream_login" in said and "4711" not in said, "a server that says it in a code", said)
    for what, host, fake, code in liars:
        said = last(box, host=host)
        t.ok(code in said and not any(b"AUTH" in s.upper() or b"LOGIN" in s.upper() for s in fake.said), what, said + repr(fake.said)[:200])
        fake.close()
    for what, host, fake, wanted in speakers:
        said = last(box, "b SELECT INBOX", host=host) if "without an end" not in what else raw(box, LOGIN, ["b SELECT INBOX\r\nc NOOP\r\n", "* 1 "], host=host)[-1]
        t.ok(wanted(said), what, said[-500:])
        fake.close()
    t.ok("upstream_tls" in last(box, host="bare.example.com"), "a server whose certificate is not for that name")
    said = last(box, *["%s STATUS Sent (MESSAGES)" % x for x in "bcde"], host="few.example.com")
    t.ok("imap_commands" in said, "as many commands as the rule leaves", said)
    said = last(box, "b SELECT Sent", "c FETCH 1:* BODY.PEEK[]", host="small.example.com")
    t.ok(said.endswith("end") and len(said) < 1000100, "as many bytes", said[-200:])
    said = last(box, ["b IDLE\r\n", "b "], host="short.example.com")
    t.ok("imap_seconds" in said, "and as long as it leaves, though nothing goes either way", said)
    t.ok(all(d.wait_records(1, "aborted", code=c) for c in ("imap_commands", "imap_megabytes", "imap_seconds")), "which is on record")
    box.close()


def held(calls):
    def look():
        found = calls.ask("GET", "/v1/approvals")["approvals"]
        return found if len(found) == 1 else None
    return (tap.wait_for(look, 10, 0.05) or [{}])[0]


def asked(t, server):
    """`ask` holds a login; a budget of bytes ends a session."""
    ask = allow("imaps")
    ask["ask"] = ask.pop("allow")
    d = bed(t, "asked", [ask, allow("imaps", host="few.example.com", budget={"upload": "100KB/h"})], server, "few.example.com")
    d.serve()
    calls = api.Api(d.socket)
    box, got = calls.create(policy="coder")["id"], []
    curl = "curl -sS -v --max-time 60 'imaps://%s/INBOX;UID=1/;SECTION=TEXT' --user a:b 2>&1"
    for decision, code in (("allow", 0), ("deny", 1)):
        before, n = server.logins(), len(got)
        thread = threading.Thread(target=lambda: got.append(api.Api(d.socket, timeout=90).sh(box, curl % HOST)))
        thread.start()
        one = held(calls)
        t.eq((one.get("url"), one.get("credential"), server.logins(), len(got)), ("imap://%s:993/" % HOST, "app", before, n), "a session is held")
        calls.ask("POST", "/v1/approvals/%s/%s" % (one.get("id"), decision))
        thread.join(60)
        t.ok((got[-1][0] == 0) == (code == 0) and (b"welcome-4711" if code == 0 else b"approval_denied") in got[-1][1], decision, str(got[-1])[-500:])
    large = ("(printf 'Subject: large\\r\\n\\r\\n'; yes 0123456789 | head -c 150000) > /tmp/l; curl -sS -v --max-time 60 'imaps://few.example.com/Sent' "
             "--user a:b -T /tmp/l 2>&1")
    n = len(server.subjects("Sent"))
    said = api.Api(d.socket, timeout=90).sh(box, large)
    t.ok(said[0] != 0 and b"budget" in said[1] and d.wait_records(1, "aborted", code="budget"), "a budget of 100 kB takes no message of 150", str(said)[-400:])
    t.eq(len(server.subjects("Sent")), n, "and no part of one is there")
    d.stop()


def flow(t, d, server):
    """imapflow, as programs for Node have it: STARTTLS, TLS at once, streams, IDLE."""
    modules = os.path.join(durward.clients_dir(), "node_modules")
    if not os.path.isdir(modules + "/imapflow"):
        t.skip("imapflow", "the clients' environment has none (tests/functional/clients/setup)")
        return
    box = durward.Sandbox(d, binds=durward.client_binds("node_modules"))
    inside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inside")
    for port in (143, 993):
        status, out, err = box.sh("NODE_PATH=%s node %s/imap_flow.js %s %d" % (modules, inside, HOST, port), timeout=60)
        t.eq((status, out.strip()), (0, "ok"), "imapflow, port %d: %s" % (port, (out + err)[-400:]))
    box.close()


def main(t):
    why = imap.missing()
    if why:
        t.skip("everything", why)
        return
    first = durward.Durward(t, "ca")
    server = imap.Imap(t, first.ca, HOST, READER, *[n + ".example.com" for n in ("flags", "login", "wrong", "few", "small", "short")])
    server.pem = first.ca.pem
    server.put("INBOX", b"first")
    server.put("INBOX", "gr\u00fc\u00dfe".encode(), b"second")
    d = bed(t, "d", [allow(), allow("imaps"), allow("imaps", host=READER, access="read-only"),
                     allow(host="flags.example.com", actions=["flag"])], server, "flags.example.com")
    scanner = scan.Scanner(app=imap.PASSWORD.encode())
    box = durward.Sandbox(d)
    for part in (ordinary, programs, refused, reading, changes, strict):
        t.part(part, t, box, d, server)
    t.part(scan.scan_sandbox, t, box, scanner)
    t.part(scan.scan_front, t, d, "imap-front", HOST, scanner)
    t.part(records, t, d)
    t.part(deaths, t, box, d)
    box.close()
    t.part(flow, t, d, server)
    t.part(more, t, server)
    t.part(asked, t, server)


tap.run(main, timeout=400)
