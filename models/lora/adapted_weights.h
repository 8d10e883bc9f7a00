#pragma once
// Weight sources of models with LoRA adapters: trained before, fresh, or merged into their base.
#include <memory>
#include <string>
#include <vector>

#include "models/families/family.h"
#include "models/lora/peft_directory.h"
#include "models/weight_source.h"

namespace zero {

/// The weights of an adapted model: the adapter's from a PEFT directory (with its modules_to_save), the others from the
/// base.
class AdaptedWeights : public WeightSource {
 public:
  AdaptedWeights(std::shared_ptr<WeightSource> base, std::shared_ptr<const PeftDirectory> adapter,
                 const Family& family = llama_family())
      : base_(std::move(base)), adapter_(std::move(adapter)), names_(family.names) {}

  /// Also refuses tensors of the adapter that the model does not have: an adapter for another base.
  void check(const std::vector<TensorSpec>& tensors) override;
  void check_values() override { base_->check_values(); }
  void read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) override;
  void read_as(const TensorSpec& tensor, GgmlType type, std::int64_t begin, std::int64_t count,
               const at::Tensor& out) override;

 private:
  std::string stored_name(const std::string& name) const;  // in the adapter's file; empty when the base has it
  std::shared_ptr<WeightSource> base_;
  std::shared_ptr<const PeftDirectory> adapter_;
  DecoderNames names_;
};

/// The weights of a freshly adapted model: new adapters drawn from a seed over a base from elsewhere. With DoRA the
/// magnitudes start as the lengths of the base's rows.
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

/// The base's weights with the adapter merged in: W + scale B A, or magnitude / |W + scale B A| times it, in fp32.
class MergedWeights : public WeightSource {
 public:
  MergedWeights(std::shared_ptr<WeightSource> base, std::shared_ptr<const PeftDirectory> adapter,
                const Family& family = llama_family())
      : base_(std::move(base)), adapter_(std::move(adapter)), names_(family.names) {}
  /// Tensors are those of the model without adapters; refuses an adapter for another base.
  void check(const std::vector<TensorSpec>& tensors) override;
  void check_values() override { base_->check_values(); }
  void read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) override;

 private:
  at::Tensor merged_rows(const TensorSpec& tensor, const std::string& module, std::int64_t first, std::int64_t rows);
  std::shared_ptr<WeightSource> base_;
  std::shared_ptr<const PeftDirectory> adapter_;
  DecoderNames names_;
};

}  // namespace zero
