"""Frameworks of others, each with its own package, and its commands in a sandbox: frameworks.t starts this with the
daemon's socket. Prints a line of JSON behind "seen" for each thing."""
import asyncio
import io
import json
import os
import sys


def tell(name, good, *more):
    print("seen " + json.dumps([bool(good), name, [repr(x)[:2000] for x in more]]), flush=True)


async def openai_agents():
    from agents import Agent, ApplyPatchTool, Runner, ShellTool, set_tracing_disabled
    from agents.editor import ApplyPatchOperation
    from agents.testing import ScriptedModel, assistant_message
    from agents.tool import ShellActionRequest, ShellCallData, ShellCommandRequest
    from openai.types.responses.response_function_shell_tool_call import Action, ResponseFunctionShellToolCall

    from durward import AsyncDurward
    from durward_frameworks.openai_agents import Editor, shell
    set_tracing_disabled(True)
    async with AsyncDurward().create("coder") as box:
        call = ResponseFunctionShellToolCall(
            id="sh_1", call_id="call_1", type="shell_call", status="completed",
            action=Action(commands=["echo $((6*7)); echo oops >&2", "curl -s -o /dev/null -w '%{http_code}' https://evil.example.com/"]))
        model = ScriptedModel([[call], [assistant_message("done")]])
        agent = Agent(name="a", model=model, tools=[ShellTool(executor=shell(box)), ApplyPatchTool(editor=Editor(box))])
        result = await Runner.run(agent, "what is six times seven?")
        seen = json.dumps([i.raw_item if isinstance(i.raw_item, dict) else i.raw_item.model_dump() for i in result.new_items],
                          default=str)
        tell("OpenAI Agents: its runner has commands run in the sandbox", "42" in seen and "oops" in seen and
             result.final_output == "done", seen)
        run = shell(box, timeout=5)

        async def ask(*commands, **more):
            request = ShellActionRequest(commands=list(commands), **more)
            return (await run(ShellCommandRequest(None, ShellCallData("c", request)))).output
        got = await ask("exit 3", "sleep 30", timeout_ms=1000)
        tell("a command's exit status, and one that takes too long",
             [(o.exit_code, o.status) for o in got] == [(3, "completed"), (None, "timeout")], got)
        e = Editor(box)
        op = ApplyPatchOperation
        r = [await e.create_file(op("create_file", "a.txt", "+one\n+two\n")),
             await e.update_file(op("update_file", "a.txt", "@@\n one\n-two\n+three\n")),
             await e.create_file(op("create_file", "a.txt", "+x\n")), await e.update_file(op("update_file", "none", "@@\n-a\n+b\n")),
             await e.update_file(op("update_file", "a.txt", "@@\n-none\n+b\n"))]
        tell("its patches: made, changed, and what cannot be", [x.status for x in r] == ["completed"] * 2 + ["failed"] * 3, r)
        tell("the file is in the sandbox", (await box.read("/workspace/a.txt")).split() == [b"one", b"three"])
        r = await e.delete_file(op("delete_file", "a.txt"))
        tell("and gone when it is deleted", r.status == "completed" and (await box.exec("ls -A")).text == "", r)


async def openai_sandbox():
    from agents import Runner, set_tracing_disabled
    from agents.run import RunConfig
    from agents.sandbox import (ExecTimeoutError, ExecTransportError, LocalSnapshotSpec, Manifest, SandboxAgent, SandboxRunConfig,
                                WorkspaceReadNotFoundError)
    from agents.sandbox.entries import File
    from agents.sandbox.snapshot import NoopSnapshot
    from agents.testing import ScriptedModel, assistant_message, function_call

    from durward import AsyncDurward, NotFound
    from durward_frameworks.openai_sandbox import DurwardSandboxClient, DurwardSandboxClientOptions
    set_tracing_disabled(True)
    client = DurwardSandboxClient()
    manifest = Manifest(entries={"note.txt": File(content=b"from the manifest")}, environment={"value": {"COLOUR": "blue"}})
    model = ScriptedModel([[function_call("exec_command", {"cmd": "cat note.txt; echo $COLOUR; curl -s -o /dev/null -w '%{http_code}' "
                            "https://evil.example.com/"}, call_id="c1")], [assistant_message("done")]])
    result = await Runner.run(SandboxAgent(name="a", model=model, default_manifest=manifest), "go", run_config=RunConfig(
        sandbox=SandboxRunConfig(client=client, options=DurwardSandboxClientOptions("coder"))))
    seen = json.dumps([i.raw_item if isinstance(i.raw_item, dict) else i.raw_item.model_dump() for i in result.new_items], default=str)
    tell("OpenAI's SandboxAgent works in one: its manifest is laid out, an unlisted host is refused", result.final_output == "done" and
         "from the manifest" in seen and "blue" in seen and ("403" in seen or "000" in seen), seen)
    tell("which is deleted with the run", [b async for b in AsyncDurward().sandboxes()] == [])

    options = DurwardSandboxClientOptions("coder", keep=True, timeout=20)
    snapshots = LocalSnapshotSpec(base_path=os.path.join(os.environ["HOME"], "snapshots"))
    session = await client.create(manifest=manifest, options=options, snapshot=snapshots)
    async with session:
        r = await session.exec("echo out; echo err >&2; exit 3")
        tell("outputs apart, and the exit status", (r.stdout, r.stderr, r.exit_code) == (b"out\n", b"err\n", 3), r)
        tell("a command that takes too long", await raised(session.exec("sleep 30", timeout=1)) is ExecTimeoutError)
        work = asyncio.ensure_future(session.exec("sleep 3333"))
        await until(session, "pgrep -f 'sleep 333[3]'")
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        await until(session, "! pgrep -f 'sleep 333[3]'")
        tell("a cancelled one is killed", work.cancelled())
        await session.write("/workspace/made.txt", io.BytesIO(b"made"))
        tell("files", (await session.read("made.txt")).read() == b"made")
        tell("one that is not there", await raised(session.read("none.txt")) is WorkspaceReadNotFoundError)
        tell("none outside the workspace", await raised(session.read("/etc/passwd")) is not None)
        payload = client.serialize_session_state(session.state)
    async with await client.resume(client.deserialize_session_state(payload)) as again:
        tell("a kept one is found again, with its files", again.state.sandbox_id == payload["sandbox_id"] and
             (await again.read("made.txt")).read() == b"made")
    await AsyncDurward().delete(payload["sandbox_id"])
    async with await client.resume(client.deserialize_session_state(payload)) as other:
        tell("where it has gone another gets the snapshot's files", other.state.sandbox_id != payload["sandbox_id"] and
             (await other.read("made.txt")).read() == b"made")
        gone = other.state.sandbox_id
        await AsyncDurward().delete(gone)
        tell("and a command in one that is gone is an error of theirs, with ours as its cause",
             await raised(other.exec("true"), lambda e: isinstance(e.cause, NotFound)) is ExecTransportError)
        other.state.snapshot = NoopSnapshot(id="none")  # there is nothing left to keep


