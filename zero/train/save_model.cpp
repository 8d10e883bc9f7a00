#include "zero/train/save_model.h"

#include "models/weight_source.h"
#include "zero/train/first_rank_work.h"

namespace zero {

void save_model(Engine& engine, const Model& model, const std::string& folder, const HfWriteOptions& options) {
  // Groups and layouts follow the order of units and parameters, which is the order of tensors_of(model).
  std::unique_ptr<HfWriter> writer;
  FirstRankWork first(engine.host());
  first.attempt([&] { writer = std::make_unique<HfWriter>(folder, model.config, tensors_of(model), options); });
  engine.export_weights([&](const TensorSpec&, const at::Tensor& value) { first.attempt([&] { writer->append(value); }); });
  first.attempt([&] { writer->finish(); });
  first.finish();
}

}  // namespace zero
