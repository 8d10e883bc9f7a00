#include "models/ops/kernels/attention_kernels.h"

namespace zero::kernels {

template <>
const AttentionKernels<float>* attention_kernels<float>() {
  return nullptr;
}
template <>
const AttentionKernels<Bf16>* attention_kernels<Bf16>() {
  return nullptr;
}

}  // namespace zero::kernels
