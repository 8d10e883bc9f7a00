// Gradients that a GPU's matrix products accumulate, of steps of an engine, against fp64 on the CPU. Skipped without a
// GPU.
#include <ATen/ATen.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <gtest/gtest.h>

#include "comm/decorators/staged_communicator.h"
#include "comm/fake/fake_communicator.h"
#include "models/families/families.h"
#include "models/initial_weights.h"
#include "models/lora/lora.h"
#include "models/nn/device_batch.h"
#include "zero/core/chain.h"
#include "zero/core/engine.h"

namespace zero {
namespace {

const at::Device gpu(at::kCUDA, 0);

struct Case {
  std::string name;
  bool tied = false, lora = false;
  int recompute_every = 0;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

Model model_of(const Case& c) {
  ModelConfig config;
  config.vocab_size = 61;
  config.hidden_size = 64;
  config.intermediate_size = 96;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 16;
  config.tie_word_embeddings = c.tied;
  config.initializer_range = 0.1;
  Model model = make_model(config);
  if (!c.lora) return model;
  LoraOptions lora;
  lora.target_modules = {"q_proj", "up_proj"};
  add_lora(model, lora);
  for (auto& unit : model.units)
    for (Parameter& parameter : unit->parameters()) parameter.trainable = true;
  for (auto& unit : model.units)
    for (const Adapter& adapter : unit->adapters()) {
      unit->parameters()[std::size_t(adapter.b)].init = Init::normal;
      unit->parameters()[std::size_t(adapter.b)].init_scale = 0.2;
    }
  return model;
}

std::unique_ptr<Communicator> only_rank(at::Device device) {
  auto alone = std::make_unique<FakeCommunicator>(0, 1);
  if (device.is_cpu()) return alone;
  return std::make_unique<StagedCommunicator>(std::move(alone), device);
}

/// Gradients of steps of an engine on a device, and how often autograd brought one of a block's weight.
class Side {
 public:
  Side(const Case& c, at::Device device, at::ScalarType compute, at::ScalarType gradient, bool fuse)
      : device_(device), compute_(compute), model_(model_of(c)) {
    EngineOptions options;
    options.plan = ShardPlan::for_stage(0);
    const at::ScalarType master = compute == at::kDouble ? at::kDouble : at::kFloat;
    options.precision = {compute, master, gradient, master};
    options.device = device;
    options.recompute_every = c.recompute_every;
    options.write_gradients = options.fuse_accumulation = fuse;
    engine_.emplace(chain_of(model_), mesh_, options);
    RandomWeights weights(model_, 3);
    engine_->load(weights);
    for (std::size_t u = 1; u + 1 < model_.units.size(); ++u)
      for (const Parameter& parameter : model_.units[u]->parameters())
        if (parameter.parts.front().name.ends_with("proj.weight"))
          parameter.tensor.register_hook([this](const at::Tensor& found) { by_autograd_ += found.defined(); });
  }

  std::map<std::string, at::Tensor> gradients(int micro_batches, double scale = 1.0 / 64) {
    for (int a = 0; a < micro_batches; ++a) {
      const at::Tensor tokens = (at::arange(2 * 13, at::kLong) * 17 + 5 * a).remainder(61).view({2, 13});
      Batch on_host{tokens.narrow(1, 0, 12).contiguous(), tokens.narrow(1, 1, 12).contiguous(), {}, {}};
      const Batch batch = device_.is_cpu() ? on_host : to_device(on_host, device_, compute_);
      ForwardContext context;
      context.batch = &batch;
      context.training = true;
      ChainPass(engine_->chain_run(), context, {a == 0, a + 1 == micro_batches}).backward(scale);
    }
    std::map<std::string, at::Tensor> found;
    engine_->export_gradients(
        [&](const TensorSpec& spec, const at::Tensor& value) { found[spec.name] = value.to(at::kCPU, at::kDouble); });
    return found;
  }
  int by_autograd() const { return by_autograd_; }

 private:
  at::Device device_;
  at::ScalarType compute_;
  Model model_;
  std::unique_ptr<Communicator> alone_ = only_rank(device_);
  Mesh mesh_{*alone_};
  std::optional<Engine> engine_;
  int by_autograd_ = 0;
};

double difference(const std::map<std::string, at::Tensor>& a, const std::map<std::string, at::Tensor>& b) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0;
  for (const auto& [name, value] : a)
    worst = std::max(worst, ((value - b.at(name)).norm() / b.at(name).norm()).item<double>());
  return worst;
}

class FusedAccumulation : public testing::TestWithParam<std::tuple<at::ScalarType, Case>> {
 protected:
  void SetUp() override {
    if (at::detail::getCUDAHooks().deviceCount() == 0) GTEST_SKIP() << "no GPU";
  }
};

// With one micro-batch and with three, in its own type and in fp32. Each step finds the sums of the step before, or
// those of a step that overflowed.
TEST_P(FusedAccumulation, GivesTheGradientsOfFp64) {
  const auto& [type, c] = GetParam();
  const double allowed = type == at::kFloat ? 1e-5 : type == at::kHalf ? 1e-2 : 6e-2;
  Side precise(c, at::kCPU, at::kDouble, at::kDouble, false);
  for (const at::ScalarType gradient : {type, at::kFloat}) {
    Side fused(c, gpu, type, gradient, true);
    for (const int micro_batches : {1, 3, 3, 1})
      EXPECT_LT(difference(fused.gradients(micro_batches), precise.gradients(micro_batches)), allowed);
    for (const auto& [name, value] : fused.gradients(2, std::numeric_limits<double>::infinity()))
      EXPECT_FALSE(value.isfinite().all().item<bool>()) << name;
    EXPECT_LT(difference(fused.gradients(3), precise.gradients(3)), allowed);
    EXPECT_EQ(fused.by_autograd(), 0);
    if (gradient == at::kFloat) break;
  }
  EXPECT_GT(precise.by_autograd(), 0);
}

INSTANTIATE_TEST_SUITE_P(Types, FusedAccumulation,
                         testing::Combine(testing::Values(at::kFloat, at::kBFloat16, at::kHalf),
                                          testing::Values(Case{.name = "plain"}, Case{.name = "tied", .tied = true},
                                                          Case{.name = "recomputed", .recompute_every = 1},
                                                          Case{.name = "lora", .lora = true})),
                         [](const auto& info) {
                           return std::string(at::toString(std::get<0>(info.param))) + "_" +
                                  std::get<1>(info.param).name;
                         });

}  // namespace
}  // namespace zero
