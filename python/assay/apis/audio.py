"""Windows, mel scale, decibels and cosine transform of paddle.audio."""

import math

from assay.arguments import as_dtype
from assay.reference import torch
from assay.registry import api
from assay.rules import uniform
from assay.shorthand import FROM_SHAPES

COSINES = {
    "hamming": (0.54, 0.46),
    "hann": (0.5, 0.5),
    "blackman": (0.42, 0.5, 0.08),
    "nuttall": (0.3635819, 0.4891775, 0.1365995, 0.0106411),
}


def _general_cosine(count, weights):
    turn = torch.linspace(-math.pi, math.pi, count, dtype=torch.float64)
    return sum(weight * torch.cos(k * turn) for k, weight in enumerate(weights))


def _taylor(count, nbar=4, sll=30, norm=True):
    """A Taylor window: the nearest `nbar` side lobes have equal height, `sll` decibels below the peak."""
    a = math.acosh(10 ** (sll / 20)) / math.pi
    spread = nbar**2 / (a**2 + (nbar - 0.5) ** 2)
    weights = []
    for m in range(1, nbar):
        above = math.prod(1 - m**2 / spread / (a**2 + (n - 0.5) ** 2) for n in range(1, nbar))
        below = math.prod(1 - m**2 / n**2 for n in range(1, nbar) if n != m)
        weights.append((-1) ** (m + 1) * above / (2 * below))

    def at(place):
        turns = 2 * math.pi * (place - count / 2 + 0.5) / count
        return 1 + 2 * sum(weight * torch.cos((k + 1) * turns) for k, weight in enumerate(weights))

    window = at(torch.arange(count, dtype=torch.float64))
    return window / at(torch.tensor((count - 1) / 2, dtype=torch.float64)) if norm else window


def _tukey(count, alpha=0.5):
    if alpha <= 0:
        return torch.ones(count, dtype=torch.float64)
    edge = torch.arange(count, dtype=torch.float64)
    edge = torch.minimum(edge, count - 1 - edge) / (min(alpha, 1) * (count - 1) / 2)
    return torch.where(edge < 1, 0.5 * (1 - torch.cos(math.pi * edge)), 1.0)


def _window(kind, count, *more):
    """A symmetric window of `count` > 1 values."""
    place = torch.arange(count, dtype=torch.float64)
    middle = (count - 1) / 2
    if kind in COSINES:
        return _general_cosine(count, COSINES[kind])
    if kind == "bartlett":
        return 1 - (place - middle).abs() / middle
    if kind == "triang":
        return 1 - (place - middle).abs() / ((count + count % 2) / 2)
    if kind == "cosine":
        return torch.sin(math.pi / count * (place + 0.5))
    if kind == "bohman":
        part = (place / middle - 1).abs()
        return (1 - part) * torch.cos(math.pi * part) + torch.sin(math.pi * part) / math.pi
    if kind == "gaussian":
        return torch.exp(-0.5 * ((place - middle) / more[0]) ** 2)
    if kind == "general_gaussian":
        return torch.exp(-0.5 * ((place - middle) / more[1]).abs() ** (2 * more[0]))
    if kind == "exponential":
        center, tau = (*more, None, 1.0)[:2] if len(more) != 1 else (more[0], 1.0)
        return torch.exp(-(place - (middle if center is None else center)).abs() / tau)
    if kind == "kaiser":
        scale = torch.tensor(float(more[0]), dtype=torch.float64)
        root = (1 - ((place - middle) / middle) ** 2).clamp(min=0).sqrt()
        return torch.i0(scale * root) / torch.i0(scale)
    return {"taylor": _taylor, "tukey": _tukey}[kind](count, *more)


@api("paddle.audio.functional.get_window", grad=FROM_SHAPES)
def get_window(window, win_length, fftbins=True, dtype="float64"):
    """A periodic window is a symmetric one of one more value without its last."""
    kind, *more = window if isinstance(window, list | tuple) else (window,)
    dtype = as_dtype(dtype)
    if win_length <= 1:
        return torch.ones(win_length, dtype=dtype)
    return _window(kind, win_length + bool(fftbins), *more)[:win_length].to(dtype)


# Above 1,000 Hz (15 mel) the scale is logarithmic, with 27 steps for a factor of 6.4.
_LINEAR, _BEND, _STEP = 200 / 3, 1000.0, math.log(6.4) / 27

