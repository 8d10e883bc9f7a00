#include "zero/data/rows/source_turns.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>

#include "base/error.h"

namespace zero {
namespace {

constexpr std::int64_t finest = 1'000'000;  // of the sum of whole shares
constexpr double exact = 1e-9;

bool are_whole(const std::vector<double>& weights, double factor) {
  return std::ranges::all_of(weights, [&](double weight) {
    const double scaled = weight * factor;
    return std::abs(std::round(scaled) - scaled) <= exact * scaled;
  });
}

/// The next row of a source, which may come from row `at` of the run on, or has to come before it.
struct Waiting {
  std::int64_t at;
  std::size_t source;
  std::int64_t place;
  bool operator>(const Waiting& other) const { return std::tie(at, source) > std::tie(other.at, other.source); }
};
using Earliest = std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>>;

}  // namespace

std::vector<std::int64_t> whole_shares(const std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::int64_t total = std::ssize(weights);
  while (total < finest && !are_whole(weights, double(total) / sum)) ++total;
  std::vector<std::int64_t> shares;
  for (const double weight : weights) {
    shares.push_back(std::llround(weight / sum * double(total)));
    ZERO_CHECK(shares.back() > 0, "a weight is too small");
  }
  return shares;
}

SourceTurns::SourceTurns(const std::vector<double>& weights) : shares_(whole_shares(weights)) {
  const std::int64_t total = std::accumulate(shares_.begin(), shares_.end(), std::int64_t{0});
  const auto may_come = [&](std::size_t source, std::int64_t place) { return place * total / shares_[source]; };
  const auto must_come = [&](std::size_t source, std::int64_t place) {
    return ((place + 1) * total + shares_[source] - 1) / shares_[source];
  };
  Earliest coming, ready;
  for (std::size_t source = 0; source < shares_.size(); ++source) coming.push({0, source, 0});
  for (std::int64_t row = 0; row < total; ++row) {
    for (; !coming.empty() && coming.top().at <= row; coming.pop()) {
      const auto [at, source, place] = coming.top();
      ready.push({must_come(source, place), source, place});
    }
    const auto [before, source, place] = ready.top();
    ready.pop();
    period_.push_back({std::uint32_t(source), std::uint32_t(place)});
    coming.push({may_come(source, place + 1), source, place + 1});
  }
}

Turn SourceTurns::at(std::int64_t row) const {
  const auto period = std::ssize(period_);
  const Short& turn = period_[std::size_t(row % period)];
  return {turn.source, row / period * shares_[turn.source] + turn.place};
}

std::int64_t SourceTurns::given(std::size_t source, std::int64_t rows) const {
  const auto period = std::ssize(period_);
  const auto in_part = std::count_if(period_.begin(), period_.begin() + rows % period,
                                     [&](const Short& turn) { return turn.source == source; });
  return rows / period * shares_[source] + in_part;
}

double SourceTurns::share(std::size_t source) const { return double(shares_[source]) / double(period_.size()); }

}  // namespace zero
