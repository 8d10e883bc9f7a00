#pragma once
// SheetKernels: times by the roofline of a data sheet (Williams et al. 2009, Roofline). A time is the larger of the
// arithmetic's and the memory traffic's time, each at an assumed share of its peak.
#include "zero/plan/kernels.h"
#include "zero/plan/node_sheets.h"

namespace zero {

/// Shares of a GPU's peaks that large kernels reach. No GPU has run this project's kernels; docs/plan.md compares with
/// published results.
struct SheetShares {
  double products = 0.72;
  double attention_forward = 0.50, attention_backward = 0.40;
  double memory = 0.80;
  double launch = 5e-6;  // seconds that a kernel takes at least
};

class SheetKernels final : public Kernels {
 public:
  explicit SheetKernels(NodeSheet sheet, SheetShares shares = {}) : sheet_(std::move(sheet)), shares_(shares) {}

  double product(const ProductShape& shape, ProductPass pass) override;
  double attention(const AttentionWork& work, bool backward) override;
  double rows(RowKernel kernel, std::int64_t rows, std::int64_t width, at::ScalarType type) override;
  double stream(double bytes) override { return bytes / (sheet_.memory_rate * shares_.memory); }
  std::vector<std::string> sources() const override;

 private:
  NodeSheet sheet_;
  SheetShares shares_;
};

}  // namespace zero
