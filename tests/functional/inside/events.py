#!/usr/bin/python3
"""Server-sent events on stdin as they come: prints a cell of matrix.py."""
import json
import sys
import time

times, words = [], ""
for line in sys.stdin:
    if line.startswith("data: ") and "delta" in line:
        times.append(time.monotonic())
        words += json.loads(line[6:])["choices"][0]["delta"].get("content", "")
print(json.dumps(["", words, times[-1] - times[0]]))
