#include "zero/library/include/zero/recompute.h"

#include <ATen/ATen.h>
#include <c10/util/ScopeExit.h>

#include <memory>
#include <utility>

#include "models/nn/recompute.h"

namespace zero {
namespace {

/// Runs a body twice with the same random numbers, and leaves the generator as after one run.
class SameDraws {
 public:
  explicit SameDraws(std::function<at::Tensor(const at::Tensor&)> body) : body_(std::move(body)) {}

  at::Tensor operator()(const at::Tensor& x) {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    if (!before_.defined()) {
      before_ = generator.get_state();
      return body_(x);
    }
    const at::Tensor now = generator.get_state();
    generator.set_state(before_);
    const auto restored = c10::make_scope_exit([&] { generator.set_state(now); });  // also if the body throws
    return body_(x);
  }

 private:
  std::function<at::Tensor(const at::Tensor&)> body_;
  at::Tensor before_;
};

}  // namespace

torch::Tensor recompute_section(std::function<torch::Tensor(const torch::Tensor&)> body, const torch::Tensor& x,
                                const std::vector<torch::Tensor>& parameters) {
  std::vector<at::Tensor> trained;
  for (const at::Tensor& parameter : parameters)
    if (parameter.requires_grad()) trained.push_back(parameter);
  const auto draws = std::make_shared<SameDraws>(std::move(body));
  return recompute(RecomputedBody([draws](const at::Tensor& in) { return (*draws)(in); }), x, trained);
}

}  // namespace zero
