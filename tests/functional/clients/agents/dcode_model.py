"""A chat model for dcode that does what the prompt says: DO=NAME:JSON a tool call, in their order."""
import json
import re
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult


class Scripted(BaseChatModel):
    model: str = "scripted"
    disable_streaming: bool = True
    profile: Any = {"tool_calling": True, "max_input_tokens": 100000}

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **kw):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kw):
        texts = [m.content if isinstance(m.content, str) else json.dumps(m.content)
                 for m in messages if m.type == "human"]
        todo = re.findall(r"DO=(\w+):(\{.*?\});;", "\n".join(texts).replace('\\"', '"'))
        done = sum(m.type == "tool" for m in messages)
        if done < len(todo):
            name, args = todo[done]
            call = {"name": name, "args": json.loads(args), "id": "call%d" % done, "type": "tool_call"}
            return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=[call]))])
        last = [m.content for m in messages if m.type == "tool"]
        return ChatResult(generations=[ChatGeneration(message=AIMessage("finished: %s" % last))])
