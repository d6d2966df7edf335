"""Requests and heads of answers as http.client writes and reads them, for connections whose bytes come by
themselves: those of asyncio, and those that the daemon hands over."""
from __future__ import annotations

import http.client
import io
from collections.abc import Mapping
from typing import Any, cast

HEAD_MAX = 64 * 1024


class _Wire:
    """A socket to http.client: what it sends is kept, what it reads is there already."""

    def __init__(self, received: bytes = b"") -> None:
        self.sent, self.received = b"", received

    def sendall(self, data: bytes) -> None:
        self.sent += data

    def makefile(self, mode: str) -> io.BytesIO:
        return io.BytesIO(self.received)


def request(method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> bytes:
    connection, wire = http.client.HTTPConnection("durward"), _Wire()
    connection.sock = cast(Any, wire)
    connection.request(method, target, body, headers)
    return wire.sent


def answer(head: bytes, method: str) -> http.client.HTTPResponse:
    """Its status, whether its body is chunked, and the body's length (None: until the end)."""
    read = http.client.HTTPResponse(cast(Any, _Wire(head)), method=method)
    read.begin()
    return read
