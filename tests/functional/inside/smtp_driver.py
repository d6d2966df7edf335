"""smtplib as an agent's program uses it. argv: host. -> "ok", or what went wrong."""
import smtplib
import ssl
import sys
from email.message import EmailMessage

HOST = sys.argv[1]


def message(subject, to, text):
    m = EmailMessage()
    m["From"], m["To"], m["Subject"] = "agent@acme.example", to, subject
    m.set_content(text)
    return m


def main():
    with smtplib.SMTP(HOST, 587, timeout=30) as s:
        s.send_message(message("plain", "bob@acme.example", ".\n..\n.leading dots\n"))
        s.send_message(message("again", "bob@acme.example, eve@acme.example", "two of them"))
    with smtplib.SMTP(HOST, 587, timeout=30) as s:
        s.starttls(context=ssl.create_default_context())
        s.login("anybody", "a password of its own")
        s.sendmail("agent@acme.example", ["bob@acme.example"], "Subject: tls\r\n\r\nin TLS\r\n")
        m = message("utf8", "j\u00e9r\u00f4me@acme.example", "gr\u00fc\u00dfe")
        s.send_message(m)
        s.sendmail("agent@acme.example", ["bob@acme.example"], b"Subject: eight\r\n\r\ngr\xc3\xbc\xc3\x9fe\r\n",
                   ["BODY=8BITMIME"])
        s.sendmail("agent@acme.example", ["bob@acme.example"], b"Subject: large\r\n\r\n" + b"0123456789abcde\r\n" * 120000)
    with smtplib.SMTP_SSL(HOST, 465, timeout=30, context=ssl.create_default_context()) as s:
        s.login("anybody", "a password of its own")
        s.sendmail("agent@acme.example", ["bob@acme.example"], "Subject: implicit\r\n\r\nat 465\r\n")
    with smtplib.SMTP(HOST, 587, timeout=30) as s:
        try:
            s.sendmail("agent@acme.example", ["bob@acme.example", "bob@evil.example"], "Subject: part\r\n\r\nx\r\n")
        except smtplib.SMTPException as e:
            print("a part was refused: %r" % e)
        try:
            s.sendmail("agent@acme.example", ["bob@evil.example"], "Subject: never\r\n\r\nx\r\n")
            print("a recipient that the rule has not")
        except smtplib.SMTPRecipientsRefused as e:
            if b"smtp_recipient" not in e.recipients["bob@evil.example"][1]:
                print(repr(e))
    print("\"ok\"")


main()
