#pragma once
// Deferred construction: a module without memory, for models that no process can hold whole.
//
//   auto net = zero::deferred([&] { return Net(config); });
//   zero::Sharded<Net> model(net, world, {.stage = 3});
//   auto optimizer = model.optimizer(...);      // computes each process's part, one parameter at a time
//
// The constructors run on LibTorch's Meta device, and what they do to tensors is written down. When the model is sharded,
// each parameter gets the values that its constructor gives it; model.load(path) before takes them from a file instead.
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

/// What build() returns, a module: its tensors have no memory. Inside, modules are built, converted (to(type)) and
/// initialised as ever; tensors that name a device are made there, with values. Outside, an operation on the module before it
/// is sharded throws InputError. So does build() for what reads values (item()), and for what uses the tensors of another
/// zero::deferred(): one builds a module and initialises it. Random numbers follow from the main process's generator when
/// the model is sharded, and are the same for any number of processes and any stage; they are others than those of the
/// same module built whole.
template <typename Build>
auto deferred(Build&& build) {
  const detail::DeferredBuild on_meta;
  return std::forward<Build>(build)();
}

}  // namespace zero
