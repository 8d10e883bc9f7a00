#include "zero/core/engine.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>
#include <ATen/core/grad_mode.h>

#include "base/error.h"
#include "zero/core/pipeline/unit_deal.h"

namespace zero {

namespace {

StatesOptions dealt_out(const EngineOptions& asked, const Chain& chain, const Mesh& mesh, int chunks) {
  ZERO_CHECK(chain.size() >= 2, "a chain has at least a first unit and a head");
  StatesOptions options = asked;
  const int stages = mesh.size(MeshAxis::pipeline);
  if (stages > 1) options.runs = deal_units(costs_of(chain), has_tied_ends(chain), stages, chunks);
  if (asked.mlp_tokens > 0) {
    // A narrow sum would be rounded after every tile.
    const at::ScalarType gradient = options.precision.gradient;
    options.fuse_accumulation &= gradient == at::toOpMathType(gradient);
    options.write_gradients = false;
  }
  return options;
}

int chunks_of(const PipelineOptions& options) {
  return options.schedule == ScheduleKind::interleaved ? options.chunks : 1;
}

}  // namespace

Engine::Engine(Chain chain, Mesh& mesh, const EngineOptions& options)
    : ModelStates(units_of(chain), mesh, dealt_out(options, chain, mesh, chunks_of(options.pipeline))),
      run_{options, std::move(chain), units(), {0, int(units().units.size())}} {
  if (options.inputs_on_host) units().input_home = std::make_unique<InputHome>(options.device);
  if (mesh.size(MeshAxis::pipeline) > 1)
    pipeline_.emplace(options, run_.chain, units(), this->options().runs, mesh, options.pipeline,
                      at::TensorOptions().dtype(options.precision.compute).device(options.device));
}

const ChainRun& Engine::chain_run() const {
  ZERO_CHECK(!pipeline_, "a stage of a pipeline has a part of the chain");
  return run_;
}

at::Tensor Engine::evaluate(const ForwardContext& context, const ChainPass::Head& head, LossFigures* figures) {
  const at::NoGradGuard no_grad;
  if (pipeline_) return pipeline_->evaluate(context, head, figures);
  const ChainPass pass(run_, context, {}, {}, head);
  if (figures) add_figures(*figures, pass.figures());
  return pass.result();
}

}  // namespace zero
