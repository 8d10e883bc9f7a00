#include "zero/data/rows/loader.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "base/error.h"

namespace zero {
namespace loader_test {

using ::testing::ElementsAre;

// Row i holds i % 3 + 1 ids that are all i; its first target is not trained when it has several.
class Numbered : public RowSource {
 public:
  explicit Numbered(std::int64_t rows) : rows_(rows) {}
  std::int64_t size() const override { return rows_; }
  Row row(std::int64_t index) const override {
    Row row;
    row.ids.assign(static_cast<std::size_t>(length(index)), index);
    row.targets = row.ids;
    if (row.ids.size() > 1) row.targets[0] = ignored_target;
    return row;
  }
  std::int64_t trained_tokens(std::int64_t index) const override { return std::max<std::int64_t>(1, index % 3); }
  std::int64_t length(std::int64_t index) const override { return index % 3 + 1; }
  std::string describe() const override { return "numbered"; }

 private:
  std::int64_t rows_;
};

std::vector<std::int64_t> numbers(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(at::kLong).contiguous();
  return {flat.data_ptr<std::int64_t>(), flat.data_ptr<std::int64_t>() + flat.numel()};
}

Loader loader_of(std::int64_t rows, LoaderOptions options) {
  return {std::make_shared<Numbered>(rows),
          SampleOrder({.rows = rows, .global_batch_size = options.global_batch_size, .seed = 9}), options};
}

TEST(MakeBatch, FillsRowsUpToTheLongest) {
  const Numbered rows(10);
  const Batch batch = make_batch({rows.row(4), rows.row(5)});
  EXPECT_THAT(numbers(batch.ids), ElementsAre(4, 4, 0, 5, 5, 5));
  EXPECT_THAT(numbers(batch.targets), ElementsAre(ignored_target, 4, ignored_target, ignored_target, 5, 5));
  EXPECT_FALSE(batch.documents.defined());
  EXPECT_THAT(numbers(batch.positions), ElementsAre(0, 1, 0, 0, 1, 2)) << "a row ends at its highest position";
  EXPECT_FALSE(make_batch({rows.row(5), rows.row(5)}).positions.defined());
}

TEST(MakeBatch, NumbersDocumentsOnceARowHasSeveral) {
  const Row packed{{1, 2, 3, 4}, {2, ignored_target, 4, 5}, {0, 1, 0, 1}, {0, 0, 1, 1}};
  const Batch batch = make_batch({packed, Numbered(10).row(1)});
  EXPECT_THAT(numbers(batch.positions), ElementsAre(0, 1, 0, 1, 0, 1, 0, 0));
  EXPECT_THAT(numbers(batch.documents), ElementsAre(0, 0, 1, 1, 0, 0, -1, -1));
  EXPECT_EQ(batch.documents.scalar_type(), at::kInt);
}

// A device that prefers few lengths gets padding. It changes neither the trained tokens nor what a token sees.
TEST(MakeBatch, RoundsItsLengthUpToTheMultipleButNotBeyondTheMost) {
  const Numbered rows(10);
  const Batch batch = make_batch({rows.row(4), rows.row(5)}, 1, {4, 8});
  EXPECT_THAT(numbers(batch.ids), ElementsAre(4, 4, 0, 0, 5, 5, 5, 0));
  EXPECT_THAT(numbers(batch.targets),
              ElementsAre(ignored_target, 4, ignored_target, ignored_target, ignored_target, 5, 5, ignored_target));
  EXPECT_FALSE(batch.documents.defined());
  EXPECT_EQ(make_batch({rows.row(4), rows.row(5)}, 1, {64, 3}).ids.size(1), 3)
      << "what no row may exceed is a length of its own";
  EXPECT_EQ(make_batch({rows.row(5)}, 1, {64, 2}).ids.size(1), 3) << "no row is cut";
  EXPECT_EQ(make_batch({}, 6, {4, 8}).ids.sizes(), at::IntArrayRef({0, 8}));
}

TEST(Loader, HandsTheLengthToEveryBatch) {
  LoaderOptions options{0, 1, 2, 2};
  options.length = {8, 100};
  EXPECT_EQ(loader_of(4, options).batch(0, 0).ids.size(1), 8);
  EXPECT_EQ(ValidationLoader(std::make_shared<Numbered>(4), 0, 1, 2, options.length).batch(0).ids.size(1), 8);
}

TEST(MakeBatch, MayBeEmpty) {
  const Batch batch = make_batch({}, 6);
  EXPECT_EQ(batch.ids.sizes(), at::IntArrayRef({0, 6}));
  EXPECT_EQ(batch.targets.sizes(), at::IntArrayRef({0, 6}));
}

// The same rows in the same places of the step, however they are dealt out.
TEST(Loader, AStepIsTheSameForEveryNumberOfRanksAndMicroBatches) {
  constexpr std::int64_t global = 36;
  SampleOrder order({.rows = 31, .global_batch_size = global, .seed = 9});
  for (const int ranks : {1, 2, 3, 4})
    for (const std::int64_t local : {1, 3})
      for (int step = 0; step < 6; ++step) {
        std::vector<std::int64_t> rows(global, -1);
        for (int rank = 0; rank < ranks; ++rank) {
          Loader loader = loader_of(31, {rank, ranks, local, global});
          ASSERT_EQ(loader.micro_batches(), global / ranks / local);
          for (std::int64_t micro = 0; micro < loader.micro_batches(); ++micro) {
            const std::vector<std::int64_t> first = numbers(loader.batch(step, micro).ids.select(1, 0));
            const std::int64_t place = loader.first_sample(step, micro) - step * global;
            EXPECT_EQ(place, (micro * ranks + rank) * local);
            std::copy(first.begin(), first.end(), rows.begin() + place);
          }
        }
        EXPECT_EQ(rows, order.rows_of_step(step));
      }
}

TEST(Loader, CountsTheTokensOfTheWholeStep) {
  Loader loader = loader_of(30, {1, 2, 1, 30});
  EXPECT_EQ(loader.trained_tokens(0), 10 * (1 + 1 + 2));
  EXPECT_EQ(loader.input_tokens(0), 10 * (1 + 2 + 3));
}

TEST(Loader, RefusesABatchThatRanksDoNotDivide) {
  EXPECT_THROW(loader_of(30, {0, 3, 1, 8}), InputError);
  EXPECT_THROW(loader_of(30, {0, 2, 3, 8}), InputError);
  EXPECT_THROW(loader_of(30, {0, 1, 0, 8}), InputError);
}

TEST(ValidationLoader, TakesEveryRowOnceInOrderAndEmptyBatchesWhereThereIsNone) {
  for (const std::int64_t rows : {1, 2, 5, 8, 9})
    for (const int ranks : {1, 2, 3}) {
      const auto source = std::make_shared<Numbered>(rows);
      std::vector<std::int64_t> seen;
      for (std::int64_t micro = 0; micro < ValidationLoader(source, 0, ranks, 2).micro_batches(); ++micro)
        for (int rank = 0; rank < ranks; ++rank) {
          const Batch batch = ValidationLoader(source, rank, ranks, 2).batch(micro);
          EXPECT_LE(batch.ids.size(0), 2);
          EXPECT_GT(batch.ids.size(1), 0);
          for (const std::int64_t id : numbers(batch.ids.select(1, 0))) seen.push_back(id);
        }
      ASSERT_EQ(static_cast<std::int64_t>(seen.size()), rows);
      EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
    }
}

// Row i has the weight i, weighs its token t by t, and carries two names.
class Weighted final : public Numbered {
 public:
  using Numbered::Numbered;
  Row row(std::int64_t index) const override {
    Row row = Numbered::row(index);
    row.weight = float(index);
    if (index % 2 == 0)
      for (std::size_t t = 0; t < row.ids.size(); ++t) row.weights.push_back(float(t) / 2);
    row.named["pair"] = {float(index), -1};
    row.named_of_tokens["teacher"].assign(row.ids.size(), float(index) / 4);
    return row;
  }
  std::vector<std::string> named_tensors() const override { return {"pair", "teacher"}; }
};

/// Counts rows, and needs a name.
class OfRows final : public Loss {
 public:
  explicit OfRows(std::string need) : need_(std::move(need)) {}
  std::string name() const override { return "of_rows"; }
  std::vector<std::string> needs() const override { return {need_}; }
  double count(const RowCounts& row) const override { return 1 + 0.25 * double(row.tokens > row.trained_tokens); }
  LossPart of_chunk(at::Tensor&, const LossChunk&, const at::Tensor*) const override { return {}; }

