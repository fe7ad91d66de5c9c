"""A look at something that may change or end this process: in a child process."""

import json
import os
from collections.abc import Callable
from typing import Any


def told_by_child(look: Callable[[Callable[[Any], None]], None]) -> list[Any]:
    """What `look` tells in a child process, as JSON. Its exceptions and crashes are dropped."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            look(lambda told: os.write(writing, (json.dumps(told) + "\n").encode()) and None)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        lines = answer.read().splitlines()
    os.waitpid(child, 0)
    return [json.loads(line) for line in lines]
