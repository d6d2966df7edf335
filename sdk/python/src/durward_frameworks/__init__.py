"""Executors of other frameworks whose commands, code and files are in a sandbox of Durward: `openai_agents` (shell and
editor of OpenAI's Agents SDK), `autogen` (a CodeExecutor), `smolagents` (a PythonExecutor). Each module needs its
framework's package, and nothing else of this package needs any of them."""
