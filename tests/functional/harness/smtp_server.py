"""aiosmtpd as a mail server: three ports, and a line of JSON for each login and each message.
argv: certificate, key, log, port with STARTTLS, port with TLS at once, port in clear."""
import asyncio
import base64
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult

LOGINS = {b"agent@acme.example": b"mail-password-4711"}
TOKEN = b"user=agent@acme.example\x01auth=Bearer mail-token-4711\x01\x01"


def secure(server):
    return server.transport.get_extra_info("ssl_object") is not None


class Handler:
    def __init__(self, log):
        self.log = log

    def note(self, **what):
        with open(self.log, "a") as f:
            f.write(json.dumps(what) + "\n")

    def check(self, server, session, envelope, mechanism, data):
        good = LOGINS.get(data.login) == data.password
        self.note(what="login", mechanism=mechanism, user=data.login.decode(), good=good, tls=secure(server))
        return AuthResult(success=good, handled=False, auth_data=data.login if good else None)

    async def auth_XOAUTH2(self, server, args):
        good = base64.b64decode(args[1]) == TOKEN
        self.note(what="login", mechanism="XOAUTH2", user="", good=good, tls=secure(server))
        return AuthResult(success=good, handled=False, auth_data=b"token" if good else None)

    async def handle_RCPT(self, server, session, envelope, address, options):
        name = address.split("@")[0]
        if name == "nobody":
            return "550 5.1.1 No such user"
        if name == "later":
            return "450 4.2.1 Try again"
        if name.startswith("echo+"):
            return "550 5.1.1 %s: no such user" % name[5:]
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 Ok"

    async def handle_DATA(self, server, session, envelope):
        self.note(what="message", sender=envelope.mail_from, to=envelope.rcpt_tos, options=envelope.mail_options,
                  tls=secure(server), text=envelope.content.decode("latin-1"))
        if b"say-back " in envelope.content:
            return "554 5.6.0 " + envelope.content.split(b"say-back ")[1].split()[0].decode()
        return "554 5.6.0 Not this one" if b"refuse-me" in envelope.content else "250 2.0.0 queued as 4711"


async def main(crt, key, log, *ports):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(crt, key)
    handler, loop = Handler(log), asyncio.get_running_loop()
    kinds = ({"tls_context": context, "require_starttls": True}, {"auth_require_tls": False}, {"auth_require_tls": False})
    for port, kind, tls in zip(ports, kinds, (None, context, None)):
        def make(kind=kind):
            return SMTP(handler, authenticator=handler.check, auth_required=True, enable_SMTPUTF8=True,
                        data_size_limit=60000000, **kind)
        await loop.create_server(make, "127.0.0.1", int(port), ssl=tls)
    print("ready", flush=True)
    await asyncio.Event().wait()


asyncio.run(main(*sys.argv[1:]))
