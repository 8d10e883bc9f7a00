#pragma once
// GgufWeights: the tensors of a GGUF file as a WeightSource, with Hugging Face's names and row order.
#include <functional>
#include <memory>
#include <optional>

#include "models/formats/gguf/gguf_file.h"
#include "models/formats/gguf/gguf_layout.h"
#include "models/formats/unused_tensors.h"
#include "models/model_config.h"
#include "models/weight_source.h"

namespace zero {

/// Reads only the requested blocks. Rows of q and k are reordered as whole rows, so their blocks do not change. Weights
/// that the family stores as [in, out] are transposed, which breaks up their blocks.
class GgufWeights : public WeightSource {
 public:
  /// `config` is the file's configuration (config_json_of).
  GgufWeights(std::shared_ptr<const GgufFile> file, const ModelConfig& config,
              UnusedTensors unused = UnusedTensors::refuse);

  /// Also handles stored tensors that are never read, as `unused` says. All of them belong to the model, since
  /// llama.cpp writes no others.
  void check(const std::vector<TensorSpec>& tensors) override;
  void read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) override;
  void read_as(const TensorSpec& tensor, GgmlType type, std::int64_t begin, std::int64_t count,
               const at::Tensor& out) override;

  /// The type in which a tensor can be held as stored. Returns nothing if the file has no such tensor, or stores it in
  /// another form.
  std::optional<GgmlType> type_of(const TensorSpec& tensor) const;

 private:
  const GgufEntry& entry_of(const TensorSpec& tensor) const;
  /// Reads elements [begin, begin + count), as stored, into `out`.
  void read_stored(const GgufEntry& stored, std::int64_t begin, std::int64_t count, const at::Tensor& out) const;
  void read_transposed(const GgufEntry& stored, const TensorSpec& tensor, std::int64_t begin, std::int64_t count,
                       const at::Tensor& out) const;
  /// Visits elements [begin, begin + count) as runs that are also contiguous in the file. visit() receives the run's
  /// first element in the file, its offset from `begin` in the tensor, and its length.
  void for_each_stored_run(const TensorSpec& tensor, std::int64_t begin, std::int64_t count,
                           const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& visit) const;

  std::shared_ptr<const GgufFile> file_;
  GgufLayout layout_;
  std::int64_t head_dim_;
  UnusedTensors unused_;
  bool settled_ = false;
};

/// A GGUF file as a model.
struct GgufModel {
  std::shared_ptr<const GgufFile> file;
  ModelConfig config;
  std::shared_ptr<GgufWeights> weights;
};
GgufModel open_gguf_model(const std::string& path, UnusedTensors unused = UnusedTensors::refuse);

}  // namespace zero
