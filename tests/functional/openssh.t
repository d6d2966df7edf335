#!/usr/bin/python3 -B
"""OpenSSH's own regress scripts with their client inside a sandbox: those that take seconds. `make openssh-suites` has all of them."""
import os

RUN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "openssh", "run")
os.execv(RUN, [RUN, "--quick"])
