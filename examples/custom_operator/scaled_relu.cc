// A custom operator of Paddle: relu(x) * factor on the CPU, and its gradient.

#include "paddle/extension.h"

namespace {

std::vector<paddle::Tensor> forward(const paddle::Tensor& x, double factor) {
  paddle::Tensor y = paddle::empty_like(x);
  PD_DISPATCH_FLOATING_TYPES(x.type(), "scaled_relu", [&] {
    const data_t* from = x.data<data_t>();
    data_t* to = y.data<data_t>();
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      to[i] = from[i] > 0 ? from[i] * static_cast<data_t>(factor) : static_cast<data_t>(0);
    }
  });
  return {y};
}

std::vector<paddle::Tensor> backward(const paddle::Tensor& x, const paddle::Tensor& upstream,
                                     double factor) {
  paddle::Tensor gradient = paddle::empty_like(x);
  PD_DISPATCH_FLOATING_TYPES(x.type(), "scaled_relu_grad", [&] {
    const data_t* from = x.data<data_t>();
    const data_t* above = upstream.data<data_t>();
    data_t* to = gradient.data<data_t>();
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      to[i] = from[i] > 0 ? above[i] * static_cast<data_t>(factor) : static_cast<data_t>(0);
    }
  });
  return {gradient};
}

}  // namespace

PD_BUILD_OP(scaled_relu)
    .Inputs({"X"})
    .Outputs({"Y"})
    .Attrs({"factor: double"})
    .SetKernelFn(PD_KERNEL(forward));
PD_BUILD_GRAD_OP(scaled_relu)
    .Inputs({"X", paddle::Grad("Y")})
    .Outputs({paddle::Grad("X")})
    .Attrs({"factor: double"})
    .SetKernelFn(PD_KERNEL(backward));
