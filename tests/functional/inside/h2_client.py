#!/usr/bin/python3
"""httpx with HTTP/2. argv: BASE. Prints one JSON line."""
import asyncio
import json
import sys

import httpx

base = sys.argv[1]


async def main():
    async with httpx.AsyncClient(http2=True, timeout=20) as c:
        replies = await asyncio.gather(*[c.get("%s/quick/%d" % (base, i)) for i in range(50)])
        denied = await c.get(base + "/denied/1")
        up = await c.post(base + "/up", content=b"x" * (1 << 20))
    return {"good": sum(r.status_code == 200 and r.json()["target"] == "/quick/%d" % i
                        for i, r in enumerate(replies)),
            "versions": sorted({r.http_version for r in replies + [denied, up]}),
            "denied": [denied.status_code, denied.text.endswith("\ndenied %s\n" % denied.headers[
                "durward-denied"])],
            "up": up.json()["length"]}


print(json.dumps(asyncio.run(main())))
