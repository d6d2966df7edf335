"""Examples of Python from the documents, as they stand there, one after the other: sdk_documents.t starts this with JSON of
them in its input. What an example leaves to its reader comes from PROVIDED, what it imported further up from there. Prints a
line of JSON behind "seen" for each."""
import ast
import asyncio
import builtins
import inspect
import json
import os
import subprocess
import sys
import traceback

import durward


def tell(name, good, *more):
    print("seen " + json.dumps([bool(good), name, [str(x)[-2500:] for x in more]]), file=sys.__stdout__, flush=True)


def open_names(tree):
    """What it uses and does not make."""
    made, used = set(), set()
    for x in ast.walk(tree):
        if isinstance(x, ast.Name):
            (used if isinstance(x.ctx, ast.Load) else made).add(x.id)
        elif isinstance(x, (ast.Import, ast.ImportFrom)):
            made |= {(a.asname or a.name).split(".")[0] for a in x.names}
        elif isinstance(x, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            made.add(x.name)
    return used - made - set(dir(builtins))


def imports(tree, names):
    """Those of its imports that bring one of these names."""
    return [x for x in tree.body if isinstance(x, (ast.Import, ast.ImportFrom)) and
            any((a.asname or a.name).split(".")[0] in names for a in x.names)]


def box():
    made = durward.Durward().create("coder")
    made.exec("mkdir -p site")
    return made


def model():
    from smolagents import OpenAIServerModel
    return OpenAIServerModel(model_id="gpt-5", api_base=os.environ["OPENAI_BASE_URL"], api_key=os.environ["OPENAI_API_KEY"])


def backend():
    from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
    from deepagents.backends.sandbox import BaseSandbox

    class Plain(BaseSandbox):
        """Commands in a network namespace that reaches the proxy and nothing else."""
        id = "plain"

        def execute(self, command, *, timeout=None):
            r = subprocess.run(["ip", "netns", "exec", os.environ["NAMESPACE"], "env", "-i", "PATH=/usr/bin:/bin", "HOME=/nonexistent", "sh",
                                "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout or 60)
            return ExecuteResponse(output=r.stdout.decode("utf-8", "replace"), exit_code=r.returncode)

        def upload_files(self, files):
            for path, data in files:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as f:
                    f.write(data)
            return [FileUploadResponse(path=path) for path, _ in files]

        def download_files(self, paths):
            return [FileDownloadResponse(path=p, content=open(p, "rb").read()) for p in paths]
    return Plain()


PROVIDED = {"box": box, "model": model, "backend": backend}


class Watched:
    """Stands for print() where an example watches for ever: at its first event a file comes, then the directory goes."""

    def __init__(self, sandbox):
        self.sandbox, self.kinds = sandbox, []

    def __call__(self, kind, *more):
        self.kinds.append(kind)
        if kind == "ready":
            self.sandbox.exec("echo x >site/x; sleep 0.2; rm -r site")


def run(text, names):
    code = compile(text, "example", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if code.co_flags & inspect.CO_COROUTINE:
        asyncio.run(eval(code, names))
    else:
        exec(code, names)


def example(name, text, above):
    tree, names = ast.parse(text), {}
    unknown = open_names(tree)
    for x in [x for other in above for x in imports(ast.parse(other), unknown)]:
        exec(compile(ast.Module([x], []), "above", "exec"), names)
    if unknown - set(names) - set(PROVIDED):
        tell(name, False, "nothing makes", unknown - set(names) - set(PROVIDED))
        return
    for x in sorted(unknown - set(names)):
        names[x] = PROVIDED[x]()
    watches = ".watch(" in text
    if watches:
        names["print"] = Watched(names["box"])
    try:
        run(text, names)
        tell(name, not watches, "it ended")
    except durward.FileError as e:
        kinds = names["print"].kinds if watches else []
        tell(name, watches and e.code == "file_not_found" and kinds[:1] == ["ready"] and "created" in kinds, kinds, traceback.format_exc())
    except Exception:
        tell(name, False, traceback.format_exc())
    if "box" in unknown and "box" in names:
        names["box"].delete()


def main():
    sys.stdout = sys.stderr
    ask = json.load(sys.stdin)
    for i, (name, text, wanted) in enumerate(ask):
        if wanted:
            example(name, text, [other for _, other, _ in ask[:i]])


main()
