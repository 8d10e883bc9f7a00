#include "zero/modules/parameter_watch.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "zero/core/buffers/flat_storage.h"
#include "zero/modules/deferred_tape.h"

namespace zero {
namespace {

/// Names a protected member through a derived class.
struct OpenTensorImpl : c10::TensorImpl {
  static auto keys() { return &OpenTensorImpl::key_set_; }
};

c10::DispatchKeySet& keys_of(const at::Tensor& tensor) { return tensor.unsafeGetTensorImpl()->*OpenTensorImpl::keys(); }

/// The uses of parameters by one call.
class Uses {
 public:
  void add(const at::Tensor& tensor, bool writes) {
    if (!tensor.defined()) return;
    const auto* mark = static_cast<const WatchedGroup*>(FlatStorage::owner_of(tensor));
    if (at::isFloatingType(tensor.scalar_type())) (mark ? watched_type_ : other_type_) = tensor.scalar_type();
    if (!mark) return;
    if (!mark->watcher)
      throw InputError(
          "a parameter is used whose sharded model is gone, and with it the values: keep the model as long as the module, "
          "or save() it and load the file into a module of its own");
    Use& use = of(mark->watcher);
    if (std::find(use.groups.begin(), use.groups.end(), mark->group) == use.groups.end())
      use.groups.push_back(mark->group);
    use.writes |= writes;
  }
  void add(const c10::IValue& value, bool writes) {
    if (value.isTensor()) return add(value.toTensor(), writes);
    if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorList()) add(tensor, writes);
    } else if (value.isList()) {
      for (const c10::IValue& element : value.toListRef())
        if (element.isTensor()) add(element.toTensor(), writes);
    }
  }
  /// Returns a possible reason why LibTorch rejected the operation's types; empty if there is none.
  std::string types_that_differ() const {
    if (!watched_type_ || !other_type_ || *watched_type_ == *other_type_) return "";
    return text(". The sharded parameter is of ", *watched_type_, " and another argument of ", *other_type_,
                ": convert the batch to the parameters' type, batch.data.to(zero::bf16) for ShardOptions{.precision = "
                "zero::bf16}, or leave precision out");
  }
  void tell(const std::string& operation) const {
    const c10::impl::ExcludeDispatchKeyGuard without(watch_key);  // so that no tape records the watchers' operations
    for (const Use& use : uses_)  // report reads first: they show that LibTorch's optimizer is at work
      if (!use.writes) use.watcher->before_read(operation, use.groups);
    for (const Use& use : uses_)
      if (use.writes) use.watcher->before_write(operation, use.groups);
  }

 private:
  struct Use {
    ParameterWatcher* watcher;
    std::vector<int> groups = {};
    bool writes = false;
  };
  Use& of(ParameterWatcher* watcher) {
    for (Use& use : uses_)
      if (use.watcher == watcher) return use;
    return uses_.emplace_back(Use{watcher});
  }
  std::vector<Use> uses_;
  std::optional<at::ScalarType> watched_type_, other_type_;  // of floating arguments
};

/// set_data() is not an operation, but its initial check is one. Assigning a tensor its own data is not a change.
bool gives_other_data(const c10::OperatorHandle& operation, const torch::jit::Stack& stack) {
  if (operation.schema().name() != "aten::_has_compatible_shallow_copy_type") return false;
  return !stack[stack.size() - 2].toTensor().is_same(stack.back().toTensor());
}

}  // namespace

void call_watched(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  const auto& arguments = operation.schema().arguments();
  const std::size_t first = stack->size() - arguments.size();
  Uses uses;
  if (gives_other_data(operation, *stack)) {
    uses.add((*stack)[first], true);
    uses.tell("to(), half() or set_data()");
  }
  for (std::size_t i = 0; i < arguments.size(); ++i)
    uses.add((*stack)[first + i], arguments[i].alias_info() && arguments[i].alias_info()->isWrite());
  uses.tell(operation.schema().name());
  if (DeferredTape::call(operation, stack)) return;
  const c10::impl::ExcludeDispatchKeyGuard without(watch_key);
  try {
    operation.callBoxed(stack);
  } catch (const c10::Error& error) {
    const std::string types = uses.types_that_differ(), message = error.what_without_backtrace();
    if (types.empty() || message.find("type") == std::string::npos) throw;
    throw InputError(message + types);
  }
}

const WatchedGroup& abandoned_group() {
  static const WatchedGroup abandoned;
  return abandoned;
}

void watch_parameter(const at::Tensor& parameter) { keys_of(parameter) = keys_of(parameter).add(watch_key); }

}  // namespace zero

TORCH_LIBRARY_IMPL(_, DeferredInit, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&zero::call_watched>());
}
