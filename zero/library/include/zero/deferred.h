#pragma once
// Deferred construction: builds a module without allocating memory, for models that no single process can hold.
//
//   auto net = zero::deferred([&] { return Net(config); });
//   zero::Sharded<Net> model(net, world, {.stage = 3});
//   auto optimizer = model.optimizer(...);      // initialises each process's part, one parameter at a time
//
// The constructors run on LibTorch's Meta device, which records their operations on tensors. When the model is sharded,
// each parameter gets the values that its constructor defines. To read the values from a file instead, call
// model.load(path) first.
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

/// Returns the module that build() makes; its tensors have no memory. Inside build(), construct, convert (to(type)) and
/// initialise modules as usual. Tensors with an explicit device get memory on it. Reading values (item()) or using
/// tensors of another zero::deferred() throws InputError, so build and initialise a module in one call. Using the
/// module before it is sharded throws InputError too. Random values depend on the main process's generator at the time
/// of sharding, not on the number of processes or the stage. They differ from those of a module that is built without
/// zero::deferred().
template <typename Build>
auto deferred(Build&& build) {
  const detail::DeferredBuild on_meta;
  return std::forward<Build>(build)();
}

}  // namespace zero
