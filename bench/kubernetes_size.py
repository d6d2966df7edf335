"""What a cluster of some size comes to, by what bench/kubernetes measured of one pod, one node and one change
(bench/kubernetes --size FILE). Nothing here is measured: each line is a product, and says of what."""

ASSUMED = (("nodes", 5000, "nodes"), ("sandboxes", 200000, "sandboxes at once, each a pod"), ("life", 3600, "seconds that one lives"),
           ("asks", 6, "requests that one makes in a minute"), ("policies", 200, "policies, and as many bindings"),
           ("changes", 1, "changes of a policy or binding in a minute"))


def amount(n, unit=""):
    for size, prefix in ((1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki")):
        if n >= size:
            return "%.1f %s%s" % (n / size, prefix, unit)
    return "%.0f %s" % (n, unit)


def units(f):
    """Of one, as measured."""
    of, w = f["of"], f["of"]["watchers"]
    asked = f["decision"]["n"]
    rest = {v: f["rest"][v]["bytes"] for v in ("node", "status", "nodes")}
    claimed, took = f["claims"]["n"], f["claims"]["n"] / f["claims"]["a_second"]
    fan = f["fan_out"]
    heard = fan["changes"] * w
    return {
        "rest_node": rest["node"] / w,
        "rest_once": rest["status"] + rest["nodes"],
        "watches": 2, "watches_once": 5,
        "life_node": max(0, f["claims"]["node"]["bytes"] - rest["node"]) * took / claimed,
        "life_node_requests": f["claims"]["node"]["requests"]["requests"] / claimed,
        "life_status": max(0, f["claims"]["status"]["bytes"] - rest["status"]) * took / claimed,
        "start_node_cpu": f["pods"]["node"]["cpu_s"] / asked,
        "status_memory": 1024 * (f["memory"]["status"]["private_kib"] - f["before"]["status"]["private_kib"]) / of["pods"],
        "node_memory": 1024 * f["memory"]["node"]["private_kib"] / w,
        "change_bytes": fan["node"]["bytes"] / heard,
        "change_node_cpu": fan["node"]["cpu_s"] / heard,
        "change_api_cpu": max(0, fan["apiserver_cpu_s"] - f["rest"]["apiserver_cpu_s"] / f["rest"]["seconds"] * fan["seconds"]) / heard,
        "counts_a_round": 32,
        "record": f["log"]["bytes_a_request"],
    }


def rows(f, a):
    """-> [(what, how much, of what)]"""
    u = units(f)
    per_s = a["sandboxes"] / a["life"]
    counts = u["counts_a_round"] / f["of"]["every"]
    hears = (counts + a["changes"] / 60) * a["nodes"] * u["change_bytes"]
    nodes_rest = a["nodes"] * u["rest_node"] + u["rest_once"]
    starts = per_s * (u["life_node"] + u["life_status"])
    asks = a["sandboxes"] * a["asks"] / 60
    yield "Objects of Durward's", "%d" % (2 * a["policies"]), "policies and bindings"
    yield "Watches", "%d" % (u["watches"] * a["nodes"] + u["watches_once"]), "%d for each node, %d for what runs once" % (u["watches"], u["watches_once"])
    yield "Sandboxes that start", "%.0f a second" % per_s, "%d of %d s" % (a["sandboxes"], a["life"])
    yield "Requests to the API server", "%.0f a second" % (per_s * u["life_node_requests"]), "%.1f for each sandbox, by its node" % u["life_node_requests"]
    yield "Bytes to and from the API server, at rest", amount(nodes_rest, "B/s"), "%.0f B/s a node" % u["rest_node"]
    yield "Bytes for sandboxes that come and go", amount(starts, "B/s"), "%s by the node and %s by `status` for each" % (amount(u["life_node"], "B"), amount(u["life_status"], "B"))
    yield "Bytes for what changes and is counted", amount(hears, "B/s"), "%s at each node for each of %.2f a second" % (amount(u["change_bytes"], "B"), counts + a["changes"] / 60)
    yield "One change at all nodes", amount(a["nodes"] * u["change_bytes"], "B"), "%.2f s of one processor at the API server, %.0f ms at each node" % (
        a["nodes"] * u["change_api_cpu"], 1000 * u["change_node_cpu"])
    yield "Every policy's count is said anew within", "%.0f min" % (2 * a["policies"] / u["counts_a_round"] * f["of"]["every"] / 60), "%d in %d s" % (
        u["counts_a_round"], f["of"]["every"])
    yield "Memory of `status`", amount(u["status_memory"] * a["sandboxes"], "B"), "%.0f B a pod" % u["status_memory"]
    yield "Memory of `node`, on each node", amount(u["node_memory"], "B"), "with %d policies" % f["of"]["policies"]
    yield "Log, all nodes", amount(asks * u["record"] * 86400, "B") + " a day", "%.0f B a request, %.0f a second" % (u["record"], asks)
    yield "Log, each node", amount(asks * u["record"] * 86400 / a["nodes"], "B") + " a day", "%.0f sandboxes" % (a["sandboxes"] / a["nodes"])


BEGIN, END = "<!-- made by bench/kubernetes --size bench/kubernetes.json --write -->\n", "<!-- end -->\n"


def table(f, a):
    of = f["of"]
    text = "Measured with %d nodes, %d pods, %d policies and %d claims. With\n\n" % (of["nodes"], of["pods"], of["policies"], of["claims"])
    text += "".join("- %s: %d\n" % (what, a[name]) for name, _, what in ASSUMED) + "\n| | | of |\n|---|---|---|\n"
    return text + "".join("| %s | %s | %s |\n" % row for row in rows(f, a))


def write(path, text):
    with open(path) as f:
        before, rest = f.read().split(BEGIN)
    with open(path, "w") as f:
        f.write(before + BEGIN + "\n" + text + "\n" + END + rest.partition(END)[2])
