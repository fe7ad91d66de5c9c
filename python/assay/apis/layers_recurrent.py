"""Recurrent cells and networks. The gates are input, forget, cell, output (LSTM) and reset, update, new
(GRU)."""

from assay.layers import Made, without
from assay.reference import torch
from assay.registry import layer
from assay.rules import integers

_ACTIVATIONS = {"tanh": lambda x: torch.tanh(x), "relu": lambda x: torch.relu(x)}
_SUFFIXES = {"weight_ih": 0, "weight_hh": 1, "bias_ih": 2, "bias_hh": 3}


def _shapes(gates, inputs, hidden, attributes):
    rows = gates * hidden
    shapes = {"weight_ih": (rows, inputs), "weight_hh": (rows, hidden)}
    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
    return without(shapes, **dict(zip(_SUFFIXES, attributes, strict=True)))


def _projected(x, weight, bias):
    y = x @ weight.T
    return y if bias is None else y + bias


def _step(kind, p, x, state, activation="tanh"):
    """One step of a cell. The new state is a tuple whose first part is the output."""
    from_input = _projected(x, p["weight_ih"], p.get("bias_ih"))
    from_state = _projected(state[0], p["weight_hh"], p.get("bias_hh"))
    if kind == "SimpleRNN":
        return (_ACTIVATIONS[activation](from_input + from_state),)
    if kind == "LSTM":
        enter, forget, new, leave = (from_input + from_state).chunk(4, -1)
        cell = torch.sigmoid(forget) * state[1] + torch.sigmoid(enter) * torch.tanh(new)
        return torch.sigmoid(leave) * torch.tanh(cell), cell
    reset_x, update_x, new_x = from_input.chunk(3, -1)
    reset_h, update_h, new_h = from_state.chunk(3, -1)
    update = torch.sigmoid(update_x + update_h)
    new = torch.tanh(new_x + torch.sigmoid(reset_x + reset_h) * new_h)
    return (update * state[0] + (1 - update) * new,)


_GATES = {"SimpleRNN": 1, "LSTM": 4, "GRU": 3}


def _cell(kind, input_size, hidden_size, attributes, activation):
    parts = 2 if kind == "LSTM" else 1

    def call(p, inputs, states=None):
        if states is None:
            states = tuple(inputs.new_zeros(len(inputs), hidden_size) for _ in range(parts))
        states = tuple(states) if isinstance(states, list | tuple) else (states,)
        new = _step(kind, p, inputs, states, activation)
        return new[0], new if parts == 2 else new[0]

    return Made(call, _shapes(_GATES[kind], input_size, hidden_size, attributes))


def _one_way(kind, p, inputs, state, lengths, activation, backwards):
    """One direction over time, the first axis. After the end of a sequence its state stays and its output is
    0."""
    times = range(len(inputs))
    outputs = [None] * len(inputs)
    for time in reversed(times) if backwards else times:
        new = _step(kind, p, inputs[time], state, activation)
        if lengths is not None:
            inside = (time < lengths).unsqueeze(1)
            new = tuple(torch.where(inside, one, old) for one, old in zip(new, state, strict=True))
            outputs[time] = torch.where(inside, new[0], 0)
        else:
            outputs[time] = new[0]
        state = new
    return torch.stack(outputs), state


def _network(kind, input_size, hidden_size, num_layers, direction, time_major, attributes, activation):
    ways = 2 if direction in ("bidirect", "bidirectional") else 1
    parts = 2 if kind == "LSTM" else 1
    shapes = {}
    for level in range(num_layers):
        width = input_size if level == 0 else hidden_size * ways
        for way in range(ways):
            for name, shape in _shapes(_GATES[kind], width, hidden_size, attributes).items():
                shapes[f"{name}_l{level}{'_reverse' * way}"] = shape

    def call(p, inputs, initial_states=None, sequence_length=None):
        x = inputs if time_major else inputs.transpose(0, 1)
        if initial_states is None:
            zeros = x.new_zeros(num_layers * ways, x.shape[1], hidden_size)
            initial_states = (zeros,) * parts
        elif not isinstance(initial_states, list | tuple):
            initial_states = (initial_states,)
        last = []
        for level in range(num_layers):
            sides = []
            for way in range(ways):
                place = level * ways + way
                own = {name: p.get(f"{name}_l{level}{'_reverse' * way}") for name in _SUFFIXES}
                state = tuple(part[place] for part in initial_states)
                y, state = _one_way(kind, own, x, state, sequence_length, activation, way == 1)
                sides.append(y)
                last.append(state)
            x = torch.cat(sides, -1)
        final = tuple(torch.stack([state[part] for state in last]) for part in range(parts))
        return x if time_major else x.transpose(0, 1), final if parts == 2 else final[0]

    return Made(call, shapes)


def _times(inputs, time_major=False):
    return inputs.shape[0 if time_major else 1]


_LENGTHS = {"sequence_length": integers(1, lambda inputs, time_major=False: _times(inputs, time_major) + 1)}


_ATTRIBUTES = ", ".join(f"{name}_attr=None" for name in _SUFFIXES)
_STACKED = "num_layers=1, direction='forward', time_major=False, dropout=0.0"


def _registered(kind, before="", after=""):
    """The cell and the network of this kind. `before` and `after` are its options beside the attributes."""
    options = f"{before}{_ATTRIBUTES}, {after}name=None"

    @layer(f"paddle.nn.{kind}Cell", inputs="inputs states", signature=f"input_size, hidden_size, {options}")
    def cell(
        input_size, hidden_size, weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr, activation="tanh"
    ):
        attributes = weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr
        return _cell(kind, input_size, hidden_size, attributes, activation)

    @layer(
        f"paddle.nn.{kind}",
        inputs="inputs initial_states sequence_length",
        signature=f"input_size, hidden_size, {_STACKED}, {options}",
        **_LENGTHS,
    )
    def network(
        input_size, hidden_size, num_layers, direction, time_major, weight_ih_attr, weight_hh_attr,
        bias_ih_attr, bias_hh_attr, activation="tanh",
    ):  # fmt: skip
        attributes = weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr
        options = num_layers, direction, time_major, attributes, activation
        return _network(kind, input_size, hidden_size, *options)


_registered("SimpleRNN", before="activation='tanh', ")
_registered("LSTM", after="proj_size=0, ")
_registered("GRU")
