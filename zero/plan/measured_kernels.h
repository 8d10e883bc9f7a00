#pragma once
// MeasuredKernels: times of the project's own kernels on this machine's processor. All ranks of a node run the same
// call at the same time, each on its threads, as in a training step.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "zero/plan/kernels.h"
#include "zero/plan/timings.h"

namespace zero {

/// Ranks of this node, and the threads of each.
struct RankThreads {
  int ranks = 1, threads = 1;
};

class MeasuredKernels final : public Kernels {
 public:
  /// `timings` must outlive the kernels. Call choose_matmul() before the first use.
  MeasuredKernels(RankThreads here, Timings& timings) : here_(here), timings_(timings) {}

  /// The time of more than 2,048 rows is scaled from a product of 2,048 rows. Once the time to measure is spent,
  /// unknown shapes are scaled from earlier products.
  double product(const ProductShape& shape, ProductPass pass) override;
  double attention(const AttentionWork& work, bool backward) override;
  double rows(RowKernel kernel, std::int64_t rows, std::int64_t width, at::ScalarType type) override;
  double stream(double bytes) override;
  std::vector<std::string> sources() const override;

 private:
  /// Operations per second over the products so far; `assumed` before the first.
  double product_rate(double assumed) const;

  RankThreads here_;
  Timings& timings_;
  std::map<std::string, double> products_;  // floating-point operations of the products with known seconds, by name
};

/// Returns the median seconds of a call that one thread per rank makes at the same time. `make` runs once in each
/// thread and returns the call.
double seconds_together(const RankThreads& here, const std::function<std::function<void()>()>& make);

}  // namespace zero
