#include "zero/core/engine.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "base/error.h"

namespace zero {

Engine::Engine(Chain chain, Mesh& mesh, const EngineOptions& options)
    : ModelStates(units_of(chain), mesh, options), run_{options, std::move(chain), units()} {
  ZERO_CHECK(run_.chain.size() >= 2, "a chain has at least a first unit and a head");
}

at::Tensor Engine::evaluate(const ForwardContext& context, const ChainPass::Head& head) {
  const at::NoGradGuard no_grad;
  return ChainPass(run_, context, {}, head).result();
}

}  // namespace zero
