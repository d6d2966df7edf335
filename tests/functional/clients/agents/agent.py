"""Deep agents with a scripted model, on sandboxes of the daemon at DURWARD_SOCKET. Prints JSON: each
agent's tool messages and how they ended."""
import asyncio
import json

from deepagents import create_deep_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

from durward import Durward
from durward_deepagents import ScopedSandbox, assistant_sandbox, thread_sandbox


class Scripted(GenericFakeChatModel):
    def bind_tools(self, tools, **kw):
        return self


def model(*calls):
    steps = [AIMessage("", tool_calls=[{"name": name, "args": args, "id": str(i), "type": "tool_call"}])
             for i, (name, args) in enumerate(calls)]
    return Scripted(messages=iter(steps + [AIMessage("done")]))


def told(state):
    return [{"text": m.content, "artifact": m.artifact, "status": m.status}
            for m in state["messages"] if m.type == "tool"]


GO = {"messages": [("user", "go")]}
CHAT = {"model": "gpt-test", "messages": [{"role": "user", "content": "hi"}]}
WORK = (
    ("write_file", {"file_path": "/workspace/ask.json", "content": json.dumps(CHAT)}),
    ("execute", {"command": 'curl -sS -H "Authorization: Bearer $GITHUB_TOKEN" https://api.github.com/user'}),
    ("execute", {"command": 'curl -sS -H "Authorization: Bearer $OPENAI_API_KEY" -H "Content-Type: application/json"'
                            " -d @/workspace/ask.json https://api.openai.com/v1/chat/completions"}),
    ("execute", {"command": "/usr/bin/python3 -c \"import urllib.request as u; "
                            "print(u.urlopen('https://api.github.com/repos/acme/x').read())\""}),
    ("execute", {"command": "curl -sS -o /dev/null -w '%{http_code}' -d '{}' https://api.github.com/gists; exit 3"}),
    ("read_file", {"file_path": "/workspace/ask.json"}),
    ("execute", {"command": "sleep 30", "timeout": 1}),
    ("execute", {"command": "env"}),
)


def main():
    out = {}
    box = thread_sandbox("t-1", "coder")
    out["same"] = thread_sandbox("t-1").id == box.id
    out["sync"] = told(create_deep_agent(model=model(*WORK), backend=box).invoke(GO))
    other = assistant_sandbox("a-1", "coder")
    out["other"] = other.id != box.id
    out["async"] = told(asyncio.run(create_deep_agent(model=model(*WORK), backend=other).ainvoke(GO)))
    # one agent, two threads: a sandbox each
    touch = ("execute", {"command": "n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n; cat n"})
    scoped = create_deep_agent(model=Scripted(messages=iter([m for _ in range(3) for m in model(touch).messages])),
                               backend=ScopedSandbox("coder"), checkpointer=InMemorySaver())
    out["scoped"] = []
    for thread in ("t-2", "t-3", "t-2"):
        state = scoped.invoke(GO, config={"configurable": {"thread_id": thread}})
        out["scoped"].append(told(state)[-1]["text"])
    out["outside"] = ScopedSandbox("coder").execute("true").output
    # what went wrong is an answer, not an exception
    box.close()
    gone = box.execute("true")
    out["gone"] = [gone.exit_code, gone.output, box.upload_files([("/x", b"")])[0].error,
                   box.download_files(["/x"])[0].error, box.ls("/workspace").error, box.delete("/workspace/x").error,
                   asyncio.run(box.als("/workspace")).error, asyncio.run(box.adelete("/workspace/x")).error]
    for s in Durward().sandboxes():
        Durward().delete(s.id)
    print(json.dumps(out))


main()
