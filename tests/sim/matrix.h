#pragma once
// Parts of the products of layouts, families and options that tests run over. ZERO_WHOLE_MATRIX=1 runs whole products
// (scripts/nightly).
#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

namespace zero::testing {

inline bool whole_matrix() { return std::getenv("ZERO_WHOLE_MATRIX") != nullptr; }

/// The largest m for which the combinations whose indices sum to a multiple of m have every pair of values of two
/// factors. For a pair, the indices of the other factors sum to 0, 1, ..., at least m - 1: one of these fits.
template <std::size_t N>
int stride_of_pairs(std::array<std::size_t, N> sizes) {
  static_assert(N > 2, "of two factors the pairs are the whole product");
  std::sort(sizes.begin(), sizes.end());
  std::size_t stride = 1;
  for (std::size_t f = 0; f + 2 < N; ++f) stride += sizes[f] - 1;
  return int(stride);
}

/// Combinations with one value of each factor. Every pair of values of two factors is in at least one of them.
template <class... T>
std::vector<std::tuple<T...>> pairs_of(const std::vector<T>&... factors) {
  constexpr std::size_t count = sizeof...(T);
  const std::array<std::size_t, count> sizes{factors.size()...};
  const std::size_t stride = whole_matrix() ? 1 : std::size_t(stride_of_pairs(sizes));
  std::vector<std::tuple<T...>> chosen;
  for (std::array<std::size_t, count> at{}; at[0] < sizes[0];) {
    if (std::accumulate(at.begin(), at.end(), std::size_t(0)) % stride == 0)
      [&]<std::size_t... F>(std::index_sequence<F...>) { chosen.emplace_back(factors[at[F]]...); }
    (std::index_sequence_for<T...>());
    ++at[count - 1];
    for (std::size_t f = count - 1; f > 0 && at[f] == sizes[f]; --f) {
      at[f] = 0;
      ++at[f - 1];
    }
  }
  return chosen;
}

/// Takes every `of`-th of the cases that it is asked about. Tests of one kind that start at different `first` ones
/// divide the cases among them.
class Share {
 public:
  Share(int of, int first) : of_(whole_matrix() ? 1 : of), next_(first % of_) {}

  bool takes() { return next_++ % of_ == 0; }

 private:
  int of_, next_;
};

}  // namespace zero::testing
