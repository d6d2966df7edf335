"""A client of MCP over standard input and output, as agents have it: COMMAND is the server it starts. Standard input
has one step a line, JSON: {"method", "params"} is asked and its answer awaited; what came of it is printed as JSON, with
what the server said meanwhile."""
import json
import subprocess
import sys
import threading
import queue

LIMIT = 40


class Client:
    def __init__(self, command):
        self.p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.said, self.number = queue.Queue(), 0
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.p.stdout:
            self.said.put(json.loads(line))
        self.said.put(None)

    def put(self, m):
        self.p.stdin.write(json.dumps(dict({"jsonrpc": "2.0"}, **m)).encode() + b"\n")
        self.p.stdin.flush()

    def ask(self, method, params):
        self.number += 1
        others, count = [], 0
        try:
            self.put({"id": self.number, "method": method, "params": params})
        except OSError:
            return {"ended": True}
        while True:
            try:
                m = self.said.get(timeout=LIMIT)
            except queue.Empty:
                return {"silent": True, "others": others, "count": count}
            if m is None:
                return {"ended": True, "others": others, "count": count}
            if m.get("id") == self.number and "method" not in m:
                return {"answer": m, "others": others, "count": count}
            count += 1
            others = (others + [m])[-4:]
            if "id" in m and "method" in m:
                self.put({"id": m["id"], "error": {"code": -32601, "message": "the client does not: " + m["method"]}})

    def close(self):
        self.p.stdin.close()
        try:
            return self.p.wait(15), self.p.stderr.read().decode()[-2000:]
        except subprocess.TimeoutExpired:
            self.p.kill()
            return -1, "it did not end"


def main():
    c, out = Client(sys.argv[1:]), []
    out.append(c.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {"sampling": {}},
                                    "clientInfo": {"name": "t", "version": "1"}}))
    if "answer" in out[0] and "result" in out[0]["answer"]:
        c.put({"method": "notifications/initialized"})
        for line in sys.stdin:
            step = json.loads(line)
            out.append(c.ask(step["method"], step.get("params", {})))
    status, errors = c.close()
    print(json.dumps({"steps": out, "status": status, "errors": errors}))


main()
