#pragma once
// ParameterWatch: who owns a parameter is told of every operation that is about to see it, in forward and, since autograd
// saves the very tensor or a view of it, in backward. The tensor carries one more dispatch key, above autograd's
// (DeferredInit, which LibTorch leaves to code outside of it); the key's fallback tells the owner and runs the operation
// again without the key. Tensors without the key pay nothing.
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

/// Of tensors whose operations are told of.
inline constexpr c10::DispatchKey watch_key = c10::DispatchKey::DeferredInit;

/// What a storage is marked with (FlatStorage::watch()): whose it is, and which group.
struct WatchedGroup {
  ParameterWatcher* watcher = nullptr;  // null: it is gone, and so are the values; operations throw InputError
  int group = 0;
};
/// The mark of storages whose watcher is gone.
const WatchedGroup& abandoned_group();

class ParameterWatcher {
 public:
  virtual ~ParameterWatcher() = default;
  /// Before the operation of that name ("aten::linear") reads parameters of these groups, each once. What it throws ends
  /// the operation.
  virtual void before_read(const std::string& operation, const std::vector<int>& groups) = 0;
  /// The same where it writes to one: throws, or lets it pass.
  virtual void before_write(const std::string& operation, const std::vector<int>& groups) = 0;
};

/// From now on; views of the tensor that are made later are watched with it. Its storage is marked with a WatchedGroup,
/// which outlives it. A tensor whose storage is not marked passes; it only has the key.
void watch_parameter(const at::Tensor& parameter);
/// Tells the watchers of the tensors among the operation's arguments, the last ones of the stack, and runs it: what the
/// key's fallback does. For kernels that are registered under the key.
void call_watched(const c10::OperatorHandle& operation, std::vector<c10::IValue>* stack);

}  // namespace zero
