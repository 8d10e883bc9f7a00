#include "zero/train/save_model.h"

#include "models/weight_source.h"
#include "zero/data/together.h"

namespace zero {

void save_model(Engine& engine, const Model& model, const std::string& folder, const HfWriteOptions& options) {
  // Groups and layouts follow the order of units and parameters, which is the order of tensors_of(model).
  const bool writes = engine.communicator().rank() == 0;
  std::unique_ptr<HfWriter> writer;
  std::exception_ptr failure;
  const auto attempt = [&](const auto& work) {
    if (!writes || failure) return;
    try {
      work();
    } catch (...) {
      failure = std::current_exception();  // the gathers go on, so that all ranks meet at the end
    }
  };
  attempt([&] { writer = std::make_unique<HfWriter>(folder, model.config, tensors_of(model), options); });
  engine.export_weights([&](const TensorSpec&, const at::Tensor& value) { attempt([&] { writer->append(value); }); });
  attempt([&] { writer->finish(); });
  run_together(engine.host(), [&] {
    if (failure) std::rethrow_exception(failure);
  });
}

}  // namespace zero