 private:
  std::string need_;
};

std::vector<float> floats(const at::Tensor& tensor) {
  return {tensor.data_ptr<float>(), tensor.data_ptr<float>() + tensor.numel()};
}

TEST(MakeBatch, CarriesWeightsAndNamedTensorsToTheLoss) {
  const Weighted rows(10);
  const Batch batch = make_batch({rows.row(4), rows.row(5)});
  EXPECT_THAT(floats(batch.token_weights), ElementsAre(0, 0.5, 0, 1, 1, 1)) << "rows without weights have 1, filling 0";
  EXPECT_THAT(floats(batch.row_weights), ElementsAre(4, 5));
  EXPECT_EQ(batch.named.at("pair").sizes(), at::IntArrayRef({2, 2}));
  EXPECT_THAT(floats(batch.named.at("pair")), ElementsAre(4, -1, 5, -1));
  EXPECT_THAT(floats(batch.named.at("teacher")), ElementsAre(1, 1, 0, 1.25, 1.25, 1.25));
  const Batch plain = make_batch({Numbered(10).row(4), Numbered(10).row(5)});
  EXPECT_FALSE(plain.token_weights.defined() || plain.row_weights.defined());
  EXPECT_TRUE(plain.named.empty() && make_batch({}, 3).named.empty());
  EXPECT_THROW(make_batch({rows.row(4), Numbered(10).row(5)}), InternalError) << "a name that a row lacks";
}

TEST(Loader, CountsTheDenominatorOfItsLoss) {
  Loader tokens = loader_of(30, {1, 2, 1, 30});
  EXPECT_EQ(tokens.denominator(0), double(tokens.trained_tokens(0)));
  const OfRows loss("pair");
  LoaderOptions options{1, 2, 1, 30};
  options.loss = &loss;
  Loader loader(std::make_shared<Weighted>(30), SampleOrder({.rows = 30, .global_batch_size = 30, .seed = 9}), options);
  EXPECT_EQ(loader.denominator(0), 30 + 0.25 * 20);
  EXPECT_EQ(&loader.loss(), &loss);
  EXPECT_EQ(ValidationLoader(std::make_shared<Weighted>(6), 0, 4, 1, {}, loss).denominator(), 6 + 0.25 * 4);
}

TEST(Loader, RefusesDataThatLackWhatItsLossNeeds) {
  const OfRows loss("reference");
  LoaderOptions options;
  options.loss = &loss;
  const auto make = [&] {
    Loader(std::make_shared<Weighted>(3), SampleOrder({.rows = 3, .global_batch_size = 1}), options);
  };
  EXPECT_THROW(make(), InputError);
  EXPECT_THROW(ValidationLoader(std::make_shared<Weighted>(3), 0, 1, 1, {}, loss), InputError);
}

TEST(ValidationLoader, KnowsTheTokensOfAllRanks) {
  EXPECT_EQ(ValidationLoader(std::make_shared<Numbered>(6), 0, 4, 1).trained_tokens(), 2 * (1 + 1 + 2));
}

}  // namespace loader_test
}  // namespace zero
