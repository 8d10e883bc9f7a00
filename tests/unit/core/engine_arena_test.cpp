// An engine allocates in a communicator's arena exactly the bytes that it reserved there.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "comm/nccl/arena_map.h"
#include "models/families/families.h"
#include "models/model.h"
#include "zero/core/chain.h"
#include "zero/core/engine.h"

namespace zero {
namespace {

/// Rank 1 of 4, whose collectives do nothing; keeps what is asked of each communicator.
class Recorder final : public Communicator, private CollectiveMemory {
 public:
  struct Asked {
    std::vector<std::int64_t> reserved, allocated;
    std::int64_t largest_sum = 0, largest_seen = 0;
    int reserves = 0;
  };
  using Log = std::map<const Communicator*, Asked>;

  Recorder(int rank, int size, Log& log) : Communicator(rank, size), log_(log) { log_[this]; }
  CollectiveMemory& memory() override { return *this; }
  void poll() override {}
  FailureHandling& failures() override { return failures_; }

 private:
  void reserve(const std::vector<std::int64_t>& chunks, std::int64_t largest_sum) override {
    log_[this].reserved = chunks;
    log_[this].largest_sum = largest_sum;
    ++log_[this].reserves;
  }
  at::Tensor allocate(std::int64_t numel, at::ScalarType type) override {
    log_[this].allocated.push_back(numel * std::int64_t(c10::elementSize(type)));
    return at::empty({numel}, type);
  }
  std::int64_t own_device_bytes() const override { return 0; }

  void do_all_gather(const at::Tensor&, const at::Tensor&, const CallRecord&) override {}
  void do_reduce_scatter(const at::Tensor&, const at::Tensor& full, ReduceOptions, const CallRecord&) override {
    log_[this].largest_seen = std::max(log_[this].largest_seen, std::int64_t(full.nbytes()));
  }
  void do_all_reduce(const at::Tensor& tensor, ReduceOptions, const CallRecord&) override {
    log_[this].largest_seen = std::max(log_[this].largest_seen, std::int64_t(tensor.nbytes()));
  }
  void do_broadcast(const at::Tensor&, int, const CallRecord&) override {}
  void do_all_to_all(const at::Tensor&, const std::vector<std::int64_t>&, const at::Tensor&,
                     const std::vector<std::int64_t>&, const CallRecord&) override {}
  void do_send(const at::Tensor&, int, const CallRecord&) override {}
  void do_recv(const at::Tensor&, int, const CallRecord&) override {}
  void do_settle(const CallRecord&) override {}
  void do_barrier(const CallRecord&) override {}
  std::unique_ptr<Communicator> do_split(const std::vector<int>& ranks, const CallRecord&) override {
    return std::make_unique<Recorder>(place_in(ranks).key, int(ranks.size()), log_);
  }

  Log& log_;
  SynchronousFailures failures_;
};

struct Case {
  int stage;
  bool overlap, bf16, halves;
  bool nf4 = false;  // all but the last unit frozen, blocks quantized
};

class EngineArena : public ::testing::TestWithParam<Case> {};

TEST_P(EngineArena, what_is_reserved_is_allocated) {
  const auto [stage, overlap, bf16, halves, nf4] = GetParam();
  ModelConfig config;
  config.vocab_size = 96;
  config.hidden_size = 32;
  config.intermediate_size = 48;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 8;
  config.max_position_embeddings = 64;
  const Model model = make_model(config);
  const Chain chain = chain_of(model);

  for (std::size_t u = 0; nf4 && u + 1 < chain.size(); ++u)
    for (Parameter& parameter : chain[u]->parameters()) parameter.trainable = false;

  Recorder::Log log;
  Recorder communicator(1, 4, log);
  EngineOptions options;
  options.plan = ShardPlan::for_stage(stage);
  options.overlap = overlap;
  options.precision.compute = options.precision.gradient = bf16 ? at::kBFloat16 : at::kFloat;
  if (nf4) options.frozen = FrozenFormat::in_nf4(overlap);
  Mesh mesh(communicator, MeshShape::hybrid(4, halves ? 2 : 0));
  Engine engine(chain, mesh, options);

  int arenas = 0;
  for (auto& [who, asked] : log) {
    if (asked.reserves == 0) {
      EXPECT_TRUE(asked.allocated.empty()) << "allocated where nothing was reserved";
      continue;
    }
    ++arenas;
    EXPECT_EQ(asked.reserves, 1);
    ArenaMap map(ArenaMap::bytes_for(asked.reserved));
    for (std::int64_t bytes : asked.allocated) EXPECT_GE(map.take(bytes), 0);
    EXPECT_EQ(map.taken(), map.bytes()) << "reserved more than is used";
  }
  EXPECT_EQ(arenas, overlap ? 2 : 1);

  Batch batch;
  batch.ids = at::zeros({1, 8}, at::kLong);
  batch.targets = at::ones({1, 8}, at::kLong);
  ForwardContext context;
  context.batch = &batch;
  context.training = true;
  ChainPass(engine.chain_run(), context, {}).backward(1.0);
  for (auto& [who, asked] : log) {
    if (asked.reserves > 0) {
      EXPECT_EQ(asked.largest_seen, asked.largest_sum);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, EngineArena,
                         ::testing::Values(Case{0, false, false, false}, Case{0, true, true, false},
                                           Case{1, true, true, false}, Case{2, false, true, false},
                                           Case{2, true, false, false}, Case{3, false, true, false},
                                           Case{3, true, true, false}, Case{3, true, true, true},
                                           Case{0, false, true, false, true}, Case{3, false, true, false, true},
                                           Case{3, true, true, false, true}),
                         [](const auto& info) {
                           const Case& c = info.param;
                           return "stage" + std::to_string(c.stage) + (c.overlap ? "_overlap" : "") +
                                  (c.bf16 ? "_bf16" : "") + (c.halves ? "_hybrid" : "") + (c.nf4 ? "_nf4" : "");
                         });

}  // namespace
}  // namespace zero
