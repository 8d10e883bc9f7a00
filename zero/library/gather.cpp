// Gathers rows of all processes, for reports and for losses.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "base/error.h"
#include "comm/object_collectives.h"
#include "zero/library/without_gradient.h"
#include "zero/library/world_impl.h"

namespace zero {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The result, whose graph only throws. `anchor`: a tensor that just requires a gradient.
struct WithoutBackward : torch::autograd::Function<WithoutBackward> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& anchor, const at::Tensor& result,
                            const std::string& call) {
    context->saved_data["call"] = call;
    return result.detach();
  }
  static variable_list backward(AutogradContext* context, variable_list) {
    throw InputError("backward through " + context->saved_data["call"].toStringRef() +
                     ", which has no gradient: give it value.detach() where the result is a constant of the loss; "
                     "world.gather() has a gradient");
  }
};

struct Holder : torch::CustomClassHolder {
  explicit Holder(const World& world) : world(world) {}
  World world;
};

/// The layout of all processes' rows.
struct Rows {
  World world;
  std::vector<std::int64_t> counts;  // by rank

  std::int64_t begin() const { return std::accumulate(counts.begin(), counts.begin() + world.rank(), std::int64_t{0}); }
  std::int64_t count() const { return counts[std::size_t(world.rank())]; }

  void save(AutogradContext* context) const {
    context->saved_data["world"] = c10::IValue::make_capsule(c10::make_intrusive<Holder>(world));
    context->saved_data["counts"] = counts;
  }
  static Rows saved(AutogradContext* context) {
    const auto holder = c10::static_intrusive_pointer_cast<Holder>(context->saved_data["world"].toCapsule());
    return {holder->world, context->saved_data["counts"].toIntVector()};
  }
};

// Gathering and summing are transposes, so the backward of each is the other.
struct GatherRows : torch::autograd::Function<GatherRows> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& own, const Rows& rows) {
    rows.save(context);
    return gather_rows(rows.world, own, rows.counts, World::Impl::tag(WorldCall::gather));
  }
  static variable_list backward(AutogradContext* context, variable_list outputs);
};

struct SumOwnRows : torch::autograd::Function<SumOwnRows> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& all, const Rows& rows) {
    rows.save(context);
    const at::Tensor sum = all.clone(at::MemoryFormat::Contiguous);
    rows.world.impl().sum_gradients(sum, {Phase::backward, int(WorldCall::gather)});
    return sum.narrow(0, rows.begin(), rows.count()).clone();
  }
  static variable_list backward(AutogradContext* context, variable_list outputs) {
    return {GatherRows::apply(outputs[0], Rows::saved(context)), {}};
  }
};

variable_list GatherRows::backward(AutogradContext* context, variable_list outputs) {
  return {SumOwnRows::apply(outputs[0], Rows::saved(context)), {}};
}

at::Tensor as_rows(const at::Tensor& value) { return value.dim() == 0 ? value.reshape({1}) : value; }

std::vector<std::int64_t> counts_of(const World& world, const at::Tensor& rows, WorldCall call) {
  return all_gather_number(*world.impl().host, rows.size(0), World::Impl::tag(call));
}

}  // namespace

at::Tensor without_gradient(const at::Tensor& result, const at::Tensor& value, const char* call) {
  if (!at::GradMode::is_enabled() || !value.requires_grad()) return result;
  return WithoutBackward::apply(at::zeros({}).requires_grad_(), result, std::string(call));
}

void World::Impl::sum_gradients(const at::Tensor& gradient, CallTag tag) {
  if (host->size() == 1) return;
  if (gradient.is_complex()) return sum_gradients(at::view_as_real(gradient), tag);
  const double weight = backward_weight;
  if (weight != 1) gradient.mul_(weight);
  ranks->all_reduce(gradient, {}, tag);
  if (weight == 0)
    gradient.zero_();  // its own loss has weight 0
  else if (weight != 1)
    gradient.div_(weight);
}

// Only the first dimension may differ; rows are padded for the collective, and the padding is removed afterwards.
at::Tensor gather_rows(const World& world, const at::Tensor& rows, const std::vector<std::int64_t>& counts,
                       CallTag tag) {
  const at::NoGradGuard no_grad;
  std::vector<std::int64_t> shape = rows.sizes().vec();
  shape[0] = *std::ranges::max_element(counts);
  const at::TensorOptions options = rows.options().device(world.device());
  const at::Tensor padded = at::zeros(shape, options);
  padded.narrow(0, 0, rows.size(0)).copy_(rows);
  shape.insert(shape.begin(), world.size());
  const at::Tensor all = at::empty(shape, options);
  world.impl().ranks->all_gather_into(all.view({-1}), padded.view({-1}), tag);
  std::vector<at::Tensor> parts;
  for (int r = 0; r < world.size(); ++r) parts.push_back(all[r].narrow(0, 0, counts[std::size_t(r)]));
  return at::cat(parts);
}

torch::Tensor World::gather_for_metrics(const torch::Tensor& rows) const {
  const at::Tensor mine = as_rows(rows.detach());
  const WorldCall call = WorldCall::gather_for_metrics;
  return without_gradient(gather_rows(*this, mine, counts_of(*this, mine, call), Impl::tag(call)), rows,
                          "world.gather_for_metrics()");
}

torch::Tensor World::gather(const torch::Tensor& rows) const {
  const at::Tensor mine = as_rows(rows);
  return GatherRows::apply(mine, Rows{*this, counts_of(*this, mine, WorldCall::gather)});
}

}  // namespace zero
