"""When a test has ended: what its origins got against what its audit says, added to the test's tally (a figure of
the adversary suite; the test's own checks judge)."""
import collections
import re

END = ("completed", "aborted")


def host_of(name):
    """ "http://a.example.com:80/x" → a.example.com"""
    name = re.sub(r"^https?://", "", str(name)).split("/")[0]
    return re.sub(r":\d+$", "", name).lower().rstrip(".")


def came(origin):
    """[bytes of each request that came], or None where such an origin does not say."""
    requests = getattr(origin, "requests", None)
    if not isinstance(requests, list) or not isinstance(getattr(origin, "bytes_in", None), int):
        return None
    return [len(getattr(r, "raw", b"")) + getattr(r, "body_len", 0) for r in requests]


def figures(d):
    """unlogged: bytes of requests at origins beyond those admitted for their hosts; arrived: all bytes there.
    lost: admitted without exactly one end, ends without admission; admitted: how many there are."""
    sizes = {o: came(o) for o in set(d.origins.values())}  # first: what comes from now on is no matter
    admitted, ids, ends = collections.Counter(), [], []
    for log, r in d.records_of():
        if r["kind"] == "admitted":
            admitted[host_of(r.get("authority", ""))] += 1
            ids.append((log, r.get("id")))
        elif r["kind"] in END:
            ends.append((log, r.get("id")))
    if not ids and not any(sizes.values()):
        return {}
    started, ended = collections.Counter(ids), collections.Counter(ends)
    lost = sum((started - ended).values()) + sum((ended - started).values()) + sum(
        n - 1 for n in started.values())
    unlogged = arrived = 0
    for origin, each in sizes.items():
        if each is None:
            continue
        names = [host_of(n) for n, o in d.origins.items() if o is origin]
        allowed = sum(n for host, n in admitted.items() if any(
            host == name or name.startswith(".") and host.endswith(name) for name in names))
        arrived += sum(each)
        unlogged += sum(each[allowed:])
    return dict(admitted=len(ids), lost=lost, arrived=arrived, unlogged=unlogged)


def balance(d):
    d.test.tally(**figures(d))
