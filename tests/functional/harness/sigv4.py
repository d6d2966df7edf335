"""AWS signatures checked by botocore, which others wrote and AWS maintains."""
import glob
import os
import sys
import urllib.parse

from . import durward, tap


def library():
    """botocore out of the client libraries' virtual environment."""
    found = glob.glob(os.path.join(durward.clients_dir(), "venv/lib/python3*/site-packages"))
    if not found or not os.path.isdir(os.path.join(found[0], "botocore")):
        raise tap.Skip("botocore is not there: run tests/functional/clients/setup")
    if found[0] not in sys.path:
        sys.path.append(found[0])


def wrong(req, host, key_id, secret, token=None):
    """Why this request is not signed with that key: "" when it is."""
    library()
    from botocore.auth import S3SigV4Auth, SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials
    auth = req.all("authorization")
    if len(auth) != 1 or not auth[0].startswith("AWS4-HMAC-SHA256 "):
        return "Authorization: %r" % auth
    parts = dict(p.strip().split("=", 1) for p in auth[0][17:].split(","))
    got_id, day, region, service, end = parts["Credential"].split("/")
    if got_id != key_id or end != "aws4_request" or day != req.get("x-amz-date")[:8]:
        return "Credential %s" % parts["Credential"]
    if req.get("x-amz-security-token") != token:
        return "another session token"
    names = parts["SignedHeaders"].split(";")
    missing = [n for n, _ in req.headers if n.startswith("x-amz-") and n not in names]
    if names != sorted(names) or "host" not in names or missing:
        return "SignedHeaders %s without %s" % (names, missing)
    headers = [(n, v) for n, v in req.headers if n.lower() in names and n.lower() != "host"]
    url = "https://%s%s" % (host, req.path) + ("?" + req.query if req.query else "")
    again = AWSRequest(method=req.method, url=url, data=req.body)
    for n, v in headers:
        again.headers.add_header(n, v)
    again.headers["Host"] = req.get("host")
    again.context["timestamp"] = req.get("x-amz-date")
    maker = (S3SigV4Auth if service == "s3" else SigV4Auth)(
        Credentials(key_id, secret, token), service, region)
    if req.get("host") != host or urllib.parse.urlsplit(url).path != req.path:
        return "host %s, path %s" % (req.get("host"), req.path)
    canonical = maker.canonical_request(again)
    want = maker.signature(maker.string_to_sign(again, canonical), again)
    return "" if want == parts["Signature"] else "signature over\n" + canonical
