// An export hands nothing on that a failed collective has left.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "models/families/families.h"
#include "models/initial_weights.h"
#include "models/lora/lora.h"
#include "zero/core/chain.h"
#include "zero/core/engine.h"

namespace zero {
namespace {

/// Rank 0 of 2 whose gathers are issued and fail later, as a GPU's do: from the `broken`-th gather of a save on,
/// check() says so.
class FailsLate final : public Communicator, private FailureHandling {
 public:
  explicit FailsLate(int broken) : Communicator(0, 2), broken_(broken) {}
  CollectiveMemory& memory() override { return memory_; }
  void poll() override {}
  FailureHandling& failures() override { return *this; }
  int saves() const { return saves_; }

 private:
  void check() const override {
    if (saves_ >= broken_) throw Error("the peer is gone");
  }
  void abandon() noexcept override {}
  std::unique_ptr<FailureReports> make_reports() override { return nullptr; }
  void do_all_gather(const at::Tensor& full, const at::Tensor& shard, const CallRecord& call) override {
    saves_ += call.tag.phase == Phase::save;
    for (const at::Tensor& part : full.view({2, -1}).unbind()) part.copy_(shard);
  }
  void do_reduce_scatter(const at::Tensor&, const at::Tensor&, ReduceOptions, const CallRecord&) override {}
  void do_all_reduce(const at::Tensor&, ReduceOptions, const CallRecord&) override {}
  void do_broadcast(const at::Tensor&, int, const CallRecord&) override {}
  void do_all_to_all(const at::Tensor&, const std::vector<std::int64_t>&, const at::Tensor&,
                     const std::vector<std::int64_t>&, const CallRecord&) override {}
  void do_send(const at::Tensor&, int, const CallRecord&) override {}
  void do_recv(const at::Tensor&, int, const CallRecord&) override {}
  void do_settle(const CallRecord&) override {}
  void do_barrier(const CallRecord&) override {}
  std::unique_ptr<Communicator> do_split(const std::vector<int>&, const CallRecord&) override { return nullptr; }

  int broken_, saves_ = 0;
  TorchMemory memory_;
};

/// Tensors that an export hands on, and whether it threw.
struct Exported {
  int tensors = 0, gathers = 0;
  bool threw = false;
};

Exported export_with(int broken, bool lora) {
  ModelConfig config;
  config.vocab_size = 32;
  config.hidden_size = 16;
  config.intermediate_size = 24;
  config.num_hidden_layers = 2;
  config.num_attention_heads = config.num_key_value_heads = 2;
  config.head_dim = 8;
  Model model = make_model(config);
  if (lora) add_lora(model, {});
  FailsLate communicator(broken);
  EngineOptions options;
  options.plan = ShardPlan::for_stage(3);
  options.precision = {at::kFloat, at::kFloat, at::kFloat, at::kFloat};
  Mesh mesh(communicator);
  Engine engine(chain_of(model), mesh, options);
  RandomWeights weights(model, 1);
  engine.load(weights);
  Exported result;
  try {
    engine.export_weights([&](const TensorSpec&, const at::Tensor&) { ++result.tensors; }, lora);
  } catch (const Error&) {
    result.threw = true;
  }
  result.gathers = communicator.saves();
  return result;
}

TEST(Export, HandsOnNothingOfAGatherThatFailedTheLastOneIncluded) {
  for (const bool lora : {false, true}) {
    const Exported whole = export_with(1000, lora);
    ASSERT_FALSE(whole.threw);
    ASSERT_GE(whole.gathers, 1);
    for (int broken = 1; broken <= whole.gathers; ++broken) {
      const Exported cut = export_with(broken, lora);
      EXPECT_TRUE(cut.threw) << "gather " << broken << " of " << whole.gathers;
      EXPECT_EQ(cut.gathers, broken);
      EXPECT_LT(cut.tensors, whole.tensors);
    }
  }
}

}  // namespace
}  // namespace zero
