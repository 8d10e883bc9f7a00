#include "zero/library/same_draws.h"

#include <ATen/ATen.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/rnn.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "comm/object_collectives.h"
#include "zero/library/world_impl.h"

namespace zero {
namespace {

template <typename... Modules, typename Rate>
bool drops_as(const torch::nn::Module& module, const Rate& rate) {
  const auto drops = [&](const auto* one) { return one && rate(*one) > 0; };
  return (drops(dynamic_cast<const Modules*>(&module)) || ...);
}

bool drops(const torch::nn::Module& module) {
  using namespace torch::nn;
  if (!module.is_training()) return false;
  return drops_as<DropoutImpl, Dropout2dImpl, Dropout3dImpl, AlphaDropoutImpl, FeatureAlphaDropoutImpl>(
             module, [](const auto& one) { return one.options.p(); }) ||
         drops_as<MultiheadAttentionImpl, RNNImpl, LSTMImpl, GRUImpl>(
             module, [](const auto& one) { return one.options.dropout(); });
}

/// The name of the first dropout; empty if none.
std::string dropout_of(const torch::nn::Module& module) {
  if (drops(module)) return "the module itself";
  for (const auto& child : module.named_modules("", /*include_self=*/false))
    if (drops(*child.value())) return child.key();
  return "";
}

std::int64_t hash_of_generator(at::Device device) {
  const at::Tensor state = device.is_cuda() ? at::globalContext().defaultGenerator(device).get_state()
                                            : at::detail::getDefaultCPUGenerator().get_state();
  const std::string_view bytes(static_cast<const char*>(state.const_data_ptr()), state.nbytes());
  return std::int64_t(std::hash<std::string_view>{}(bytes));
}

}  // namespace

void warn_of_same_draws(const torch::nn::Module& module, const World& world) {
  if (world.size() == 1) return;
  const std::string dropout = dropout_of(module);
  const std::vector<std::int64_t> all = all_gather_numbers(
      *world.impl().host, std::array<std::int64_t, 2>{!dropout.empty(), hash_of_generator(world.device())});
  std::map<std::int64_t, std::vector<int>> alike;  // ranks by generator state
  for (int r = 0; r < world.size(); ++r) {
    if (all[std::size_t(2 * r)] == 0) return;
    alike[all[std::size_t(2 * r + 1)]].push_back(r);
  }
  const auto most = std::ranges::max_element(alike, {}, [](const auto& one) { return one.second.size(); });
  const std::vector<int>& ranks = most->second;
  if (ranks.size() < 2 || !world.is_main()) return;
  log_warning(int(ranks.size()) == world.size() ? "all processes" : text("processes ", ranks[0], " and ", ranks[1]),
              " draw the same random numbers, and so the same masks in ", dropout,
              ": call world.manual_seed(seed) in place of torch::manual_seed(seed) before the model is built");
}

}  // namespace zero
