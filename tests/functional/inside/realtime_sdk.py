"""OpenAI's own library in a session over a WebSocket: realtime_sdk.py KEY. Asks for two answers, the second while audio is
on its way, and prints [[sent, of these cached, answered], ...] as the library has them."""
import asyncio
import json
import sys

from openai import AsyncOpenAI


async def main():
    got = []
    async with AsyncOpenAI(api_key=sys.argv[1]).realtime.connect(model="gpt-realtime") as c:
        await c.session.update(session={"type": "realtime", "instructions": "be brief", "tools": [
            {"type": "function", "name": "look", "description": "-", "parameters": {"type": "object", "properties": {}}}]})
        for text in ("one", "two \u20ac"):
            await c.conversation.item.create(item={"type": "message", "role": "user",
                                                   "content": [{"type": "input_text", "text": text}]})
            await c.input_audio_buffer.append(audio="AAAA" * 5000)
            await c.response.create(response={"max_output_tokens": 200})
            async for event in c:
                if event.type == "response.done":
                    u = event.response.usage
                    got.append([u.input_tokens, u.input_token_details.cached_tokens, u.output_tokens])
                    break
    print(json.dumps(got))

asyncio.run(main())
