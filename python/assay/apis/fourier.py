"""Fourier transforms of whole signals and of sliding windows."""

from assay.reference import torch
from assay.registry import api, same
from assay.rules import positive

_AXES = {"": "n=None, axis=-1", "2": "s=None, axes=(-2, -1)", "n": "s=None, axes=None"}
for _stem in "fft ifft rfft irfft hfft ihfft".split():
    for _end, _axes in _AXES.items():
        _signature = f"x, {_axes}, norm='backward', name=None, *, out=None"
        same(_signature, f"paddle.fft.{_stem}{_end}", home="torch.fft")
same("x, axes=None, name=None", "paddle.fft.fftshift paddle.fft.ifftshift", home="torch.fft")


@api("paddle.fft.fftfreq")
def fftfreq(n, d=1.0, dtype=None, name=None, *, out=None, device=None, requires_grad=False):
    return torch.fft.fftfreq(n, d, dtype=dtype)


@api("paddle.fft.rfftfreq")
def rfftfreq(n, d=1.0, dtype=None, name=None, *, out=None, device=None, requires_grad=False):
    return torch.fft.rfftfreq(n, d, dtype=dtype)


@api("paddle.signal.stft", window=positive())
def stft(
    x, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect",
    normalized=False, onesided=None, name=None,
):  # fmt: skip
    return torch.stft(
        x, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex=True
    )


same(
    "x, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=True, "
    "length=None, return_complex=False, name=None",
    "paddle.signal.istft",
    window=positive(),
)
