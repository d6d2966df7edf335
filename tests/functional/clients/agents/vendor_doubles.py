"""Doubles of the vendors' APIs, on loopback: each answers as the vendor's own package wants to be answered
and keeps what was sent. No vendor was ever asked by these tests."""
import atexit
import base64
import http.server
import json
import os
import re
import shutil
import signal
import threading
from urllib.parse import urlsplit

NOW = "2026-01-01T00:00:00Z"
MODAL_ID = "sb-01ARZ3NDEKTSV4RRFFQ69G5FAV"


def goes_along(path):
    """pair()'s own folder: a real sandbox takes its files along when it is deleted; what stands for one does at our end."""
    if re.match("/tmp/durward-[0-9a-f]{16}(/|$)", path):
        atexit.register(shutil.rmtree, "/".join(path.split("/")[:3]), ignore_errors=True)


class Double:
    """answer(method, path, body) -> (status, JSON). sent: every request as (method, path, body)."""

    def __init__(self, answer):
        self.sent, double = [], self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def one(self):
                raw = self.rfile.read(int(self.headers.get("content-length") or 0))
                try:
                    body = json.loads(raw) if raw else None
                except ValueError:
                    body = raw
                path = urlsplit(self.path).path
                double.sent.append((self.command, path, body))
                status, value = answer(self.command, path, body)
                data = b"" if value is None else json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = one

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = "http://127.0.0.1:%d" % self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def bodies(self, method, path):
        return [b for m, p, b in self.sent if (m, p) == (method, path)]

    def asked(self, method, path):
        return len(self.bodies(method, path))

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def daytona():
    def answer(method, path, body):
        if path == "/sandbox" and method == "POST":
            return 200, box(body)
        if path == "/sandbox/box-1":
            return 200, box({})
        if path.startswith("/sandbox/"):
            return 404, {"statusCode": 404, "message": "Sandbox not found"}
        return 200, {}

    def box(body):
        return {"id": "box-1", "organizationId": "o", "name": "n", "user": "daytona", "env": body.get("env", {}),
                "labels": body.get("labels", {}), "public": False, "networkBlockAll": False, "kvm": False, "target": "eu",
                "cpu": 1, "gpu": 0, "memory": 1, "disk": 1, "state": "started", "toolboxProxyUrl": "http://127.0.0.1:1"}
    d = Double(answer)
    os.environ.update(DAYTONA_API_KEY="key", DAYTONA_API_URL=d.url)
    return d


def runloop():
    def answer(method, path, body):
        if path == "/v1/network-policies":
            return 200, {"id": "np-1", "create_time_ms": 0, "update_time_ms": 0, "name": body["name"],
                         "egress": {"allow_all": False, "allow_devbox_to_devbox": False, "allowed_hostnames": []}}
        if path == "/v1/devboxes/create_and_await_running" or path.startswith("/v1/devboxes/box-1"):
            return 200, {"id": "box-1", "capabilities": [], "create_time_ms": 0, "launch_parameters": {}, "metadata": {},
                         "state_transitions": [], "status": "running"}
        if path.startswith("/v1/devboxes/"):
            return 404, {"message": "not found"}
        return 200, {}
    d = Double(answer)
    os.environ.update(RUNLOOP_API_KEY="key", RUNLOOP_BASE_URL=d.url)
    return d


def langsmith():
    def answer(method, path, body):
        at = "/api/v2/sandboxes/boxes"
        if path == at or path == at + "/box-1":
            return 200, {"id": "i", "name": "box-1", "status": "ready", "dataplane_url": "http://127.0.0.1:1"}
        return 404, {"detail": "not found"}
    d = Double(answer)
    os.environ.update(LANGSMITH_API_KEY="key", LANGSMITH_ENDPOINT=d.url)
    return d


def agentcore():
    import bedrock_agentcore.tools.code_interpreter_client as theirs

    def answer(method, path, body):
        if path == "/code-interpreters" and method == "PUT":
            return 202, {"codeInterpreterId": "ci-1", "codeInterpreterArn": "arn", "createdAt": NOW, "status": "READY"}
        if path.endswith("/sessions/start"):
            return 200, {"codeInterpreterIdentifier": "ci-1", "sessionId": "box-1", "createdAt": NOW}
        if path.endswith("/sessions/stop"):
            return 200, {"codeInterpreterIdentifier": "ci-1", "sessionId": "box-1", "lastUpdatedAt": NOW}
        if method == "DELETE":
            return 202, {"codeInterpreterId": "ci-1", "status": "DELETING", "lastUpdatedAt": NOW}
        return 404, {"message": "no"}
    d = Double(answer)
    os.environ.update(AWS_ACCESS_KEY_ID="id", AWS_SECRET_ACCESS_KEY="key", AWS_REGION="us-west-2")
    # The package sends to AWS's own hosts only; this is where it would look one up.
    theirs.get_control_plane_endpoint = theirs.get_data_plane_endpoint = lambda *_: d.url
    theirs.CP_ENDPOINT_OVERRIDE = theirs.DP_ENDPOINT_OVERRIDE = d.url
    return d


