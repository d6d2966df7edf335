"""What one Python client tells its caller of a request that ends badly. argv: CLIENT HOST [once]; once: it does
not try again, where it would."""
import sys

CLIENT, HOST = sys.argv[1:3]
BASE = "https://" + HOST
ONCE = {"max_retries": 0} if "once" in sys.argv[3:] else {}


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
    client = openai.OpenAI(api_key="none", base_url=BASE + "/v1", timeout=20, **ONCE)
    client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hello"}])


def with_anthropic():
    import anthropic
    client = anthropic.Anthropic(auth_token="none", base_url=BASE, timeout=20, **ONCE)
    client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hello"}])


def with_google():
    from google import genai
    from google.genai import types
    client = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=BASE, timeout=20000))
    client.models.generate_content(model="m", contents="hello")


def with_mcp():
    import anyio
    from mcp.client.client import Client

    async def initialize():
        async with Client(BASE + "/mcp"):
            pass
    anyio.run(initialize)


def with_grpc():
    import grpc
    channel = grpc.secure_channel(HOST if ":" in HOST else HOST + ":443", grpc.ssl_channel_credentials())
    channel.unary_unary("/test.Service/Method")(b"", timeout=20)


def tell(e):
    """As a traceback has it: what it was caused by, and what a group of exceptions holds."""
    print("%s: %s" % (type(e).__name__, e.details() if CLIENT == "grpc" else e))
    for inner in getattr(e, "exceptions", ()):
        tell(inner)
    while e.__cause__:
        e = e.__cause__
        print("caused by %s: %s" % (type(e).__name__, e))


try:
    globals()["with_" + CLIENT]()
    print("there was an answer")
except Exception as e:  # whatever it is, an agent reads its text
    tell(e)
