"""mitmproxy's part: the header that every peer adds, and no buffering of long replies."""
import os

VALUE = os.environ["BENCH_VALUE"]


def request(flow):
    flow.request.headers["authorization"] = VALUE


def responseheaders(flow):
    if int(flow.response.headers.get("content-length", 1 << 30)) > 262144:
        flow.response.stream = True
