#pragma once
// Checks the arguments of the operators in the library `zero`. operators.cpp and cuda/device_operators.cpp run an
// operator's check before each of its kernels, which trust their arguments. A check throws Error with one sentence: the
// operator, the argument, its value, and what is required. It reads no value in GPU memory, because the host would have
// to wait.
#include "models/ops/backends.h"

namespace zero {
namespace check {

template <class Signature>
struct WithoutResult;
template <class Result, class... Arguments>
struct WithoutResult<Result(Arguments...)> {
  using type = void(Arguments...);
};
template <class Signature>
using Of = typename WithoutResult<Signature>::type;

Of<signature::rms_norm> rms_norm;
Of<signature::rms_norm_again> rms_norm_again;
Of<signature::rms_norm_backward> rms_norm_backward;
Of<signature::swiglu> swiglu;
Of<signature::swiglu_backward> swiglu_backward;
Of<signature::cross_entropy> cross_entropy;
Of<signature::cross_entropy_gradient_> cross_entropy_gradient_;
Of<signature::cross_entropy_backward_> cross_entropy_backward_;
Of<signature::dropout_mask> dropout_mask;
Of<signature::embedding_backward> embedding_backward;
Of<signature::trained_rows> trained_rows;
Of<signature::logits_chunks> logits_chunks;
Of<signature::add_product_> add_product_;
Of<signature::matrix_product_into> matrix_product_into;
Of<signature::matrix_product> matrix_product;
Of<signature::table_rows> table_rows;
Of<signature::attention_operation> attention;

}  // namespace check

template <auto verify, auto kernel, class Kernel = decltype(kernel)>
struct Checked;
template <auto verify, auto kernel, class Result, class... Arguments>
struct Checked<verify, kernel, Result (*)(Arguments...)> {
  static Result call(Arguments... arguments) {
    verify(arguments...);
    return kernel(arguments...);
  }
};
/// A kernel preceded by the check of its arguments.
template <auto verify, auto kernel>
inline constexpr auto checked = &Checked<verify, kernel>::call;

}  // namespace zero
