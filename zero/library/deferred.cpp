#include "zero/library/include/zero/deferred.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "zero/library/sharded_impl.h"
#include "zero/modules/deferred_tape.h"

namespace zero {

std::int64_t ShardedModel::Impl::seed_of_deferred() const {
  const std::vector<at::Tensor> parameters = module->parameters();
  const auto is_deferred = [](const at::Tensor& one) { return one.defined() && DeferredTape::of(one) != nullptr; };
  if (initial_file || std::ranges::none_of(parameters, is_deferred)) return 0;
  return at::randint(std::int64_t{1} << 62, {1}, at::kLong).item<std::int64_t>();
}

namespace detail {

struct DeferredBuild::Impl {
  DeferredTape::Recording recording;
};

DeferredBuild::DeferredBuild() : impl_(std::make_unique<Impl>()) {}
DeferredBuild::~DeferredBuild() = default;

}  // namespace detail
}  // namespace zero
