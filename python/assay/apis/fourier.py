"""Fourier transforms of whole signals and of sliding windows."""

from assay.reference import torch
from assay.registry import api, same
from assay.rules import positive


def _over_one_axis(stem):
    @api(f"paddle.fft.{stem}")
    def transform(x, n=None, axis=-1, norm="backward", name=None, *, out=None):
        return getattr(torch.fft, stem)(x, n, axis, norm)


def _over_two_axes(stem):
    @api(f"paddle.fft.{stem}")
    def transform(x, s=None, axes=(-2, -1), norm="backward", name=None, *, out=None):
        return getattr(torch.fft, stem)(x, s, axes, norm)


def _over_many_axes(stem):
    @api(f"paddle.fft.{stem}")
    def transform(x, s=None, axes=None, norm="backward", name=None, *, out=None):
        return getattr(torch.fft, stem)(x, s, axes, norm)


for _stem in "fft ifft rfft irfft hfft ihfft".split():
    _over_one_axis(_stem)
    _over_two_axes(f"{_stem}2")
    _over_many_axes(f"{_stem}n")


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