async def raised(work, more=lambda e: True):
    try:
        await work
    except Exception as e:  # the test says which
        return type(e) if more(e) else None
    return None


async def until(session, condition):
    for _ in range(100):
        if (await session.exec(condition)).exit_code == 0:
            return
        await asyncio.sleep(0.1)
    raise RuntimeError("never: " + condition)


def crewai():
    from durward import Durward
    from durward_frameworks.crewai import sandbox_tools
    with Durward().create("coder") as box:
        sh, py, read, write = sandbox_tools(box, timeout=2)
        tell("CrewAI: a command of its tool", "exit code 3\nout" in sh.run(command="echo out; exit 3"))
        tell("one that takes too long", "killed after 2 s" in sh.run(command="sleep 30"))
        tell("Python", "42" in py.run(code="print(6 * 7)"))
        tell("files", (write.run(path="a/b.txt", content="x"), read.run(path="a/b.txt")) == ("written", "x"))
        said = read.run(path="none")
        tell("what is not there is an answer", said.startswith("error: ") and "file_not_found" in said, said)
        tell("arguments that do not fit never get there", wrong(lambda: sh.run(command="true", timeout=0)))


def wrong(work):
    try:
        return "error" in str(work()).lower()
    except ValueError:
        return True


async def autogen():
    from autogen_core import CancellationToken
    from autogen_core.code_executor import CodeBlock

    from durward import AsyncDurward
    from durward_frameworks.autogen import SandboxCodeExecutor
    async with SandboxCodeExecutor("coder", timeout=3) as x:
        async def run(*blocks):
            return await x.execute_code_blocks([CodeBlock(c, lang) for lang, c in blocks], CancellationToken())
        r = await run(("python", "open('/workspace/n', 'w').write('7')\nprint('py')"), ("sh", "cat /workspace/n; echo; exit 4"), ("sh", "echo no"))
        tell("AutoGen: blocks run in order up to the first that fails", (r.exit_code, r.output) == (4, "py\n7\n"), r)
        r = await run(("cobol", "x"))
        tell("a language that is not known", r.exit_code == 1, r)
        tell("a block that takes too long", (await run(("sh", "sleep 30"))).exit_code == 124)
        token = CancellationToken()
        work = asyncio.ensure_future(x.execute_code_blocks([CodeBlock("sleep 30", "sh")], token))
        await asyncio.sleep(0.5)
        token.cancel()
        try:
            await work
            tell("a cancelled token cancels", False)
        except asyncio.CancelledError:
            tell("a cancelled token cancels", True)
        config = x.dump_component()
        tell("it is a component", config.provider.endswith("SandboxCodeExecutor") and config.config["policy"] == "coder", config)
        await x.restart()
        tell("a restart has another sandbox", (await run(("sh", "test -e /workspace/n"))).exit_code == 1)
    tell("nothing is left of it", [b async for b in AsyncDurward().sandboxes()] == [])


def smolagents():
    from smolagents import CodeAgent, tool
    from smolagents.models import ChatMessage, Model

    from durward import Durward
    from durward_frameworks.smolagents import SandboxPythonExecutor

    @tool
    def twice(n: int) -> int:
        """Twice a number.

        Args:
            n: the number
        """
        return 2 * n

    class Scripted(Model):
        steps = ["x = twice(21)\nimport os\nprint(os.getcwd())", "raise ValueError('again')", "final_answer({'x': x})"]

        def generate(self, messages, **kw):
            self.seen = messages
            return ChatMessage(role="assistant", content="Thought: go\n<code>\n%s\n</code>" % self.steps.pop(0))
    model = Scripted()
    with Durward().create("coder") as box, SandboxPythonExecutor(box, timeout=20) as executor:
        agent = CodeAgent(tools=[twice], model=model, executor=executor, max_steps=5, verbosity_level=0)
        tell("smolagents: its agent's steps run in one interpreter of the sandbox", agent.run("double") == {"x": 42})
        said = str([m.content for m in model.seen])
        tell("it is told what they print, and their errors", "/workspace" in said and "ValueError" in said, said[-1500:])
        tell("an expression is a result", executor("1 + 1").output == 2)


def main():
    which = sys.argv[1]
    os.environ["DURWARD_SOCKET"] = sys.argv[2]
    what = {"openai": openai_agents, "openai-sandbox": openai_sandbox, "autogen": autogen, "smolagents": smolagents, "crewai": crewai}[which]
    asyncio.run(what()) if asyncio.iscoroutinefunction(what) else what()


main()
