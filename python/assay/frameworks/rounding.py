"""Monte Carlo arithmetic (Parker 1997): every result of an operation moves by up to a unit.

Where terms cancel for structural reasons, as in the gradient of a function that does not change if its
input is scaled, perturbed inputs show nothing: the truth stays 0. Perturbed intermediate results show the
magnitude of the terms.
"""

from collections.abc import Callable
from typing import Any

# Operations that round nothing: they select, copy or fill, or their results are exact.
EXACT = frozenset(
    """_to_copy _unsafe_index abs amax amin arange cat ceil clamp clamp_max clamp_min clone complex
    constant_pad_nd copysign embedding empty empty_like empty_strided eye fill flip floor frexp full
    full_like gather index index_fill index_put index_select lift_fresh linspace masked_fill max
    maximum min minimum nan_to_num neg new_empty new_full new_ones new_zeros ones ones_like relu
    repeat roll round scalar_tensor scatter select_backward select_scatter sgn sign slice_backward
    slice_scatter sort stack take threshold threshold_backward topk tril triu trunc unfold_backward
    where zeros zeros_like""".split()
)

# Operations of several steps whose intermediate results cancel.
COMPOSED = frozenset(
    """_batch_norm_with_update native_batch_norm native_batch_norm_backward native_group_norm
    native_group_norm_backward native_layer_norm native_layer_norm_backward""".split()
)


def rounding(torch: Any, moved: Callable[[Any, int], Any]) -> Any:
    """A context in which `moved(tensor, number)` perturbs the results of PyTorch's operations, also those of
    gradients."""
    from torch._decomp import decomposition_table as decompositions
    from torch.utils._python_dispatch import TorchDispatchMode

    class Rounding(TorchDispatchMode):
        number = 0

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # it would import torch._dynamo, which takes seconds

        def one(self, value: Any) -> Any:
            if not isinstance(value, torch.Tensor) or value.dtype not in (torch.float64, torch.complex128):
                return value  # inputs before they are widened
            self.number += 1
            return moved(value, self.number)

        def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = operation.overloadpacket.__name__
            if name in COMPOSED and (steps := decompositions.get(operation)):
                with self:
                    return steps(*args, **(kwargs or {}))
            found = operation(*args, **(kwargs or {}))
            aliased = any(part.alias_info is not None for part in operation._schema.returns)
            if aliased or name in EXACT:
                return found
            return type(found)(map(self.one, found)) if isinstance(found, tuple | list) else self.one(found)

    return Rounding()
