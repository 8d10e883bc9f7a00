// Ranks without rows: validation sets of any size on any number of ranks, and steps in which only some ranks have work.
#include <gtest/gtest.h>

#include <cmath>

#include "models/families/families.h"
#include "models/initial_weights.h"
#include "tests/sim/training_run.h"
#include "zero/core/chain.h"
#include "zero/data/rows/loader.h"

namespace zero::testing {
namespace {

/// Rows of different length. Packed ones hold two documents each.
class SampleRows : public RowSource {
 public:
  SampleRows(std::int64_t rows, bool packed) : rows_(rows), packed_(packed) {}

  std::int64_t size() const override { return rows_; }
  std::int64_t length(std::int64_t index) const override { return 3 + index * 5 % 4; }
  std::int64_t trained_tokens(std::int64_t index) const override { return length(index) - 1; }
  std::string describe() const override { return "samples"; }

  Row row(std::int64_t index) const override {
    const auto length = std::size_t(this->length(index));
    const std::vector<std::int64_t> tokens = sample_tokens(index, int(length), small_config(false).vocab_size);
    Row row;
    row.ids.assign(tokens.begin(), tokens.end() - 1);
    row.targets.assign(tokens.begin() + 1, tokens.end());
    row.targets[0] = ignored_target;
    for (std::size_t t = 0; packed_ && t < length; ++t) {
      row.documents.push_back(t >= 2);
      row.positions.push_back(t >= 2 ? std::int64_t(t) - 2 : std::int64_t(t));
    }
    return row;
  }

 private:
  std::int64_t rows_;
  bool packed_;
};

struct Shape {
  int stage = 0, ranks = 1;
  at::ScalarType type = at::kFloat;
  bool lora = false, quantized = false, overlap = false;
};

/// Engine of a shape, handed to `use` on every rank.
void on_ranks(const Shape& shape, const std::function<void(Engine&, Communicator&)>& use) {
  SimWorld(shape.ranks).run([&](Communicator& communicator, int) {
    Model model = make_model(small_config(false));
    if (shape.lora) {
      LoraOptions lora;
      lora.target_modules = {"q_proj", "down_proj"};
      add_lora(model, lora);
    }
    EngineOptions options;
    options.plan = ShardPlan::for_stage(shape.stage);
    options.precision = {shape.type, at::kFloat, shape.type, at::kFloat};
    if (shape.quantized) options.frozen = FrozenFormat::in_nf4(false);
    options.overlap = shape.overlap;
    Mesh mesh(communicator);
    Engine engine(chain_of(model), mesh, options);
    RandomWeights weights(model, 7);
    engine.load(weights);
    use(engine, communicator);
  });
}

/// The mean loss of `rows` rows, by rank 0.
double validation_loss(Engine& engine, Communicator& communicator, std::int64_t rows, std::int64_t local_batch,
                       bool packed) {
  const ValidationLoader loader(std::make_shared<SampleRows>(rows, packed), communicator.rank(), communicator.size(),
                                local_batch);
  double sum = 0;
  for (std::int64_t m = 0; m < loader.micro_batches(); ++m) {
    const Batch batch = loader.batch(m);
    ForwardContext context;
    context.batch = &batch;
    sum += engine.evaluate(context).item<double>();
  }
  const at::Tensor total = at::full({1}, sum, at::kDouble);
  communicator.all_reduce(total, {at::kDouble, false});
  return total.item<double>() / double(loader.trained_tokens());
}

class ValidationRows : public ::testing::TestWithParam<std::tuple<int, int, bool>> {};

TEST_P(ValidationRows, GiveTheLossOfOneRankHoweverTheyFall) {
  const auto [stage, ranks, packed] = GetParam();
  std::vector<double> expected;
  on_ranks({}, [&, packed = packed](Engine& engine, Communicator& communicator) {
    for (std::int64_t rows = 1; rows <= 16; ++rows)
      expected.push_back(validation_loss(engine, communicator, rows, rows, packed));
  });
  const int count = ranks;
  on_ranks({.stage = stage, .ranks = ranks}, [&, packed = packed](Engine& engine, Communicator& communicator) {
    for (const std::int64_t local : {1, 2})
      for (std::int64_t rows = 1; rows <= 2 * count * local; ++rows) {
        const double loss = validation_loss(engine, communicator, rows, local, packed);
        EXPECT_NEAR(loss, expected[std::size_t(rows - 1)], 1e-6 * loss) << rows << " rows, local batch " << local;
      }
  });
}

INSTANTIATE_TEST_SUITE_P(Matrix, ValidationRows,
                         ::testing::Combine(::testing::Range(0, 4), ::testing::Range(1, 5), ::testing::Bool()),
                         [](const auto& info) {
                           return "stage" + std::to_string(std::get<0>(info.param)) + "_np" +
                                  std::to_string(std::get<1>(info.param)) +
                                  (std::get<2>(info.param) ? "_packed" : "_padded");
                         });

TEST(ValidationRows, MayBeFewerThanRanksInEveryKindOfRun) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf})
    for (Shape shape : {Shape{}, Shape{.lora = true}, Shape{.lora = true, .quantized = true}, Shape{.overlap = true}}) {
      shape.type = type;
      double expected = 0;
      on_ranks(shape, [&](Engine& engine, Communicator& communicator) {
        expected = validation_loss(engine, communicator, 3, 3, false);
      });
      shape.stage = 3;
      shape.ranks = 4;
      on_ranks(shape, [&](Engine& engine, Communicator& communicator) {
        const double loss = validation_loss(engine, communicator, 3, 1, false);
        EXPECT_NEAR(loss, expected, (type == at::kFloat ? 1e-6 : 1e-2) * loss) << c10::toString(type);
      });
    }
}

/// The weights after steps in which `holder` has all rows and the other ranks none.
std::map<std::string, at::Tensor> trained(const Shape& shape, int holder) {
  std::map<std::string, at::Tensor> result;
  on_ranks(shape, [&](Engine& engine, Communicator& communicator) {
    const int rank = communicator.rank();
    std::vector<Row> rows;
    for (std::int64_t row = 0; row < 4 && rank == holder; ++row) rows.push_back(SampleRows(4, false).row(row));
    for (int step = 0; step < 3; ++step) {
      const Batch batch = make_batch(rows, 6);
      ForwardContext context;
      context.batch = &batch;
      context.training = true;
      ChainPass pass(engine.chain_run(), context, {});
      pass.backward(0.1);
      engine.update({.lr = 0.01, .max_norm = 1.0}, pass.result().detach()).wait();
    }
    engine.export_weights([&](const TensorSpec& spec, const at::Tensor& value) {
      if (rank == 0) result[spec.name] = value.clone();
    });
  });
  return result;
}

TEST(EmptyBatch, TrainsWhereOnlyOneRankHasWork) {
  for (const bool lora : {false, true}) {
    const auto expected = trained({.lora = lora}, 0);
    for (const int stage : {0, 1, 2, 3})
      for (const int holder : {0, 2})
        for (const auto& [name, weight] : trained({.stage = stage, .ranks = 3, .lora = lora}, holder))
          EXPECT_LT((weight - expected.at(name)).abs().max().item<double>(), 1e-5)
              << name << ", stage " << stage << ", rank " << holder << " has the rows";
  }
}

}  // namespace
}  // namespace zero::testing
