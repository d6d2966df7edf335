"""The variables that pair a client with the proxy: the same as `durward env` prints."""
from __future__ import annotations

import os
import ssl
from urllib.parse import urlsplit, urlunsplit

from .models import Identity

WHOLE, EXTRA = "ca-certificates.crt", "durward-ca.pem"
JAVA = "cacerts.p12"
_WHOLE_NAMES = (
    "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO", "GIT_PROXY_SSL_CAINFO", "PIP_CERT",
    "CARGO_HTTP_CAINFO", "CARGO_HTTP_PROXY_CAINFO", "NIX_SSL_CERT_FILE", "npm_config_cafile",
    "YARN_HTTPS_CA_FILE_PATH", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "HTTPLIB2_CA_CERTS",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "BUNDLE_SSL_CA_CERT", "PERL_LWP_SSL_CA_FILE",
    "COMPOSER_CAFILE", "HEX_CACERTS_PATH", "JULIA_SSL_CA_ROOTS_PATH",
)
LOCAL = "localhost,127.0.0.1,::1"


def variables(identity: Identity, trust_dir: str | None = None,
              proxy_host: str | None = None) -> dict[str, str]:
    """Everything a client needs. trust_dir: where its files lie for that client, if not where they
    lie here. proxy_host: HOST or HOST:PORT at which that client reaches the listener, with http:// or
    https:// before it for another one than the daemon says."""
    where = trust_dir or identity.trust_dir
    if not where.startswith("/") or any(c.isspace() for c in where):
        raise ValueError("trust_dir must be an absolute path without white space: %r" % where)
    proxy = reached_at(identity.proxy, proxy_host)
    env = {name: proxy for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")}
    env.update({"NO_PROXY": LOCAL, "no_proxy": LOCAL, "NODE_USE_ENV_PROXY": "1"})
    env.update({name: "%s/%s" % (where, WHOLE) for name in _WHOLE_NAMES})
    # curl verifies a proxy in TLS by SSL_CERT_DIR, if this one is not set or empty.
    env["CURL_CA_BUNDLE"] = "" if proxy.startswith("https:") else "%s/%s" % (where, WHOLE)
    env["SSL_CERT_DIR"] = where + "/certs"
    env["NODE_EXTRA_CA_CERTS"] = env["DENO_CERT"] = "%s/%s" % (where, EXTRA)
    env["JAVA_TOOL_OPTIONS"] = (
        "-Djavax.net.ssl.trustStore=%s/%s -Djavax.net.ssl.trustStoreType=PKCS12 "
        "-Djavax.net.ssl.trustStorePassword=changeit" % (where, JAVA))
    env.update(identity.env)
    return env


def reached_at(proxy: str, host: str | None) -> str:
    """The proxy's address with another host, its token kept."""
    if host is None:
        return proxy
    u = urlsplit(proxy)
    scheme, found, rest = host.rpartition("://")
    if found:
        if scheme not in ("http", "https"):
            raise ValueError("proxy_host: a proxy is http:// or https://: %r" % host)
        u, host = u._replace(scheme=scheme), rest
    if ":" not in host.rpartition("]")[2]:
        host = "%s:%s" % (host, u.port)
    login = u.netloc.rpartition("@")[0]
    return urlunsplit((u.scheme, (login + "@" if login else "") + host, u.path, u.query, u.fragment))


def files(identity: Identity) -> dict[str, bytes]:
    """The files below trust_dir, by name. From the daemon's own directory if this is its host, else
    made here (without the Java store): this machine's roots and the proxy's certificate."""
    found: dict[str, bytes] = {}
    for folder, _, names in os.walk(identity.trust_dir):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as f:
                found[os.path.relpath(path, identity.trust_dir)] = f.read()
    ca = identity.ca.encode()
    if found.get(EXTRA, b"").strip() == ca.strip() and WHOLE in found:
        return found
    roots = ssl.get_default_verify_paths().cafile
    whole = ca
    if roots:
        with open(roots, "rb") as f:
            whole = f.read().rstrip() + b"\n" + ca
    made = {WHOLE: whole, EXTRA: ca, "certs/" + WHOLE: whole}
    for name, pem in identity.ca_hashed.items():
        made["certs/" + name] = pem.encode()
    return made
