"""CrewAI: an agent whose tools work in a sandbox. The model's key stays with this process.
   pip install '/path/to/durward[crewai]'"""
from crewai import Agent, Crew, Task

from durward import Durward
from durward_frameworks.crewai import sandbox_tools

with Durward().create("coder") as box:
    coder = Agent(role="coder", goal="do what the task says", backstory="You work in a sandbox.",
                  llm="openai/gpt-5.1", tools=sandbox_tools(box))
    task = Task(description="Say in which folder you are, and put a greeting into hello.txt.",
                expected_output="the folder", agent=coder)
    print(Crew(agents=[coder], tasks=[task]).kickoff())
    print(box.read("/workspace/hello.txt").decode())
