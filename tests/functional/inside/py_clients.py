#!/usr/bin/python3
"""Python clients: requests, httpx, openai (plain and streamed). argv: GITHUB_BASE OPENAI_BASE.
Keys come from the environment, as a program in a sandbox would find them. Prints one JSON line."""
import json
import os
import sys
import time

import httpx
import openai
import requests

github, ai = sys.argv[1:3]
token = os.environ.get("GITHUB_TOKEN", "none")
out = {}

r = requests.get(github + "/user", timeout=20)
out["requests"] = [r.status_code, r.json().get("login")]
with requests.Session() as s:
    s.headers["Authorization"] = "Bearer " + token
    got = [s.get(github + "/repos/acme/x", timeout=20).status_code for _ in range(3)]
    made = s.post(github + "/repos/acme/x/issues", json={"title": "by requests"}, timeout=20)
out["session"] = got + [made.status_code, made.json().get("title")]

with httpx.Client(timeout=20, headers={"Authorization": "token " + token}) as c:
    out["httpx"] = [c.get(github + "/user").json().get("login"),
                    len(c.get(github + "/repos/acme/x/issues").json())]

client = openai.OpenAI(base_url=ai + "/v1", api_key=os.environ.get("OPENAI_API_KEY", "none"),
                       max_retries=0, timeout=20)
messages = [{"role": "user", "content": "What?"}]
reply = client.chat.completions.create(model="gpt-test", messages=messages)
out["openai"] = reply.choices[0].message.content
times, words = [], []
for event in client.chat.completions.create(model="gpt-test", messages=messages, stream=True):
    times.append(time.time())
    words.append(event.choices[0].delta.content or "")
out["stream"] = "".join(words)
out["spread"] = times[-1] - times[0]
out["models"] = [m.id for m in client.models.list()]
print(json.dumps(out))
