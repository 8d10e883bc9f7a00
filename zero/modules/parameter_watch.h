#pragma once
// ParameterWatch: calls a parameter's owner before any operation uses the parameter, in forward and in backward (where
// autograd has saved the tensor or a view). The tensor has an additional dispatch key above autograd's: DeferredInit,
// which LibTorch reserves for external code. The key's fallback calls the owner and reruns the operation without the
// key. Other tensors have no overhead.
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
  ParameterWatcher* watcher = nullptr;  // null: watcher and values no longer exist, and operations throw InputError
  int group = 0;
};
/// The mark of storages without a watcher.
const WatchedGroup& abandoned_group();

class ParameterWatcher {
 public:
  virtual ~ParameterWatcher() = default;
  /// Called before the operation ("aten::linear") reads parameters of these groups. Each group is listed once. An
  /// exception aborts the operation.
  virtual void before_read(const std::string& operation, const std::vector<int>& groups) = 0;
  /// Called before the operation writes to such a parameter. Throws to forbid the write.
  virtual void before_write(const std::string& operation, const std::vector<int>& groups) = 0;
};

/// Starts watching the tensor and later views of it. The tensor's storage needs a WatchedGroup mark, which must outlive
/// the storage. Without a mark the key has no effect.
void watch_parameter(const at::Tensor& parameter);
/// Calls the watchers of the operation's arguments, which are the last values of the stack, then runs the operation.
/// The key's fallback and kernels registered under the key call it.
void call_watched(const c10::OperatorHandle& operation, std::vector<c10::IValue>* stack);

}  // namespace zero
