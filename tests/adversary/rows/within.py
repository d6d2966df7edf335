"""Clients inside local sandboxes of the bed's daemon: a relay in each, reached by `sandbox forward`, so
that every byte that a test says goes out by the sandbox's own socket."""
import os

from harness import api, client, durward, tap

PORT = 8888


class Inside:
    """.gate: as if the test sat in the sandbox; .own: its placeholders by variable."""

    def __init__(self, bed, policy="coder"):
        self.bed, self.api = bed, api.Api(bed.d.socket)
        self.id = self.api.create(policy=policy)["id"]
        with open(os.path.join(durward.INSIDE, "relay.py"), "rb") as f:
            self.api.write(self.id, "/tmp/relay.py", f.read())
        self.api.sh(self.id, "setsid /usr/bin/python3 /tmp/relay.py %d gate.durward.internal 3128 "
                    ">/tmp/relay 2>&1 &" % PORT)
        if not tap.wait_for(lambda: b"ready" in self.api.sh(self.id, "cat /tmp/relay")[1], 10, 0.05):
            raise RuntimeError("the relay inside does not start")
        _, out = self.api.sh(self.id, "env")
        self.own = dict(x.split("=", 1) for x in out.decode().splitlines() if "=" in x)
        trusted = os.path.join(bed.d.dir, "trusted-%s.pem" % self.id)  # what is trusted in this sandbox alone
        with open(trusted, "wb") as f:
            f.write(self.api.sh(self.id, 'cat "$SSL_CERT_FILE"')[1])
        argv = [durward.program(), "sandbox", "forward", "--socket", bed.d.socket, self.id, str(PORT), "0"]
        self.forward = bed.test.popen(argv, stdout=-1, env=bed.d.env)
        address = self.forward.stdout.readline().decode().strip()
        self.gate = client.Gate(address, trusted, timeout=8)

    def close(self):
        tap.stop(self.forward)
        self.forward.stdout.close()
        self.api.delete(self.id)
        self.api.close()
