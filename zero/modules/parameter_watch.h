#pragma once
// ParameterWatch: calls a parameter's owner before any operation sees it, in forward and in backward (autograd saves
// the tensor or a view). The tensor carries one more dispatch key, above autograd's: DeferredInit, which LibTorch
// leaves to external code. The key's fallback calls the owner and reruns the operation without the key. Other tensors
// pay nothing.
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/DispatchKey.h>

#include <string>
#include <vector>

namespace c10 {
class OperatorHandle;
}

namespace zero {

class ParameterWatcher;

/// The key of watched tensors.
inline constexpr c10::DispatchKey watch_key = c10::DispatchKey::DeferredInit;

/// The mark on a storage (FlatStorage::watch()): its watcher and its group.
struct WatchedGroup {
  ParameterWatcher* watcher = nullptr;  // null: it and the values are gone; operations throw InputError
  int group = 0;
};
/// The mark of storages without a watcher.
const WatchedGroup& abandoned_group();

class ParameterWatcher {
 public:
  virtual ~ParameterWatcher() = default;
  /// Called before the operation ("aten::linear") reads parameters of these groups, each listed once. An exception
  /// aborts the operation.
  virtual void before_read(const std::string& operation, const std::vector<int>& groups) = 0;
  /// Called before a write to one of them: throws, or allows it.
  virtual void before_write(const std::string& operation, const std::vector<int>& groups) = 0;
};

/// Starts watching the tensor and later views of it. Its storage needs a WatchedGroup mark, which must outlive it. On a
/// storage without a mark the key has no effect.
void watch_parameter(const at::Tensor& parameter);
/// Calls the watchers of the operation's arguments, the last values of the stack, then runs the operation. The key's
/// fallback does this; kernels registered under the key call it too.
void call_watched(const c10::OperatorHandle& operation, std::vector<c10::IValue>* stack);

}  // namespace zero
