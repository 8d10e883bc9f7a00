#include "zero/train/result/save_model.h"

#include "comm/agreement/agreement.h"
#include "models/weight_source.h"

namespace zero {

void save_model(Engine& engine, const Model& model, const std::string& folder, const HfWriteOptions& options) {
  // Groups and layouts follow the order of units and parameters, which is the order of tensors_of(model).
  Communicator& ranks = engine.host();
  std::unique_ptr<HfWriter> writer;  // rank 0's
  on_first(ranks, [&] { writer = std::make_unique<HfWriter>(folder, model.config, tensors_of(model), options); });
  engine.export_weights(
      [&](const TensorSpec&, const at::Tensor& value) { on_first(ranks, [&] { writer->append(value); }); });
  on_first(ranks, [&] { writer->finish(); });
}

}  // namespace zero
