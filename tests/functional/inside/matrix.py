#!/usr/bin/python3
"""One Python client of the matrix. argv: CLIENT MARK, CLIENT one of requests, httpx, openai, grpc.
Prints {column: [version, answer, seconds from the first event to the last]} or an error."""
import json
import os
import sys
import time

CLIENT, MARK = sys.argv[1:3]
H1, H2, STREAM = "https://h1.example.com", "https://h2.example.com", "https://stream.example.com"


def column(name):
    return {"cell": MARK + "-" + name}


def events(lines):
    times, words = [], []
    for line in lines:
        line = line.decode() if isinstance(line, bytes) else line
        if line.startswith("data: ") and "[DONE]" not in line:
            times.append(time.monotonic())
            words.append(json.loads(line[6:])["choices"][0]["delta"].get("content", ""))
    return ["", "".join(words), times[-1] - times[0]]


ASK = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "What?"}]}


def with_requests(out):
    import requests
    r = requests.get(H1 + "/who", params=column("h1"), timeout=20)
    out["h1"] = ["HTTP/1.1" if r.raw.version == 11 else str(r.raw.version), r.json()["login"], 0]
    r = requests.post(STREAM + "/v1/chat/completions", params=column("sse"), json=ASK, stream=True,
                      timeout=20)
    out["sse"] = events(r.iter_lines(chunk_size=1))


def with_httpx(out):
    import httpx
    for name, base in (("h1", H1), ("h2", H2)):
        with httpx.Client(http2=name == "h2", timeout=20) as c:
            r = c.get(base + "/who", params=column(name))
            out[name] = [r.http_version, r.json()["login"], 0]
            if name == "h2":
                with c.stream("POST", STREAM + "/v1/chat/completions", params=column("sse"),
                              json=ASK) as r:
                    out["sse"] = events(r.iter_lines())


def with_openai(out):
    import httpx
    import openai

    def client(base, name, **kw):
        return openai.OpenAI(base_url=base + "/v1", api_key=os.environ["OPENAI_API_KEY"],
                             max_retries=0, timeout=20, default_query=column(name), **kw)
    for name, base in (("h1", H1), ("h2", H2)):
        raw = client(base, name, http_client=httpx.Client(http2=name == "h2")).models.with_raw_response.list()
        out[name] = [raw.http_response.http_version, raw.parse().data[0].id, 0]
    times, words = [], []
    for e in client(STREAM, "sse").chat.completions.create(**ASK):
        times.append(time.monotonic())
        words.append(e.choices[0].delta.content or "")
    out["sse"] = ["", "".join(words), times[-1] - times[0]]


def with_grpc(out):
    import grpc
    channel = grpc.secure_channel("grpc.example.com:443", grpc.ssl_channel_credentials())
    call = channel.unary_unary("/durward.test.Door/Unary")
    out["h2"] = ["HTTP/2", call(b"octo", timeout=20, metadata=(("x-mark", MARK + "-h2"),)).decode(), 0]


got = {}
{"requests": with_requests, "httpx": with_httpx, "openai": with_openai, "grpc": with_grpc}[CLIENT](got)
print(json.dumps(got))