def vercel():
    from vercel._internal.sandbox import core as theirs

    def answer(method, path, body):
        if path == "/v1/sandboxes" or path.startswith("/v1/sandboxes/box-1"):
            return 200, {"routes": [], "sandbox": {
                "id": "box-1", "memory": 1, "vcpus": 1, "region": "iad1", "runtime": "python3.13", "timeout": 1,
                "status": "running", "requestedAt": 0, "createdAt": 0, "updatedAt": 0, "cwd": "/"}}
        return 404, {"error": {"code": "not_found", "message": "Not found"}}
    d = Double(answer)
    os.environ.update(VERCEL_TOKEN="key", VERCEL_TEAM_ID="team_a", VERCEL_PROJECT_ID="prj_b")
    theirs.SyncSandboxOpsClient.__init__.__kwdefaults__["host"] = d.url  # which no variable says
    return d


def e2b():
    """The API by HTTP, and what E2B runs inside of a sandbox by Connect, with E2B's own definitions: commands and files
    are real, of a process in `namespace` with the variables that were sent."""
    def answer(method, path, body):
        if (path, method) == ("/v2/sandboxes", "POST") or path == "/v2/sandboxes/box-1/connect":
            return 201 if path == "/v2/sandboxes" else 200, {"templateID": "t", "sandboxID": "box-1", "clientID": "c",
                                                             "envdVersion": "0.4.0", "envdAccessToken": "a"}
        if path == "/sandboxes/box-1" and method == "DELETE":
            return 204, None
        return 404, {"code": 404, "message": "not found"}
    d = Double(answer)
    d.namespace = [None]
    os.environ.update(E2B_API_KEY="e2b_" + "0" * 40, E2B_API_URL=d.url, E2B_SANDBOX_URL=e2b_inside(d))
    return d


