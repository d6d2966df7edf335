"""Policies and bindings as objects of the test's cluster, and durward-kubernetes in its forms."""
import json
import os
import time

from . import durward, kubernetes, tap

try:
    import yaml
except ImportError:
    yaml = None


def policy(name, rules, **more):
    return {"apiVersion": "durward.internal/v1alpha1", "kind": "Policy", "metadata": {"name": name}, "spec": dict({"rules": rules}, **more)}


def binding(name, policy_name, *namespaces, **more):
    return {"apiVersion": "durward.internal/v1alpha1", "kind": "PolicyBinding", "metadata": {"name": name},
            "spec": dict({"policy": policy_name, "namespaces": list(namespaces)}, **more)}


def manifest(name, *kinds):
    if yaml is None:
        raise tap.Skip("python3-yaml is not there")
    with open(os.path.join(durward.TOP, "deploy/kubernetes", name)) as f:
        return [x for x in yaml.safe_load_all(f) if not kinds or x["kind"] in kinds]


def change(c, name, *rules):
    """The rules of a Policy that is there -> when the API server was asked."""
    path = "/apis/durward.internal/v1alpha1/policies/" + name
    had = c.ask("GET", path)[1]
    began = time.time()
    code, said = c.ask("PUT", path, {"apiVersion": had["apiVersion"], "kind": "Policy", "spec": dict(had["spec"], rules=list(rules)),
                                     "metadata": {"name": name, "resourceVersion": had["metadata"]["resourceVersion"]}})
    if code != 200:
        raise RuntimeError("the policy is not changed: %s" % said)
    return began


def last_use(came, since, quiet=1.5, seconds=15):
    """How long after `since` the last request came, once none has for so long; None: they go on. came(): when, from then on."""
    def silent():
        last = max(came(), default=since)
        return [last - since] if time.time() - max(last, since) > quiet else None
    return (tap.wait_for(silent, seconds, 0.05) or [None])[0]


class Keepers:
    """durward-kubernetes, each with a service account's token and the rights that its manifest lists, as a user that is nobody
    else's. d: whose configuration it reads; node: one of kubernetes_node, or None: the cluster's own."""

    def __init__(self, t, d, c, node=None):
        self.t, self.c, self.uid = t, c, 65532
        self.folder = "keepers-" + (node.name if node else kubernetes.NODE)
        self.enter = node.enter[:-1] + ["-S", str(self.uid), "-G", str(self.uid), "--"] if node else []
        self.api = (kubernetes.NODE_IP if node else "127.0.0.1") + ":6443"
        self.program = os.path.join(os.path.dirname(os.path.dirname(durward.program())), "libexec/durward/durward-kubernetes")
        self.config = t.write(self.folder + "/durward.yaml", json.dumps(d.config()))
        objects = (node.root if node else "") + "/run/objects"
        os.makedirs(objects, exist_ok=True)
        os.chown(objects, self.uid, self.uid)

    def account(self, name, namespace):
        code, said = self.c.kubectl("create", "token", name, "-n", namespace)
        path = self.t.write("%s/%s" % (self.folder, name), said, 0o400)
        os.chown(path, self.uid, self.uid)
        return path

    def start(self, verb, token, *more):
        log = open(self.t.path(self.folder, verb + ".log"), "ab")
        own = {} if self.enter else {"user": self.uid, "group": self.uid, "extra_groups": []}
        p = self.t.popen(self.enter + [self.program, verb, "-c", self.config, "--api", self.api, "--ca", self.c.ca.pem, "--token", token, *more],
                         stdout=log, stderr=log, **own)
        log.close()
        return p

    def said(self, verb):
        with open(self.t.path(self.folder, verb + ".log")) as f:
            return f.read()[-1500:]
