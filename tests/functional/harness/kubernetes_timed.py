"""From a pod's creation to its first credentialed byte, with a gate and without one."""
import statistics
import time

from . import engine, kubernetes, origin, scene, shapes, tap


class Timed:
    """The same pod, bound and unbound, which asks the same over TLS with a credential: Durward's, or its own. Both have the bundle of
    this machine, and the origin's CA in it."""

    def __init__(self, t, s, c, make):
        self.c, self.make = c, make
        credential = ("Authorization", "Bearer " + "0" * 40)
        own = origin.Origin(t, s.d.ca, scene.GITHUB, origin.needs(credential, shapes.github()), host=kubernetes.PODS + "1")
        bundle = t.path("bundle")
        with open(bundle, "w") as f:
            for path in ("/etc/ssl/certs/ca-certificates.crt", s.d.ca.pem):
                with open(path) as pem:
                    f.write(pem.read())
        c.take(kubernetes.image("localhost/timed:1", engine.rootfs(files=[("etc/ssl/certs/ca-certificates.crt", bundle)]), ["/bin/sh"]))
        self.origins = {"agents": s.github, "open": own}
        self.words = {"agents": "https://api.github.com/user", "open": "-H '%s: %s' --resolve api.github.com:%d:%s https://api.github.com:%d/user" % (
            *credential, own.port, kubernetes.PODS + "1", own.port)}

    def once(self, ns, name):
        """-> seconds from the claim to the arrival of the credential, or None."""
        asked, command = self.origins[ns].requests, "test -r /etc/durward/env && . /etc/durward/env; curl -sS %s; exec sleep 1000" % self.words[ns]
        had, pod = len(asked), self.make(self.c, ns, name, container={"image": "localhost/timed:1", "readinessProbe": None, "command": ["/bin/sh", "-c", command]})
        began = time.time()
        pod.create()
        came = tap.wait_for(lambda: len(asked) > had, 40, 0.005)
        took = asked[had].time - began if came else None
        pod.delete()
        return took

    def rounds(self, n):
        """In turn, so that both have what this machine does besides -> {namespace: [seconds or None]}"""
        took = {ns: [] for ns in self.origins}
        for i in range(n):
            for ns in took:
                took[ns].append(self.once(ns, "timed%d" % i))
        return took


def summary(took):
    """-> (with a gate, without one) in milliseconds, the medians."""
    return tuple(round(statistics.median(took[ns]) * 1000, 1) for ns in ("agents", "open"))


def text(took):
    bound, unbound = summary(took)
    return ["claim to first credentialed byte, median of %d: with Durward %.0f ms, the same pod without %.0f ms; %+.0f ms, ratio %.3f" % (
        len(took["open"]), bound, unbound, bound - unbound, bound / unbound),
        "; ".join("%s: %s" % (ns, " ".join("%.0f" % (x * 1000) for x in took[ns])) for ns in took)]
