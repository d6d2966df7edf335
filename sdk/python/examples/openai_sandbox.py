"""OpenAI's Agents SDK: a SandboxAgent whose sandbox is Durward's. Its key stays with this process.
   pip install '/path/to/durward[openai-agents]'"""
import asyncio

from agents import Runner
from agents.run import RunConfig
from agents.sandbox import SandboxAgent, SandboxRunConfig

from durward_frameworks.openai_sandbox import DurwardSandboxClient, DurwardSandboxClientOptions

agent = SandboxAgent(name="coder", model="gpt-5.1", instructions="You work in a sandbox.")


async def main() -> None:
    sandbox = SandboxRunConfig(client=DurwardSandboxClient(), options=DurwardSandboxClientOptions("coder"))
    result = await Runner.run(agent, "Say in which folder you are, and put a greeting into hello.txt.",
                              run_config=RunConfig(sandbox=sandbox))
    print(result.final_output)


asyncio.run(main())