def e2b_inside(d):
    """Served by uvicorn; -> its URL."""
    import asyncio
    import email
    import socket
    import subprocess
    from urllib.parse import parse_qs

    import uvicorn
    from e2b.envd.process.process_connect import Process, ProcessASGIApplication
    from e2b.envd.process.process_pb import ProcessEvent, StartResponse
    from protobuf import Oneof

    class Service(Process):
        async def start(self, request, ctx):
            def event(kind, value):
                return StartResponse(event=ProcessEvent(event=Oneof(kind, value)))
            config = request.process
            prefix = ["ip", "netns", "exec", d.namespace[0]] if d.namespace[0] else []
            env = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **d.bodies("POST", "/v2/sandboxes")[-1].get("envVars", {})}
            words = [w for w in config.args if w != "-l"]  # /etc/profile is this machine's, not a sandbox's
            child = subprocess.Popen(prefix + [config.cmd, *words], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, start_new_session=True)
            yield event("start", ProcessEvent.StartEvent(pid=child.pid))
            try:
                out, err = await asyncio.to_thread(child.communicate)
            except BaseException:  # who asked went away
                os.killpg(child.pid, signal.SIGKILL)
                raise
            for name, data in (("stdout", out), ("stderr", err)):
                if data:
                    yield event("data", ProcessEvent.DataEvent(output=Oneof(name, data)))
            yield event("end", ProcessEvent.EndEvent(exit_code=child.returncode, exited=True, status="exit status"))

    process = ProcessASGIApplication(Service())

    async def files(scope, receive, send):
        path, body, more = parse_qs(scope["query_string"].decode())["path"][0], b"", True
        while more:
            m = await receive()
            body, more = body + m.get("body", b""), m.get("more_body", False)
        status, answer = 200, [{"name": os.path.basename(path), "type": "file", "path": path}]
        if scope["method"] == "POST":
            kind = dict(scope["headers"])[b"content-type"]
            part = email.message_from_bytes(b"Content-Type: " + kind + b"\r\n\r\n" + body).get_payload()[0]
            goes_along(path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(part.get_payload(decode=True))
            data = json.dumps(answer).encode()
        elif os.path.exists(path):
            with open(path, "rb") as f:
                data = f.read()
        else:
            status, data = 404, b'{"code": 404, "message": "not found"}'
        await send({"type": "http.response.start", "status": status, "headers": [
            (b"content-type", b"application/json"), (b"content-length", b"%d" % len(data))]})
        await send({"type": "http.response.body", "body": data})

    async def app(scope, receive, send):
        await (files if scope.get("path") == "/files" else process)(scope, receive, send)
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    threading.Thread(target=server.run, args=([listener],), daemon=True).start()
    return "http://127.0.0.1:%d" % listener.getsockname()[1]


def sandbox0():
    def answer(method, path, body):
        if path == "/api/v1/sandboxes" and method == "POST":
            return 201, {"success": True, "data": {"sandbox_id": "box-1", "status": "running", "runtime_id": "r",
                                                   "template": body["template"]}}
        if path == "/api/v1/sandboxes/box-1":
            if method == "DELETE":
                return 200, {"success": True, "data": {"message": "deleted"}}
            return 200, {"success": True, "data": {
                "id": "box-1", "template_id": "t", "team_id": "t", "status": "running", "paused": False, "auto_resume": True,
                "runtime_id": "r", "runtime_generation": 1, "claimed_at": NOW, "created_at": NOW, "updated_at": NOW}}
        return 404, {"success": False, "error": {"code": "not_found", "message": "no such sandbox"}}
    d = Double(answer)
    os.environ.update(SANDBOX0_TOKEN="key", SANDBOX0_BASE_URL=d.url)
    return d


def modal():
    """gRPC, with the vendor's own definitions of its messages."""
    import asyncio

    from google.protobuf.empty_pb2 import Empty
    from grpclib import GRPCError, Status
    from grpclib.server import Server
    from modal_proto import api_grpc, api_pb2

    class Answers(api_grpc.ModalClientBase):
        sent = []

        async def ClientHello(self, stream):
            await stream.recv_message()
            await stream.send_message(api_pb2.ClientHelloResponse())

        async def AuthTokenGet(self, stream):
            await stream.recv_message()
            head, claims = ({"alg": "none"}, {"exp": 4102444800})
            text = ".".join(base64.urlsafe_b64encode(json.dumps(x).encode()).rstrip(b"=").decode() for x in (head, claims))
            await stream.send_message(api_pb2.AuthTokenGetResponse(token=text + "."))

        async def AppGetOrCreate(self, stream):
            await stream.recv_message()
            await stream.send_message(api_pb2.AppGetOrCreateResponse(app_id="ap-1"))

        async def ImageGetOrCreate(self, stream):
            await stream.recv_message()
            await stream.send_message(api_pb2.ImageGetOrCreateResponse(
                image_id="im-1", result=api_pb2.GenericResult(status=api_pb2.GenericResult.GENERIC_STATUS_SUCCESS)))

        async def EnvironmentGetOrCreate(self, stream):
            await stream.recv_message()
            await stream.send_message(api_pb2.EnvironmentGetOrCreateResponse(environment_id="en-1"))

        async def SandboxCreateV2(self, stream):
            m = await stream.recv_message()
            self.sent.append(("create", m))
            await stream.send_message(api_pb2.SandboxCreateV2Response(sandbox_id=MODAL_ID))

        async def SandboxWaitV2(self, stream):
            m = await stream.recv_message()
            if m.sandbox_id != MODAL_ID:
                raise GRPCError(Status.NOT_FOUND, "no such sandbox")
            await stream.send_message(api_pb2.SandboxWaitResponse())

        async def SandboxTerminateV2(self, stream):
            m = await stream.recv_message()
            self.sent.append(("terminate", m))
            await stream.send_message(api_pb2.SandboxTerminateResponse())

        SandboxWait = SandboxWaitV2  # of an id that is none of a new sandbox

    def refuse(what):
        async def no(self, stream):
            raise GRPCError(Status.UNIMPLEMENTED, "the double does not answer %s" % what)
        return no
    for name in [n for n in dir(api_grpc.ModalClientBase) if n[0].isupper() and n not in vars(Answers)]:
        setattr(Answers, name, refuse(name))
    Answers.__abstractmethods__ = frozenset()

    answers, ready = Answers(), threading.Event()

    class Running:
        sent = answers.sent

        def close(self):
            self.loop.call_soon_threadsafe(self.loop.stop)

    running = Running()

    def serve():
        running.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(running.loop)

        async def start():
            server = Server([answers])
            await server.start("127.0.0.1", 0)
            running.server = server
            running.url = "http://127.0.0.1:%d" % server._server.sockets[0].getsockname()[1]
            ready.set()
        running.loop.run_until_complete(start())
        running.loop.run_forever()
    threading.Thread(target=serve, daemon=True).start()
    ready.wait(10)
    os.environ.update(MODAL_SERVER_URL=running.url, MODAL_TOKEN_ID="ak-1", MODAL_TOKEN_SECRET="as-1",
                      MODAL_IMAGE_BUILDER_VERSION="2025.06")
    return running



def deno():
    """A WebSocket that makes a sandbox, JSON-RPC on it, and HTTP to end one. Commands and files are real: of a
    process in `namespace` with the variables that were sent."""
    import subprocess

    from websockets.sync.server import serve

    def answer(method, path, body):
        return 200, {}
    d = Double(answer)
    d.made, d.namespace = [], [None]

    class Line:
        def __init__(self, ws):
            self.ws, self.streams, self.children, self.waiting = ws, {}, {}, {}

        def tell(self, method, **params):
            self.ws.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))

        def spawn(self, p):
            pid = len(self.children) + 1
            prefix = ["ip", "netns", "exec", d.namespace[0]] if d.namespace[0] else []
            env = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **d.made[-1].get("env", {})}
            self.children[pid] = subprocess.Popen(prefix + [p["command"], *p["args"]], env=env, stdin=subprocess.DEVNULL,
                                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            return {"pid": pid, "stdoutStreamId": 2 * pid, "stderrStreamId": 2 * pid + 1}

        def processWait(self, p):
            child = self.children[p["pid"]]
            out, _ = child.communicate()
            for i in range(0, len(out), 65536):
                self.tell("$sandbox.stream.enqueue", streamId=2 * p["pid"], data=base64.b64encode(out[i:i + 65536]).decode())
            self.tell("$sandbox.stream.end", streamId=2 * p["pid"])
            self.tell("$sandbox.stream.end", streamId=2 * p["pid"] + 1)
            return {"success": child.returncode == 0, "code": child.returncode, "signal": None}

        def mkdir(self, p):
            goes_along(p["path"])
            os.makedirs(p["path"], exist_ok=True)

        def readFile(self, p):
            with open(p["path"], "rb") as f:
                return base64.b64encode(f.read()).decode()

        def stream(self, kind, p):
            """What a file is to hold comes before or after the call that names it."""
            data = self.streams.setdefault(p["streamId"], bytearray())
            if kind == "enqueue":
                data += base64.b64decode(p["data"])
            if kind == "end" and p["streamId"] in self.waiting:
                path, call = self.waiting.pop(p["streamId"])
                with open(path, "wb") as f:
                    f.write(data)
                self.reply(call, {"ok": None})

        def reply(self, call, result):
            self.ws.send(json.dumps({"jsonrpc": "2.0", "id": call, "result": result}))

        def take(self, m):
            if m["method"].startswith("$sandbox.stream."):
                self.stream(m["method"].rpartition(".")[2], m["params"])
            elif m["method"] == "writeFile":
                self.waiting[m["params"]["contentStreamId"]] = (m["params"]["path"], m["id"])
            else:
                try:
                    self.reply(m["id"], {"ok": getattr(self, m["method"])(m["params"])})
                except OSError as e:
                    self.reply(m["id"], {"error": {"constructor_name": "Error", "message": str(e)}})

    def handle(ws):
        if ws.request.path.startswith("/api/v3/sandboxes/create"):
            d.made.append(json.loads(base64.b64decode(ws.request.headers["x-deno-sandbox-config"])))
        line = Line(ws)
        for raw in ws:
            line.take(json.loads(raw))

    def refuse(ws, request):
        known = request.path.startswith(("/api/v3/sandboxes/create", "/api/v3/sandbox/box-1/connect"))
        return None if known else ws.respond(404, "no such sandbox\n")

    def name(ws, request, response):
        response.headers["x-deno-sandbox-id"] = "box-1"
        return response
    server = serve(handle, "127.0.0.1", 0, process_request=refuse, process_response=name)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ.update(DENO_DEPLOY_TOKEN="key", DENO_DEPLOY_ENDPOINT=d.url,
                      DENO_SANDBOX_ENDPOINT="http://127.0.0.1:%d" % server.socket.getsockname()[1])
    return d
