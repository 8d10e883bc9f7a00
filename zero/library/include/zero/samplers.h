#pragma once
// ShuffledSampler: an order of samples that depends only on the seed and the epoch, equal on every process and machine.
// For torch::data::make_data_loader:
//
//   zero::ShuffledSampler order(dataset.size().value(), /*seed=*/7);
//   auto loader = torch::data::make_data_loader(dataset, order, /*batch_size=*/64);
//   order.set_epoch(epoch);   // before each epoch
#include <torch/data/samplers/base.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace zero {

/// Returns the numbers 0 to size - 1, shuffled for this seed and epoch (Fisher-Yates; Knuth, TAOCP 2, 3.4.2, algorithm
/// P). Supports at most 2^32 samples.
std::vector<std::size_t> shuffled_order(std::size_t size, std::uint64_t seed, std::int64_t epoch);

/// Copies share the epoch, so calling set_epoch() on your sampler also affects the loader's copy.
class ShuffledSampler : public torch::data::samplers::Sampler<> {
 public:
  explicit ShuffledSampler(std::size_t size, std::uint64_t seed = 0);

  /// Takes effect at the loader's next begin().
  void set_epoch(std::int64_t epoch);
  std::int64_t epoch() const;

  void reset(std::optional<std::size_t> new_size = std::nullopt) override;
  std::optional<std::vector<std::size_t>> next(std::size_t batch_size) override;
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  std::size_t size_;
  std::uint64_t seed_;
  std::shared_ptr<std::int64_t> epoch_;
  std::vector<std::size_t> order_;
  std::size_t next_ = 0;
};

}  // namespace zero
