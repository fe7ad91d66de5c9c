"""Distinct calls by their keys, for any framework."""

from typing import Any

from assay.capture.recorder import Case, Recorder

# How many cases may differ in numbers of these kinds only, such as the step size of an optimizer.
MOST_VARIANTS = ((float,), 3), ((float, int), 64)


class Known:
    """The cases of a process by key. Tensors have keys of the class TensorKey."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.cases: dict[Any, Case] = {}
        self.texts: dict[int, Case] = {}  # by the hash of the text; keys may differ, as under autocast
        self.variants: dict[Any, list[Case]] = {}

    def clear(self) -> None:
        """After a fork."""
        self.cases.clear()
        self.texts.clear()
        self.variants.clear()

    def new(self, key: Any, text: str, known: dict[str, Any], name: str) -> Case:
        """The case of a new key. Of many that differ in numbers only, the last one stands for the rest."""
        kinds = [
            (self.variants.setdefault((each, _without(key, each)), []), most) for each, most in MOST_VARIANTS
        ]
        for variants, most in kinds:
            if len(variants) >= most:
                return variants[-1]  # the key is not kept: the next one may have new numbers again
        case = self.texts.get(hash(text)) if text else None
        if case is None:
            case = self.recorder.new(text, known, name)
            self.texts[hash(text)] = case
        self.cases[key] = case
        for variants, _ in kinds:
            variants.append(case)
        return case


class TensorKey(tuple[Any, ...]):
    """What a case states of a tensor."""

    __slots__ = ()


def _without(key: Any, kinds: tuple[type, ...]) -> Any:
    """A key in which all numbers of these kinds are equal. Tensors keep theirs."""
    if isinstance(key, tuple) and not isinstance(key, TensorKey):
        return key[:1] if key[:1] == (float,) else tuple(_without(part, kinds) for part in key)
    return type(key) if type(key) in kinds else key
