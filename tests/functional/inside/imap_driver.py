"""imaplib as an agent's program uses it. argv: host. -> "ok", or what went wrong."""
import imaplib
import ssl
import sys
import threading
import time

HOST = sys.argv[1]
LETTER = b"From: agent@acme.example\r\nSubject: %s\r\n\r\n%s"


def check(what, got, wanted):
    if got != wanted:
        print("%s: %r, not %r" % (what, got, wanted))


def names(c, *args):
    return sorted(x.decode().rsplit(" ", 1)[1].strip('"') for x in c.list(*args)[1] if x)


def reading(c):
    check("folders", names(c), ["Archive/2026", "INBOX", "Sent"])
    check("pattern", names(c, '""', "Archive/%"), ["Archive/2026"])
    check("select", c.select("INBOX")[0], "OK")
    check("search", c.search(None, "SUBJECT", '"first"')[1], [b"1"])
    check("search in UTF-8", c.uid("SEARCH", "CHARSET", "UTF-8", "TEXT", "first")[0], "OK")
    c.literal = "gr\u00fc\u00dfe".encode()
    check("a literal", c.search("UTF-8", "SUBJECT")[1], [b"2"])
    text = c.fetch("1", "(RFC822)")[1][0][1]
    check("a message", text.split(b"\r\n\r\n")[1].strip(), b"welcome-4711")
    check("a part", c.fetch("1", "(BODY.PEEK[TEXT]<0.7>)")[1][0][1], b"welcome")
    check("headers", c.fetch("1:2", "(UID BODY.PEEK[HEADER.FIELDS (Subject)])")[0], "OK")
    check("all of it", c.fetch("1:*", "(FLAGS ENVELOPE BODYSTRUCTURE INTERNALDATE RFC822.SIZE)")[0], "OK")
    check("status", c.status("Sent", "(MESSAGES UIDNEXT)")[0], "OK")
    check("namespace", c.namespace()[0], "OK")


def writing(c):
    large = LETTER % (b"large", b"0123456789abcde\r\n" * 120000)
    check("append", c.append("Sent", "(\\Seen)", imaplib.Time2Internaldate(time.time()), LETTER % (b"sent", b"x\r\n"))[0], "OK")
    check("a large one", c.append("Sent", None, None, large)[0], "OK")
    check("another", c.append("Sent", None, None, LETTER % (b"gone", b"x\r\n"))[0], "OK")
    c.select("Sent")
    check("back", len(c.fetch("2", "(BODY.PEEK[])")[1][0][1]), len(large))
    check("store", c.store("1", "+FLAGS", "(\\Flagged $Todo)")[0], "OK")
    check("copy", c.copy("1", "Archive/2026")[0], "OK")
    check("move", c.uid("MOVE", "1", "Archive/2026")[0], "OK")
    check("delete", c.store("2", "+FLAGS", "\\Deleted")[0], "OK")
    check("expunge", c.expunge()[0], "OK")
    check("create", c.create("Archive/2027")[0], "OK")
    check("rename", c.rename("Archive/2027", "Archive/2028")[0], "OK")
    check("remove", c.delete("Archive/2028")[0], "OK")
    check("close", c.close()[0], "OK")


def idle(c, other):
    c.select("Sent")
    c.send(b"I1 IDLE\r\n")
    check("idle", c.readline()[:1], b"+")
    threading.Timer(0.1, other.append, ("Sent", None, None, LETTER % (b"idle", b"x"))).start()
    while not c.readline().strip().endswith(b"EXISTS"):
        pass
    c.send(b"DONE\r\n")
    while not c.readline().startswith(b"I1 OK"):
        pass


def main():
    context = ssl.create_default_context()
    with imaplib.IMAP4(HOST, 143, timeout=30) as c:
        check("a login of its own", c.login("anybody", "a \"password\" of its own")[0], "OK")
        reading(c)
    with imaplib.IMAP4(HOST, 143, timeout=30) as c:
        c.starttls(ssl_context=context)
        check("xoauth2", c.authenticate("XOAUTH2", lambda _: b"user=x\1auth=Bearer y\1\1")[0], "OK")
        writing(c)
        with imaplib.IMAP4_SSL(HOST, 993, timeout=30, ssl_context=context) as other:
            other.login("anybody", "x")
            idle(c, other)
    with imaplib.IMAP4_SSL(HOST, 993, timeout=30, ssl_context=context) as c:
        check("plain", c.authenticate("PLAIN", lambda _: b"\0x\0y")[0], "OK")
        try:
            check("another mailbox", c.select("Secret")[0], "NO")
        except imaplib.IMAP4.error as e:
            print("another mailbox: %r" % e)
    print("\"ok\"")


main()
