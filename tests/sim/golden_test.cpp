// The golden cases, made by transformers: logits and gradients of the first batch, loss and norm of every step, and the
// final weights, at every stage and with 1 to 4 ranks.
#include <gtest/gtest.h>

#include "comm/sim/sim_world.h"
#include "models/families/families.h"
#include "models/formats/hf_directory.h"
#include "models/formats/hf_weights.h"
#include "models/model.h"
#include "models/weight_source.h"
#include "tests/golden_families.h"
#include "tests/sim/golden_case.h"
#include "zero/core/chain.h"

namespace zero::testing {
namespace {

class Golden : public ::testing::TestWithParam<std::tuple<std::string, int, int>> {};

TEST_P(Golden, TrainsAsTransformersDoes) {
  const auto [name, stage, ranks] = GetParam();
  const GoldenCase golden(name);
  const int micro_batches = ranks == 4 ? 3 : (stage + ranks) % 2 ? 2 : 1;
  SimWorld({.ranks = ranks}).run([&, stage = stage](Communicator& communicator, int rank) {
    const auto directory = std::make_shared<HfDirectory>(golden.folder + "/model");
    Model model = make_model(directory->config());
    Mesh mesh(communicator);
    Engine engine(chain_of(model), mesh, golden.engine_options(stage));
    HfWeights weights(directory);
    weights.check(tensors_of(model));
    engine.load(weights);
    train_and_compare(golden, engine, rank, micro_batches);
  });
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden,
                         ::testing::Combine(::testing::Values("tiny", "tiny-tied-bf16-sharded"), ::testing::Range(0, 4),
                                            ::testing::Range(1, 5)));

std::vector<std::string> families() {
  std::vector<std::string> names = test::golden_families();
  for (std::string& name : names) name.insert(0, "families/");
  return names;
}

INSTANTIATE_TEST_SUITE_P(Families, Golden,
                         ::testing::Combine(::testing::ValuesIn(families()), ::testing::Range(0, 4),
                                            ::testing::Range(1, 5)));

}  // namespace
}  // namespace zero::testing
