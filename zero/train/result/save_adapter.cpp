#include "zero/train/result/save_adapter.h"

#include <memory>

#include "comm/agreement/agreement.h"
#include "models/families/families.h"
#include "models/lora/adapter_writer.h"

namespace zero {
void save_adapter(Engine& engine, const RunModel& run, const std::string& folder, const std::string& base,
                  const TokenizerSource& tokenizer) {
  Communicator& ranks = engine.host();
  std::unique_ptr<AdapterWriter> writer;  // on rank 0
  on_first(ranks, [&] {
    writer =
        std::make_unique<AdapterWriter>(folder, engine.exported_tensors(true), family_of(run.model.config.model_type),
                                        *run.lora, run.pissa.get(), run.start.get());
  });
  engine.export_weights(
      [&](const TensorSpec& spec, const at::Tensor& value) { on_first(ranks, [&] { writer->append(spec, value); }); },
      true);
  on_first(ranks, [&] { writer->finish(base, tokenizer); });
}

}  // namespace zero
