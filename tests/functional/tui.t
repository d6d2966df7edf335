#!/usr/bin/python3 -B
"""Coding agents of others on a terminal, as people use them: `durward run NAME` in tmux shows the agent's own screen, one
turn of the task is typed and made (a file read and edited, a command run, a streamed answer), the agent is left by its own
command, and its API is refused nothing. ./runtests tries one of them, another one when a profile changes; `make tui` all, or those that
TUI names."""
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import agents, durward, models, scan, tap  # noqa: E402
from harness.screen import Screen  # noqa: E402

# name -> (its arguments, what it is told where it asks before, where it can be typed, how it is left)
TALKS = {
    "claude": (["--dangerously-skip-permissions"], "Yes, I accept", r"bypass permissions on", "/exit"),
    "codex": (["--dangerously-bypass-approvals-and-sandbox"], None, r"Ask Codex to do anything", "/quit"),
    "gemini": (["-y", "--skip-trust"], None, r"Type your message", "/quit"),
    "opencode": (["-m", "anthropic/claude-sonnet-4-5"], None, r"Ask anything|ctrl\+p commands", "/exit"),
    "copilot": (["--allow-all-tools", "--allow-all-paths"], None, r"/ commands .* help", "/exit"),
    "qwen": (["-y"], None, r"Type your message", "/quit"),
}
START, TURN, END = 150, 150, 60  # seconds


def begin(t, run, words):
    """`durward run NAME` on a screen, with the key where its caller has it."""
    a = run.agent
    run.d.policy("agent", [])
    run.d.save()
    path = os.path.dirname(os.path.join(a.folder, a.program)) + ":" + a.variables()["PATH"]
    env = dict(run.d.env, PATH=path, **{a.caller_key: run.key})
    return Screen(t, [durward.program(), "run", "-c", run.d.conf, a.name] + words, run.d.work, env), env


def talk(t, name, screen):
    """The task is typed where the agent waits for it. -> whether the last words came"""
    _, asks, ready, _ = TALKS[name]

    def waits():
        return not (asks and screen.choose(asks)) and re.search(ready, screen.words()) is not None
    began = time.monotonic()
    if not t.ok(screen.wait(waits, START), "%s: its own screen stands" % name, screen.shown()):
        return False
    t.diag("%s: its screen stood after %.1f s" % (name, time.monotonic() - began))
    screen.type(agents.PROMPT)
    t.ok(screen.wait(lambda: models.MARK in screen.words(), 20), "%s: what is typed is seen" % name, screen.shown())
    screen.key("Enter")
    return t.ok(screen.wait(lambda: models.LAST in screen.words(), TURN), "%s: the turn is made, to its last words" % name,
                screen.shown())


def leave(t, name, screen):
    """The command is typed, seen, and entered; a menu that opened below it may take the first Enter."""
    ended = lambda: screen.status() is not None  # noqa: E731
    word = TALKS[name][3]

    def left():
        before = screen.shown().count(word)
        screen.key("C-u")
        screen.type(word)
        screen.wait(lambda: ended() or screen.shown().count(word) > before, 10)
        for _ in range(2):
            screen.key("Enter")
            if screen.wait(ended, 6):
                return True
        return False
    t.ok(screen.wait(left, END) and screen.status() == 0, "%s: its own command leaves it" % name, screen.status(), screen.shown())


def one(t, agent):
    name = agent.name
    run = agents.Run(t, agent, "tui")
    screen, env = begin(t, run, TALKS[name][0])
    made = talk(t, name, screen)
    if made:
        t.eq((run.read("door.txt"), run.read("told.txt")), ("kept", "kept"), "%s: the file is edited, the command was run" % name)
        leave(t, name, screen)
    last = screen.shown()
    screen.close()
    here, elsewhere = run.refused()
    t.ok(made and not here, "%s: 0 of %d requests to %s were refused" % (name, len(run.double.requests), agent.host), *here)
    t.diag("%s: refused elsewhere: %s" % (name, ", ".join(sorted(set(elsewhere))) or "nothing"))
    after = run.d.command("run", "-c", run.d.conf, "--profile", name, "--", "sh", "-c",
                          "printenv %s >key.txt; %s" % (agent.key, agents.AFTER), env=env)
    scanner = scan.Scanner(key=run.secret)
    for text in (last, after.stdout, after.stderr):
        scanner.search(text, "screen")
    scanner.tree(run.d.work)
    scanner.tree(run.d.audit_dir)
    t.ok(os.path.exists(os.path.join(run.d.work, "left.tar")) and not scanner.hits,
         "%s: 0 copies of the key in %d bytes that it left, showed, or that are on record" % (name, scanner.bytes),
         *scanner.report())
    t.tally(canaries=len(scanner.hits), searched=scanner.bytes)


def sample(names):
    """One of them, by the profiles."""
    h = hashlib.sha256()
    for path in sorted(glob.glob(os.path.join(durward.TOP, "rules/profiles/*.yaml"))):
        with open(path, "rb") as f:
            h.update(f.read())
    return [sorted(names)[h.digest()[0] % len(names)]]


def main(t):
    if not shutil.which("tmux"):
        raise tap.Skip("tmux is not installed")
    asked = os.environ.get("TUI", "").split()
    known = [a for a in agents.AGENTS if a.name in TALKS and (a.name in asked or asked in ([], ["all"]))]
    for a in known:
        if a.missing():
            t.diag("%s: %s" % (a.name, a.missing()))
    there = {a.name: a for a in known if not a.missing()}
    if not there:
        raise tap.Skip("coding agents are not there: run tests/functional/clients/setup")
    for a in [there[x] for x in (list(there) if asked else sample(there))]:
        t.part(one, t, a)
    t.diag(subprocess.run(["tmux", "-V"], capture_output=True, text=True, check=True).stdout.strip())


tap.run(main, timeout=900)
