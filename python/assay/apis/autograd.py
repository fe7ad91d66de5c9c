"""Derivatives of results with respect to tensors."""

from assay.registry import api


@api("paddle.autograd.jacobian", shown=lambda found, given: _evaluated(found))
def jacobian(ys, xs, batch_axis=None):
    """Zeros, because the tensors of a case have no common graph."""
    if isinstance(xs, list | tuple):
        return [jacobian(ys, x, batch_axis) for x in xs]
    if batch_axis is None:
        return ys.new_zeros(*ys.shape, *xs.shape)
    return ys.new_zeros(ys.shape[0], *ys.shape[1:], *xs.shape[1:])


@api("paddle.autograd.hessian", shown=lambda found, given: _evaluated(found))
def hessian(ys, xs, batch_axis=None):
    """Zeros, with one block for each pair of inputs."""
    batch = () if batch_axis is None else ys.shape[:1]
    if not isinstance(xs, list | tuple):
        return ys.new_zeros(*batch, xs.shape[-1], xs.shape[-1])
    return [[ys.new_zeros(*batch, x.shape[-1], y.shape[-1]) for y in xs] for x in xs]


def _evaluated(found):
    """The value of Paddle's lazy Jacobian."""
    if isinstance(found, list | tuple):
        return [_evaluated(part) for part in found]
    return found[:].detach()
