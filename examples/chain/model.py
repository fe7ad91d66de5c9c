"""A model of two numbers, y = w x + b, that needs nothing but Python."""

import json
import os


def flag(argv, name, default=None):
    for word in argv:
        if word.startswith(name + "="):
            return word[len(name) + 1 :]
    return default


def points(seed=1):
    """Points near y = 3 x - 1, the same ones every time."""
    state = seed
    for i in range(64):
        state = (1103515245 * state + 12345) % 2**31
        x = i / 32 - 1
        yield x, 3 * x - 1 + (state / 2**31 - 0.5) / 10


def loss(w, b):
    pairs = list(points())
    return sum((w * x + b - y) ** 2 for x, y in pairs) / len(pairs)


def save(path, weights):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        json.dump(weights, file)


def load(path):
    with open(path) as file:
        return json.load(file)
