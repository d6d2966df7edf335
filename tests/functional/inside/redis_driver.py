"""redis-py as programs use it. argv: host, protocol. Says "ok"."""
import sys
import threading

import redis

r = redis.Redis(host=sys.argv[1], port=6379, protocol=int(sys.argv[2]), password="placeholder",
                decode_responses=True, socket_timeout=20)
assert r.set("py", "value") and r.get("py") == "value"
pipe = r.pipeline(transaction=True)
pipe.incr("py:n").incr("py:n").delete("py:n")
assert pipe.execute() == [1, 2, 1]
pipe = r.pipeline(transaction=False)
pipe.get("py").config_get("*").get("py")
said = pipe.execute(raise_on_error=False)
assert said[0] == said[2] == "value" and isinstance(said[1], redis.exceptions.NoPermissionError), said
try:
    r.flushall()
    raise SystemExit("flushall was not refused")
except redis.exceptions.NoPermissionError as e:
    assert "durward: refused" in str(e)
r.hset("py:h", mapping={"a": 1, "b": 2})
assert r.hgetall("py:h") == {"a": "1", "b": "2"}
listener = r.pubsub()
listener.subscribe("py:c")
assert listener.get_message(timeout=10)["type"] == "subscribe"
threading.Timer(0.1, lambda: r.publish("py:c", "hello")).start()
assert listener.get_message(timeout=10)["data"] == "hello"
listener.close()
assert [k for k in r.scan_iter("py:h")] == ["py:h"]
with r.pipeline() as p:
    p.watch("py")
    p.multi()
    p.set("py", "other")
    assert p.execute() == [True]
print("ok")
