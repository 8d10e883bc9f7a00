#pragma once
// Deferred construction: a module without memory, for models that no process can hold whole.
//
//   auto net = zero::deferred([&] { return Net(config); });
//   zero::Sharded<Net> model(net, world, {.stage = 3});
//   auto optimizer = model.optimizer(...);      // computes each process's part, one parameter at a time
//
// The constructors run on LibTorch's Meta device, which records their operations on tensors. When the model is sharded,
// each parameter gets the values its constructor defines. model.load(path) before that reads them from a file instead.
#include <memory>
#include <utility>

namespace zero {

namespace detail {

class DeferredBuild {
 public:
  DeferredBuild();
  ~DeferredBuild();
  DeferredBuild(const DeferredBuild&) = delete;
  DeferredBuild& operator=(const DeferredBuild&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace detail

/// Returns the module that build() makes, with tensors without memory. Inside, build, convert (to(type)) and
/// initialise modules as usual; tensors that name a device get memory there. Outside, using the module before it
/// is sharded throws InputError. Inside, reading values (item()) or using tensors of another zero::deferred()
/// throws InputError: build and initialise a module in one call. Random numbers depend on the main process's
/// generator at sharding, not on the number of processes or the stage. They differ from those of a module built
/// whole.
template <typename Build>
auto deferred(Build&& build) {
  const detail::DeferredBuild on_meta;
  return std::forward<Build>(build)();
}

}  // namespace zero
