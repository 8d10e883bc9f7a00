#include "zero/library/include/zero/nn/rms_norm.h"

#include <ATen/ATen.h>

#include <sstream>

#include "base/error.h"
#include "models/ops/rms_norm.h"

namespace zero::nn {

RMSNormImpl::RMSNormImpl(std::int64_t size, double eps) : size_(size), eps_(eps) { reset(); }

void RMSNormImpl::reset() { weight = register_parameter("weight", torch::ones({size_})); }

void RMSNormImpl::pretty_print(std::ostream& stream) const {
  stream << "zero::nn::RMSNorm(" << size_ << ", eps=" << eps_ << ')';
}

torch::Tensor RMSNormImpl::forward(const torch::Tensor& x) {
  if (x.dim() == 0 || x.size(-1) != size_) {
    std::ostringstream shape;
    shape << x.sizes();
    throw InputError("RMSNorm of " + std::to_string(size_) + " was given a tensor of " + shape.str() +
                     ": its last dimension is " + std::to_string(size_));
  }
  return rms_norm(x.reshape({-1, size_}).contiguous(), weight, eps_).y.view(x.sizes());
}

}  // namespace zero::nn
