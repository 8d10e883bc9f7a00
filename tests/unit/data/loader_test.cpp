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

TEST(ValidationLoader, KnowsTheTokensOfAllRanks) {
  EXPECT_EQ(ValidationLoader(std::make_shared<Numbered>(6), 0, 4, 1).trained_tokens(), 2 * (1 + 1 + 2));
}

}  // namespace loader_test
}  // namespace zero
