"""A throw-away certificate authority for origins, made with the openssl program."""
import os
import subprocess


def _openssl(*args, **kw):
    r = subprocess.run(("openssl",) + args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)
    if r.returncode != 0:
        raise RuntimeError("openssl %s: %s" % (args[0], r.stderr.decode()))
    return r.stdout


RSA = ("rsa:2048",)
EC = ("ec", "-pkeyopt", "ec_paramgen_curve:P-256")
P384 = ("ec", "-pkeyopt", "ec_paramgen_curve:P-384")
ED = ("ed25519",)


def watch_key(scanner, name, file):
    """A private key's text, and its number, as it would lie in memory."""
    with open(file) as f:
        body = "".join(f.read().split("\n")[1:-2])
    der = _openssl("pkey", "-in", file, "-outform", "DER")
    marks = [m for m in (b"\x02\x01\x01\x04", b"\x04\x22\x04") if m in der and len(der) < 250]  # RFC 5915, RFC 8410: its length is next
    if marks:
        at = der.index(marks[0]) + len(marks[0])
        number = der[at + 1:at + 1 + der[at]]
    else:
        number = der[len(der) // 2:][:32]  # of RSA, in the middle of the private parts
    assert len(number) >= 32
    scanner.add(name, body[60:110].encode() if len(body) > 110 else body.encode())
    scanner.needles[number] = (name, "number")
    scanner.longest = max(scanner.longest, len(number))


class Authority:
    """ca.pem is what upstream.ca names. issue() makes (certificate chain, key) files."""

    def __init__(self, folder, name="Test Origin CA"):
        self.dir = folder
        os.makedirs(folder, exist_ok=True)
        self.key = os.path.join(folder, "ca.key")
        self.pem = os.path.join(folder, "ca.pem")
        self.serial = 1
        _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-keyout", self.key, "-out", self.pem, "-days", "3", "-subj", "/CN=" + name,
                 "-addext", "basicConstraints=critical,CA:TRUE",
                 "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def issue(self, *names, expired=False, not_yet=False, self_signed=False, cn_only=False,
              san=None, usage="serverAuth", key=EC,
              digest="-sha256", subject=None):
        """Names are DNS names or IPv4 addresses. san: that extension's text in OpenSSL's form; subject: in its form, too."""
        kind = key
        self.serial += 1
        base = os.path.join(self.dir, "s%d" % self.serial)
        key, csr, crt, ext = base + ".key", base + ".csr", base + ".pem", base + ".ext"
        san = san or ",".join(("IP:" if n.replace(".", "").isdigit() else "DNS:") + n for n in names)
        with open(ext, "w") as f:
            f.write("basicConstraints=critical,CA:FALSE\nextendedKeyUsage=%s\n" % usage)
            if not cn_only:
                f.write("subjectAltName=%s\n" % san)
        _openssl("req", "-new", "-newkey", *kind, "-nodes", "-keyout", key, "-out", csr,
                 "-subj", subject or "/CN=" + names[0][:60])
        when = ["-days", "2"]
        if expired:
            when = ["-startdate", "20200101000000Z", "-enddate", "20200201000000Z"]
        if not_yet:
            when = ["-startdate", "20990101000000Z", "-enddate", "20990201000000Z"]
        if self_signed:
            _openssl("x509", "-req", "-in", csr, "-signkey", key, "-out", crt, "-days", "2",
                     "-extfile", ext)
        elif when[0] == "-days":
            _openssl("x509", "-req", "-in", csr, "-CA", self.pem, "-CAkey", self.key, digest,
                     "-set_serial", str(self.serial), "-out", crt, "-extfile", ext, *when)
        else:
            self._issue_dated(csr, crt, ext, when)
        return crt, key

    def _issue_dated(self, csr, crt, ext, when):
        """Only `openssl ca` takes explicit dates in OpenSSL 3.0."""
        work = crt + ".d"
        os.makedirs(work)
        for name, text in (("index.txt", ""), ("serial", "%04X" % (0x1000 + self.serial))):
            with open(os.path.join(work, name), "w") as f:
                f.write(text)
        conf = os.path.join(work, "ca.cnf")
        with open(conf, "w") as f:
            f.write("[ca]\ndefault_ca=d\n[d]\nnew_certs_dir=%s\ndatabase=%s/index.txt\n"
                    "serial=%s/serial\ndefault_md=sha256\npolicy=p\nunique_subject=no\n"
                    "[p]\ncommonName=supplied\n" % (work, work, work))
        _openssl("ca", "-batch", "-notext", "-config", conf, "-in", csr, "-out", crt, "-cert",
                 self.pem, "-keyfile", self.key, "-extfile", ext, *when)


class Forge:
    """Certificates as the field has them, each field as the test says it: v1, no key ids, serial
    zero. cert() gives (certificate file, key file)."""

    def __init__(self, folder):
        self.dir, self.n = folder, 0
        os.makedirs(folder, exist_ok=True)

    def cert(self, subject, issuer=None, ext=(), serial=None, same_key=None):
        """ext: lines of an extension file; none at all makes version 1. issuer: what cert() gave, None: itself."""
        self.n += 1
        base = os.path.join(self.dir, "%d" % self.n)
        crt, key, csr, conf = (base + x for x in (".pem", ".key", ".csr", ".ext"))
        if same_key:
            key = same_key[1]
        else:
            _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key)
        _openssl("req", "-new", "-key", key, "-out", csr, "-subj", subject)
        more = ["-signkey", key] if issuer is None else ["-CA", issuer[0], "-CAkey", issuer[1]]
        if ext:
            with open(conf, "w") as f:
                f.write("\n".join(ext) + "\n")
            more += ["-extfile", conf]
        _openssl("x509", "-req", "-in", csr, "-out", crt, "-days", "2", "-sha256", "-set_serial",
                 str(1000 + self.n if serial is None else serial), *more)
        return crt, key

    def chain(self, leaf, *others):
        """What a server shows: its certificate and the others behind it, in one file."""
        self.n += 1
        path = os.path.join(self.dir, "chain%d.pem" % self.n)
        with open(path, "w") as out:
            for crt, _ in (leaf,) + others:
                with open(crt) as f:
                    out.write(f.read())
        return path, leaf[1]


def verifies(root, chain, host, *options):
    """What the openssl program says of a server's chain. -> (verified, its words)"""
    r = subprocess.run(("openssl", "verify", "-purpose", "sslserver", "-verify_hostname", host, "-CAfile", root[0],
                        "-untrusted", chain[0]) + options + (chain[0],), stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True, timeout=20)
    return r.returncode == 0, r.stdout
