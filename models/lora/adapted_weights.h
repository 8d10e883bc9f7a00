#pragma once
// Weight sources for models with LoRA adapters that are trained, fresh, or merged into their base.
#include <memory>
#include <string>
#include <vector>

#include "models/lora/adapter_contents.h"
#include "models/weight_source.h"

namespace zero {

/// The weights of an adapted model. Tensors in the adapter's file are read from it, all others from the base.
class AdaptedWeights : public WeightSource {
 public:
  AdaptedWeights(std::shared_ptr<WeightSource> base, std::shared_ptr<const AdapterContents> adapter)
      : base_(std::move(base)), adapter_(std::move(adapter)) {}

  void check(const std::vector<TensorSpec>& tensors) override;
  void check_values() override;
  void read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) override;
  void read_as(const TensorSpec& tensor, GgmlType type, std::int64_t begin, std::int64_t count,
               const at::Tensor& out) override;

 private:
  std::string stored_name(const TensorSpec& tensor) const;  // in the adapter's file; empty if in the base
  std::shared_ptr<WeightSource> base_;
  std::shared_ptr<const AdapterContents> adapter_;
};

/// The weights of a model with new adapters over a base. The adapters are drawn from a seed. With DoRA, magnitudes
/// start as the norms of the base's rows.
class FreshAdapter : public WeightSource {
 public:
  FreshAdapter(std::shared_ptr<WeightSource> base, std::shared_ptr<WeightSource> drawn)
      : base_(std::move(base)), drawn_(std::move(drawn)) {}
  void check(const std::vector<TensorSpec>& tensors) override;
  void check_values() override { base_->check_values(); }
  void read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) override;
  void read_as(const TensorSpec& tensor, GgmlType type, std::int64_t begin, std::int64_t count,
               const at::Tensor& out) override;

 private:
  void read_lengths(const TensorSpec& magnitude, std::int64_t begin, std::int64_t count, const at::Tensor& out);
  std::shared_ptr<WeightSource> base_;
  std::shared_ptr<WeightSource> drawn_;
  std::vector<TensorSpec> base_tensors_;
};

/// The base's weights with the adapter merged in, in fp32: W + scale B A. With DoRA, that is multiplied by magnitude /
/// |W + scale B A|.
class MergedWeights : public WeightSource {
 public:
  MergedWeights(std::shared_ptr<WeightSource> base, std::shared_ptr<const AdapterContents> adapter)
      : base_(std::move(base)), adapter_(std::move(adapter)) {}
  /// `tensors` are the tensors of the model without adapters.
  void check(const std::vector<TensorSpec>& tensors) override { base_->check(tensors); }
  void check_values() override;
  void read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) override;
  void read_as(const TensorSpec& tensor, GgmlType type, std::int64_t begin, std::int64_t count,
               const at::Tensor& out) override;

 private:
  void read_unadapted(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out);
  at::Tensor merged_rows(const TensorSpec& tensor, std::int64_t first, std::int64_t rows);
  std::shared_ptr<WeightSource> base_;
  std::shared_ptr<const AdapterContents> adapter_;
};

}  // namespace zero
