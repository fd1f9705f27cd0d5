"""Drives one lab for a test in Java: a line of JSON a verb on standard input, one a result on standard output."""

import json
import os
import sys

from antipode_lab import Lab

out = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)  # whatever else prints must not stand between the answers


def say(**message):
    out.write(json.dumps(message) + "\n")


def hear():
    line = sys.stdin.readline()
    if not line:
        raise SystemExit
    return json.loads(line)


def call_back(*_):
    say(callback=True)
    if "error" in hear():
        raise RuntimeError("the callback failed")


wanted = hear()
with Lab(*wanted.pop("stores"), **wanted) as lab:
    say(ready=str(lab.path))
    while True:
        message = hear()
        try:
            named = {name: call_back if value == "<callback>" else value for name, value in message["named"].items()}
            result = getattr(lab[message["store"]], message["verb"])(*message["words"], **named)
            say(result=result if isinstance(result, (str, int, float, bool, list, dict)) else None)
        except Exception as error:
            say(error=f"{type(error).__name__}: {error}")
