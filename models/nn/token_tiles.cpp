#include "models/nn/token_tiles.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include <algorithm>

namespace zero {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

struct HeldTiles : torch::CustomClassHolder {
  HeldTiles(TiledBody b, const TokenTiles& t) : body(std::move(b)), tiles(t) {}
  TiledBody body;
  TokenTiles tiles;
};
using TilesPointer = c10::intrusive_ptr<HeldTiles>;

at::Tensor rows_of(const at::Tensor& x) { return x.contiguous().view({1, -1, x.size(-1)}); }

/// Calls run(first, count) for each tile of `all` tokens.
template <class Run>
void for_each_tile(std::int64_t all, std::int64_t tokens, const Run& run) {
  for (std::int64_t first = 0; first < all; first += tokens) run(first, std::min(tokens, all - first));
}

/// The sum over tiles of one leaf's gradients. Empty if no tile has one, or if they were written elsewhere.
class GradientSum {
 public:
  void add(const at::Tensor& gradient) {
    if (!gradient.defined()) return;
    type_ = gradient.scalar_type();
    const at::ScalarType wide = at::toOpMathType(type_);
    sum_ = sum_.defined() ? sum_.add_(gradient.to(wide)) : gradient.to(wide, /*non_blocking=*/false, /*copy=*/true);
  }
  at::Tensor rounded() const { return sum_.defined() ? sum_.to(type_) : sum_; }

 private:
  at::Tensor sum_;
  at::ScalarType type_ = at::kFloat;
};

// The trainable leaves are passed as a TensorList, because autograd does not look into a std::vector argument.
struct ByTiles : torch::autograd::Function<ByTiles> {
  static Variable forward(AutogradContext* context, const Variable& x, at::TensorList trainable,
                          const TilesPointer& held) {
    context->saved_data["tiles"] = c10::IValue::make_capsule(held);
    context->saved_data["needs_x"] = x.requires_grad();
    variable_list saved{x};
    saved.insert(saved.end(), trainable.begin(), trainable.end());
    context->save_for_backward(std::move(saved));
    at::NoGradGuard no_grad;
    const at::Tensor y = at::empty_like(x, at::MemoryFormat::Contiguous), in = rows_of(x), out = rows_of(y);
    if (held->tiles.only_gradient) return y;
    for_each_tile(in.size(1), held->tiles.tokens, [&](std::int64_t first, std::int64_t count) {
      out.narrow(1, first, count).copy_(held->body(in.narrow(1, first, count), first));
    });
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const bool needs_x = context->saved_data["needs_x"].toBool();
    const auto held = c10::static_intrusive_pointer_cast<HeldTiles>(context->saved_data["tiles"].toCapsule());
    const at::Tensor in = rows_of(saved[0].detach()), dy = rows_of(gradients[0]);
    const at::Tensor dx = needs_x ? at::empty_like(in) : at::Tensor();
    std::vector<GradientSum> sums(saved.size() - 1);
    for_each_tile(in.size(1), held->tiles.tokens, [&](std::int64_t first, std::int64_t count) {
      at::AutoGradMode with_grad(true);
      variable_list wanted(saved.begin() + 1, saved.end());
      const Variable tile = in.narrow(1, first, count).detach().set_requires_grad(needs_x);
      if (needs_x) wanted.push_back(tile);
      const variable_list found =
          torch::autograd::grad({held->body(tile, first)}, wanted, {dy.narrow(1, first, count)}, false, false, true);
      const at::NoGradGuard no_grad;
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i].add(found[i]);
      if (needs_x) dx.narrow(1, first, count).copy_(found.back());
    });
    variable_list result{needs_x ? dx.view(saved[0].sizes()) : Variable()};
    for (const GradientSum& sum : sums) result.push_back(sum.rounded());
    result.push_back(Variable());  // the tiles
    return result;
  }
};

}  // namespace

at::Tensor by_token_tiles(TiledBody body, const at::Tensor& x, const TokenTiles& tiles,
                          const std::vector<at::Tensor>& trainable) {
  return ByTiles::apply(x, at::TensorList(trainable), c10::make_intrusive<HeldTiles>(std::move(body), tiles));
}

}  // namespace zero
