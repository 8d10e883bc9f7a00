#include "zero/modules/gradient_stand_in.h"

#include "base/error.h"
#include "zero/core/buffers/flat_storage.h"
#include "zero/modules/parameter_watch.h"

namespace zero {
namespace {

class Refusal final : public ParameterWatcher {
 public:
  void before_read(const std::string& operation, const std::vector<int>&) override {
    if (operation == "aten::detach") return;  // zero_grad() does this
    throw InputError(
        operation +
        " uses parameter.grad() of a sharded model, which holds no gradient. model.optimizer(...) replaces "
        "torch::optim, optimizer.clip() replaces clip_grad_norm_(), step().grad_norm is the norm, and "
        "model.for_each_gradient() visits the values. zero_grad() is not needed");
  }
  // Autograd accumulates gradients in place.
  void before_write(const std::string& operation, const std::vector<int>& groups) override {
    if (operation != "aten::add_") before_read(operation, groups);
    throw InputError(
        "a parameter got a gradient outside its sharded model's backward: call model.backward(loss), not "
        "loss.backward(); where it is another model's loss, freeze this one meanwhile (set_requires_grad(false)), or "
        "shard both as one module");
  }
};

}  // namespace

// The mark outlives tensor and model: a program may keep the tensor longer than the model.
at::Tensor gradient_stand_in(const at::Tensor& parameter) {
  static Refusal refusal;
  static const WatchedGroup mark{&refusal, 0};
  FlatStorage storage(parameter.numel(), parameter.scalar_type(), parameter.device());
  storage.watch(&mark);
  const at::Tensor& tensor = storage.tensor();
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(parameter.sizes());
  watch_parameter(tensor);
  return tensor;
}

}  // namespace zero
