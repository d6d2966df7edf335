"""What one Python client tells its caller of a request that ends badly. argv: CLIENT HOST."""
import sys

CLIENT, HOST = sys.argv[1:]
BASE = "https://" + HOST


def with_urllib():
    import urllib.request
    urllib.request.urlopen(BASE + "/v1/x", timeout=20)


def with_requests():
    import requests
    requests.get(BASE + "/v1/x", timeout=20).raise_for_status()


def with_httpx():
    import httpx
    httpx.get(BASE + "/v1/x", timeout=20).raise_for_status()


def with_openai():
    import openai
    client = openai.OpenAI(api_key="none", base_url=BASE + "/v1", max_retries=0, timeout=20)
    client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hello"}])


def with_anthropic():
    import anthropic
    client = anthropic.Anthropic(auth_token="none", base_url=BASE, max_retries=0, timeout=20)
    client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hello"}])


def with_grpc():
    import grpc
    channel = grpc.secure_channel(HOST + ":443", grpc.ssl_channel_credentials())
    channel.unary_unary("/test.Service/Method")(b"", timeout=20)


try:
    globals()["with_" + CLIENT]()
    print("there was an answer")
except Exception as e:  # whatever it is, an agent reads its text
    print("%s: %s" % (type(e).__name__, e.details() if CLIENT == "grpc" else e))
    while e.__cause__:  # as a traceback has them
        e = e.__cause__
        print("caused by %s: %s" % (type(e).__name__, e))
