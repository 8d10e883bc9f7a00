#pragma once
// SourceTurns: the source that gives each row of a run, so that every source gets its share of the rows. No LibTorch.
#include <cstddef>
#include <cstdint>
#include <vector>

namespace zero {

/// Returns whole numbers in the ratio of the weights, with a sum of at most about a million. They are exact to one part
/// in 10^9 if there are such numbers, otherwise rounded to millionths of the sum. `weights`: above 0, each at least a
/// millionth of their sum.
std::vector<std::int64_t> whole_shares(const std::vector<double>& weights);

/// One row of a run: row number `place` (from 0, without end) of a source.
struct Turn {
  std::size_t source = 0;
  std::int64_t place = 0;
};

/// Among the first n rows, a source with the share w has w x n rows, rounded down or up. The order repeats after as
/// many rows as the whole shares sum up to. It depends on the weights alone. Holds 8 bytes per row of that period.
///
/// The j-th row of a source has to come in the rows floor((j-1)/w) .. ceil(j/w)-1 of the run, and of the sources that
/// may come, the one that has to come first does. This meets all limits: unit tasks with integer release times and
/// deadlines are feasible here, and the earliest deadline is optimal for them (Liu and Layland 1973; Baruah et al.,
/// "Proportionate progress", 1996).
class SourceTurns {
 public:
  explicit SourceTurns(const std::vector<double>& weights);

  /// The row number `row` of the run, from 0.
  Turn at(std::int64_t row) const;

  /// The rows that a source gives to the first `rows` rows of the run.
  std::int64_t given(std::size_t source, std::int64_t rows) const;

  /// The share of a source, between 0 and 1.
  double share(std::size_t source) const;

 private:
  struct Short {
    std::uint32_t source, place;
  };

  std::vector<std::int64_t> shares_;
  std::vector<Short> period_;
};

}  // namespace zero
