#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "tests/unit/prove/made_records.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace {

using testing::random_values;
using testing::sketched;

TEST(TensorSketch, PartsAddUpToTheWhole) {
  const std::vector<double> values = random_values(1, 1000);
  const TensorSketch whole = sketched(values);
  for (const std::size_t cut : {1u, 333u, 999u}) {
    TensorSketch first, second;
    first.add(0, std::span(values).first(cut));
    second.add(std::int64_t(cut), std::span(values).subspan(cut));
    second.add(first);
    EXPECT_EQ(second.hash, whole.hash);
    EXPECT_EQ(second.numel, 1000);
    EXPECT_NEAR(second.squares, whole.squares, 1e-10);
    EXPECT_EQ(distance(second, whole), 0);
  }
}

TEST(TensorSketch, AnyOtherBitIsAnotherHash) {
  std::vector<double> values = random_values(2, 100);
  values[7] = 0.0;
  const TensorSketch before = sketched(values);
  const auto differs = [&](auto change) {
    std::vector<double> other = values;
    change(other);
    return sketched(other).hash != before.hash;
  };
  EXPECT_TRUE(differs([](auto& v) { v[7] = -0.0; }));
  EXPECT_TRUE(differs([](auto& v) { v[3] = std::nextafter(v[3], 2); }));
  EXPECT_TRUE(differs([](auto& v) { std::swap(v[10], v[11]); }));
  EXPECT_FALSE(differs([](auto&) {}));
}

TEST(TensorSketch, DistanceIsTheNormOfTheDifference) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<double> values = random_values(seed, 5000), noise = random_values(seed + 100, 5000);
    std::vector<double> other = values;
    double squares = 0;
    for (std::size_t i = 0; i < other.size(); ++i) {
      other[i] += 1e-4 * noise[i];
      squares += 1e-8 * noise[i] * noise[i];
    }
    // 128 buckets: a standard deviation of 6 % of the norm.
    EXPECT_NEAR(distance(sketched(other), sketched(values)) / std::sqrt(squares), 1, 0.3);
  }
}

TEST(TensorSketch, OneOtherElementShowsInFull) {
  std::vector<double> values = random_values(3, 5000);
  const TensorSketch before = sketched(values);
  values[4321] += 0.25;
  EXPECT_NEAR(distance(sketched(values), before), 0.25, 1e-9);
}

TEST(RunRecord, IsReadAsItWasWritten) {
  TemporaryFolder folder;
  const std::string path = folder / "record.jsonl";
  const RunRecord run = testing::made_run({.noise = 0.1});
  {
    std::ofstream file(path);
    for (const auto& [step, record] : run.steps) {
      file << format_figures(step, record.figures) << '\n';
      for (const KindRecord& kind : record.kinds) file << format_kind(step, kind) << '\n';
    }
  }
  const RunRecord read = read_record(path);
  ASSERT_EQ(read.steps.size(), run.steps.size());
  EXPECT_TRUE(std::isnan(read.steps.at(0).figures.loss));
  EXPECT_EQ(read.steps.at(2).figures.loss, run.steps.at(2).figures.loss);
  for (const auto& [step, record] : run.steps)
    for (const KindRecord& kind : record.kinds) {
      const KindRecord* other = read.steps.at(step).find(kind.kind);
      ASSERT_TRUE(other);
      for (std::size_t t = 0; t < kind.tensors.size(); ++t) {
        EXPECT_EQ(other->tensors[t].tensor, kind.tensors[t].tensor);
        EXPECT_EQ(other->tensors[t].sketch.hash, kind.tensors[t].sketch.hash);
        EXPECT_EQ(other->tensors[t].sketch.buckets, kind.tensors[t].sketch.buckets);
      }
    }
}

TEST(RunRecord, AnIncompleteFileIsRefused) {
  TemporaryFolder folder;
  const std::string path = folder / "record.jsonl";
  EXPECT_THROW(read_record(path), Error);
  std::ofstream(path) << format_figures(1, {}).substr(0, 20);
  EXPECT_THROW(read_record(path), Error);
}

}  // namespace
}  // namespace zero