_FREQUENCIES = uniform(20, 8000)
_MELS = uniform(1, 60)


def _to_mel(freq, htk):
    if htk:
        return 2595 * torch.log10(1 + freq / 700)
    bent = _BEND / _LINEAR + torch.log((freq / _BEND).clamp(min=1e-30)) / _STEP
    return torch.where(freq >= _BEND, bent, freq / _LINEAR)


def _to_hz(mel, htk):
    if htk:
        return 700 * (10 ** (mel / 2595) - 1)
    bent = _BEND * torch.exp(_STEP * (mel - _BEND / _LINEAR))
    return torch.where(mel >= _BEND / _LINEAR, bent, mel * _LINEAR)


def _of_either(function, value, htk):
    """A number for a number, a tensor for a tensor."""
    if isinstance(value, torch.Tensor):
        return function(value, htk)
    return function(torch.tensor(float(value), dtype=torch.float64), htk).item()


@api("paddle.audio.functional.hz_to_mel", freq=_FREQUENCIES)
def hz_to_mel(freq, htk=False):
    return _of_either(_to_mel, freq, htk)


@api("paddle.audio.functional.mel_to_hz", mel=_MELS)
def mel_to_hz(mel, htk=False):
    return _of_either(_to_hz, mel, htk)


def _mels_between(count, f_min, f_max, htk):
    low, high = (_to_mel(torch.tensor(float(f), dtype=torch.float64), htk) for f in (f_min, f_max))
    steps = torch.linspace(0, 1, count, dtype=torch.float64)
    return _to_hz(low + (high - low) * steps, htk)


@api("paddle.audio.functional.mel_frequencies")
def mel_frequencies(n_mels=64, f_min=0.0, f_max=11025.0, htk=False, dtype="float32"):
    return _mels_between(n_mels, f_min, f_max, htk).to(as_dtype(dtype))


@api("paddle.audio.functional.fft_frequencies")
def fft_frequencies(sr, n_fft, dtype="float32"):
    return torch.linspace(0, sr / 2, 1 + n_fft // 2, dtype=as_dtype(dtype))


@api("paddle.audio.functional.compute_fbank_matrix")
def compute_fbank_matrix(
    sr, n_fft, n_mels=64, f_min=0.0, f_max=None, htk=False, norm="slaney", dtype="float32"
):
    """Triangles between neighbouring mel frequencies; Slaney's have equal areas."""
    centers = _mels_between(n_mels + 2, f_min, sr / 2 if f_max is None else f_max, htk)
    bins = torch.linspace(0, sr / 2, 1 + n_fft // 2, dtype=torch.float64)
    widths = centers.diff().unsqueeze(1)
    rising = (bins - centers[:-2].unsqueeze(1)) / widths[:-1]
    falling = (centers[2:].unsqueeze(1) - bins) / widths[1:]
    weights = torch.minimum(rising, falling).clamp(min=0)
    if norm == "slaney":
        weights = weights * (2 / (centers[2:] - centers[:-2])).unsqueeze(1)
    elif isinstance(norm, int | float):
        weights = torch.nn.functional.normalize(weights, p=norm, dim=-1)
    return weights.to(as_dtype(dtype))


@api("paddle.audio.functional.power_to_db", spect=uniform(0.01, 4))
def power_to_db(spect, ref_value=1.0, amin=1e-10, top_db=80.0):
    """Decibels, at most `top_db` below the loudest."""
    if amin <= 0 or ref_value <= 0 or (top_db is not None and top_db < 0):
        raise ValueError(f"invalid ref_value={ref_value}, amin={amin} or top_db={top_db}")
    decibels = 10 * torch.log10(spect.clamp(min=amin)) - 10 * math.log10(max(ref_value, amin))
    if top_db is None:
        return decibels
    return torch.maximum(decibels, decibels.amax() - top_db)


@api("paddle.audio.functional.create_dct")
def create_dct(n_mfcc, n_mels, norm="ortho", dtype="float32"):
    place = torch.arange(n_mels, dtype=torch.float64).unsqueeze(1) + 0.5
    waves = torch.cos(math.pi / n_mels * place * torch.arange(n_mfcc, dtype=torch.float64))
    if norm is None:
        waves = 2 * waves
    else:
        waves = waves * math.sqrt(2 / n_mels)
        waves[:, 0] /= math.sqrt(2)
    return waves.to(as_dtype(dtype))
