"""How a case is sent. Each function returns a sender: sender(bed) -> Out."""
import ssl

from harness import client

from . import hello as tls
from .bed import CLEAR, EVIL, KEYED, ODD, OTHER, PATHS, PLAIN, RO, WILD

WORDS = {"{P}": PLAIN, "{E}": EVIL, "{O}": OTHER, "{K}": KEYED, "{C}": CLEAR, "{R}": RO,
         "{W}": WILD, "{S}": PATHS}


class Out:
    """What came back: a reply (status, code, id) or a TLS alert; more replies in .more."""

    def __init__(self, status=None, code=None, id=None, alert=None, closed=None, reply=None,
                 more=()):
        self.status, self.code, self.id, self.alert = status, code, id, alert
        self.closed, self.reply, self.more = closed, reply, list(more)

    def __repr__(self):
        if self.alert is not None:
            return "alert %s" % (self.alert,)
        return "%s %s closed=%s more=%s" % (self.status, self.code, self.closed, self.more)


def fill(data):
    if isinstance(data, str):
        data = data.encode("latin-1")
    for word, name in WORDS.items():
        data = data.replace(word.encode(), name.encode())
    return data


def read(stream, method="GET", wait=3):
    """The reply, whether the connection ends after it, and what else came."""
    try:
        r = stream.reply(method)
    except (client.Ended, OSError) as e:
        return Out(None, repr(e), closed=True)
    if r.status < 400:
        return Out(r.status, r.code, r.id, reply=r)
    # a refusal by policy alone may keep the connection: nothing to wait for
    closed = None if r.status == 403 else stream.ended(wait)
    return Out(r.status, r.code, r.id, closed=closed, reply=r)


def answer_to(st, data, method="GET"):
    """Of bytes whose connection may end before all of them have gone."""
    try:
        st.send(data)
    except OSError:
        pass
    return read(st, method)


def http(data, host=PLAIN, method="GET"):
    """Bytes inside TLS to host, after CONNECT and handshake."""
    data, host = fill(data), fill(host).decode()

    def send(bed):
        with bed.gate.tls(host, context=bed.context) as st:
            return answer_to(st, data, method)
    return send


def forward(data):
    """Bytes in clear to the explicit port."""
    data = fill(data)

    def send(bed):
        with bed.gate.plain() as st:
            return answer_to(st, data)
    return send


def clear(data, host=CLEAR):
    """Bytes in clear inside a tunnel, after CONNECT."""
    data, host = fill(data), fill(host).decode()

    def send(bed):
        r, st = bed.gate.connect(host + ":80")
        with st:
            return answer_to(st, data) if r.status == 200 else Out(r.status, r.code, r.id)
    return send


def get(path="/", fields="", host=PLAIN, method="GET", said=None, body=b""):
    """A well-formed request, but for what is given."""
    if body:
        fields += "Content-Length: %d\r\n" % len(body)
    data = fill("%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (method, path, said or host, fields))
    return http(data + body, host, method)


def connect(target, host=None, extra=""):
    """CONNECT alone. A tunnel that stands counts as 200."""
    target = fill(target) if isinstance(target, str) else target
    host = target if host is None else fill(host)
    inner = forward(b"CONNECT " + target + b" HTTP/1.1\r\nHost: " + host + b"\r\n" + fill(extra) +
                    b"\r\n")

    def send(bed):
        out = inner(bed)
        if out.status == 200:
            out.reply = None
        return out
    return send


def client_hello(message, target=PLAIN, cut=16384, pieces=None):
    """A handshake of our own making after CONNECT."""
    def send(bed):
        r, st = bed.gate.connect(target + ":443")
        with st:
            if r.status != 200:
                return Out(r.status, r.code, r.id)
            data = message if message[:1] == b"\x16" else tls.records(message, cut)
            for part in pieces(data) if pieces else [data]:
                try:
                    st.send(part)
                except OSError:
                    break
            what, number = tls.answer(st)
            if what == "alert":
                return Out(alert=number, closed=st.ended(2))
            return Out(200 if what == "hello" else None, what, reply=number,
                       closed=what == "closed")
    return send


def sni(name, target=PLAIN, more=b"", **kw):
    return client_hello(tls.hello(tls.server_name(name) + more), target, **kw)


def names(target, name, host, path="/"):
    """CONNECT to one, SNI of another, Host of a third, with an ordinary client."""
    def send(bed):
        try:
            with bed.gate.tls(target, sni=name, context=bed.loose) as st:
                st.send("GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (path, host))
                return read(st)
        except ssl.SSLError as e:
            text = str(e).lower()
            return Out(alert=tls.UNRECOGNIZED_NAME if "unrecognized" in text else text, closed=True)
        except client.Ended as e:
            return Out(None, str(e), closed=True)
    return send


def answered(reply, method="GET"):
    """An allowed origin answers with these bytes."""
    inner = get(host=ODD, method=method)

    def send(bed):
        bed.odd.answer = reply
        try:
            return inner(bed)
        finally:
            bed.odd.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    return send
