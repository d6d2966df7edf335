"""A throw-away certificate authority for origins, made with the openssl program."""
import os
import subprocess


def _openssl(*args, **kw):
    r = subprocess.run(("openssl",) + args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)
    if r.returncode != 0:
        raise RuntimeError("openssl %s: %s" % (args[0], r.stderr.decode()))
    return r.stdout


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
              san=None, usage="serverAuth", key=("ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
              digest="-sha256"):
        """Names are DNS names or IPv4 addresses. san: that extension's text in OpenSSL's form."""
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
                 "-subj", "/CN=" + names[0][:60])
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
