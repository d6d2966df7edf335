"""Sandboxes out of a pool beside ones that are made when asked for (bench/sandbox --claims): from the request to the
first output of a command; and what a neighbour's commands take while the pool is filled again."""
import statistics
import threading
import time

BARS = {"claim_p50_ms": 10.0, "claim_p99_ms": 25.0, "neighbour_ratio": 1.2}
BESIDE = 20  # made when asked for, between the claims
AT_REST, PAUSE = 400, 0.01  # commands of the neighbour, and between two


def ms(since):
    return (time.monotonic() - since) * 1000


def part(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


def first_output(api, wish):
    """-> (ms, id)"""
    began = time.monotonic()
    sid = api.ask("POST", "/v1/sandboxes", wish)["id"]
    said = api.ask("POST", "/v1/sandboxes/%s/exec" % sid, {"argv": ["echo", "first"]})
    took = ms(began)
    if said["output"] != "first\n":
        raise RuntimeError("no output: %s" % said)
    return took, sid


def wait_full(api, n, seconds=600):
    end = time.monotonic() + seconds
    while api.ask("GET", "/v1/templates/bench")["ready"] < n:
        if time.monotonic() > end:
            raise RuntimeError("the pool is not full: %s" % api.ask("GET", "/v1/templates/bench"))
        time.sleep(0.1)


class Neighbour(threading.Thread):
    """Somebody who works in a sandbox all the time."""

    def __init__(self, api):
        super().__init__(daemon=True)
        self.api, self.times, self.over = api, [], False
        self.sid = api.ask("POST", "/v1/sandboxes", {"policy": "bench"})["id"]

    def run(self):
        while not self.over:
            began = time.monotonic()
            self.api.ask("POST", "/v1/sandboxes/%s/exec" % self.sid, {"argv": ["true"]})
            self.times.append(ms(began))
            time.sleep(PAUSE)


def filling(make_api, api, n):
    """-> p99 of the neighbour's commands while nothing is made, and while the pool is filled."""
    found = []
    for busy in (False, True):
        if busy:
            wait_full(api, n)
            claimed = [first_output(api, {"template": "bench"})[1] for _ in range(n)]
        who = Neighbour(make_api())
        who.start()
        if busy:
            wait_full(api, n)
        else:
            while len(who.times) < AT_REST:
                time.sleep(0.1)
        who.over = True
        who.join()
        found.append(part(who.times, 0.99))
        api.ask("DELETE", "/v1/sandboxes/" + who.sid)
        for sid in claimed if busy else ():
            api.ask("DELETE", "/v1/sandboxes/" + sid)
    return found


def claims(make_api, n, refill):
    """n claims in a burst of a full pool of n, then what refilling part of it does to others."""
    api, times, plain = make_api(), [], []
    wait_full(api, n)
    mine = []
    for _ in range(BESIDE):
        took, sid = first_output(api, {"policy": "bench"})
        plain.append(took)
        api.ask("DELETE", "/v1/sandboxes/" + sid)
    for _ in range(n):
        took, sid = first_output(api, {"template": "bench"})
        times.append(took)
        mine.append(sid)
    pool = api.ask("GET", "/v1/templates/bench")
    for sid in mine:
        api.ask("DELETE", "/v1/sandboxes/" + sid)
    wait_full(api, n)
    rest, busy = filling(make_api, api, refill)
    got = {"claims": n, "out_of_the_pool": pool["claimed"], "claim_p50_ms": round(statistics.median(times), 2),
           "claim_p99_ms": round(part(times, 0.99), 2), "create_p50_ms": round(statistics.median(plain), 2),
           "claim_times": round(statistics.median(plain) / statistics.median(times), 1),
           "neighbour_rest_p99_ms": round(rest, 2), "neighbour_filling_p99_ms": round(busy, 2),
           "neighbour_ratio": round(busy / rest, 2)}
    got["missed"] = [k for k, bar in BARS.items() if got[k] > bar] + (["pool"] if pool["missed"] else [])
    return got
