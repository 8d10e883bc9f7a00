// LibTorch's operations on CUDA tensors, by its operations for the CPU. Every operation of the `aten` library
// that has both gets one boxed kernel. It finds the shapes of the results with the Meta backend, makes them,
// and queues the computation on the current stream. LibTorch's own operations stay for views, for allocation
// and for reading single values.
#include "tests/cuda/emulated/operations.h"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <set>

namespace zero::emulated {

Described::Described(const at::Tensor& tensor) {
  if (!tensor.defined()) return;
  if (!tensor.is_cuda()) {
    own_ = tensor.clone();
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) own_.unsafeGetTensorImpl()->set_wrapped_number(true);
    return;
  }
  data_ = tensor.numel() ? tensor.data_ptr() : nullptr;
  sizes_ = tensor.sizes().vec();
  strides_ = tensor.strides().vec();
  type_ = tensor.scalar_type();
  if (tensor.numel() == 0) own_ = at::empty_strided(sizes_, strides_, at::TensorOptions().dtype(type_));
}

at::Tensor Described::on_cpu() const {
  if (!data_) return own_;
  return at::from_blob(data_, sizes_, strides_, at::TensorOptions().dtype(type_));
}

void defer(const at::Tensor& on, std::function<void()> work) {
  Scheduler::get().enqueue(c10::cuda::getCurrentCUDAStream(on.get_device()).stream(),
                           {[work = std::move(work)] {
                              const at::AutoDispatchBelowADInplaceOrView below;
                              work();
                            },
                            {}});
}

void wait_and_run(const std::function<void()>& work) {
  c10::cuda::warn_or_error_on_sync();
  Scheduler::get().run_now(c10::cuda::getCurrentCUDAStream().stream(), [&] {
    const at::AutoDispatchBelowADInplaceOrView below;
    work();
  });
}

namespace {

using torch::jit::Stack;
using Tensors = std::vector<at::Tensor>;

/// An argument, with its tensors replaced by the results of `change`.
template <class Change>
c10::IValue changed(const c10::IValue& value, Change change) {
  if (value.isTensor()) return value.toTensor().defined() ? change(value.toTensor()) : value;
  if (value.isTensorList()) {
    Tensors all;
    for (const at::Tensor& tensor : value.toTensorVector()) all.push_back(change(tensor));
    return c10::IValue(all);
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> all;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector())
      all.push_back(tensor && tensor->defined() ? std::optional(change(*tensor)) : tensor);
    return c10::IValue(all);
  }
  return value;
}

at::Tensor as_meta(const at::Tensor& tensor) {
  at::Tensor meta =
      at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta).pinned_memory(false));
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) meta.unsafeGetTensorImpl()->set_wrapped_number(true);
  return meta;
}

/// One call of an operation.
class Call {
 public:
  Call(const c10::OperatorHandle& op, Stack& stack)
      : op_(op), schema_(op.schema()), args_(torch::jit::last(stack, schema_.arguments().size()).vec()) {
    torch::jit::drop(stack, schema_.arguments().size());
    for (const c10::IValue& arg : args_)
      changed(arg, [&](const at::Tensor& t) {
        if (t.defined() && t.is_cuda() && !any_.defined()) any_ = t;
        return t;
      });
  }

  void run(Stack& stack) {
    if (!any_.defined()) not_emulated(("no tensor of the device in " + toString(op_.operator_name())).c_str());
    if (returns_other_than_tensors() || !infer()) return run_at_once(stack);
    std::vector<std::vector<Described>> tensors(args_.size());
    for (std::size_t i = 0; i < args_.size(); ++i)
      changed(args_[i], [&](const at::Tensor& t) {
        tensors[i].emplace_back(t);
        return t;
      });
    std::vector<c10::IValue> plain = args_;
    for (c10::IValue& value : plain) value = without_tensors(value);
    std::vector<Described> results;
    for (const at::Tensor& result : results_) results.emplace_back(result);
    defer(any_, [op = op_, plain = std::move(plain), tensors = std::move(tensors), results = std::move(results)] {
      Stack inner;
      for (std::size_t i = 0; i < plain.size(); ++i) inner.push_back(filled(plain[i], tensors[i]));
      op.callBoxedForDispatchKey(c10::DispatchKey::CPU, inner);
      for (std::size_t i = 0; i < results.size(); ++i)
        if (const at::Tensor to = results[i].on_cpu(); to.defined() && inner[i].toTensor().defined())
          to.copy_(inner[i].toTensor());
    });
    push_results(stack);
  }

 private:
  bool returns_other_than_tensors() const {
    for (const c10::Argument& result : schema_.returns())
      if (result.type()->kind() != c10::TypeKind::TensorType) return true;
    return false;
  }
  bool writes(const c10::Argument& arg) const { return arg.alias_info() && arg.alias_info()->isWrite(); }
  bool writes_its_arguments() const {
    for (const c10::Argument& arg : schema_.arguments())
      if (writes(arg)) return true;
    return false;
  }

  /// Makes the results, empty, and gives outputs their sizes; false when Meta does not know the operation.
  bool infer() {
    const bool in_place = writes_its_arguments();
    if (in_place && schema_.name().back() == '_') return true;
    Stack meta;
    Tensors outputs, shapes;
    for (std::size_t i = 0; i < args_.size(); ++i) {
      meta.push_back(changed(args_[i], as_meta));
      if (meta.back().isDevice()) meta.back() = c10::IValue(at::Device(at::kMeta));
      if (writes(schema_.arguments()[i]) && args_[i].isTensor()) {
        outputs.push_back(args_[i].toTensor());
        shapes.push_back(meta.back().toTensor());
      }
    }
    try {
      const at::AutoDispatchBelowADInplaceOrView below;
      op_.callBoxedForDispatchKey(c10::DispatchKey::Meta, meta);
    } catch (const std::exception&) {
      return false;
    }
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i].sizes() != shapes[i].sizes()) outputs[i].resize_(shapes[i].sizes());
    if (in_place) return true;
    for (const c10::IValue& value : meta) {
      const at::Tensor shape = value.toTensor();
      results_.push_back(shape.defined()
                             ? at::empty_strided(shape.sizes(), shape.strides(), shape.options().device(any_.device()))
                             : at::Tensor());
    }
    return true;
  }

  /// Results that depend on values: the host waits.
  void run_at_once(Stack& stack) {
    if (environment("ZERO_EMULATED_VERBOSE", 0))
      std::fprintf(stderr, "emulated GPU: %s waits\n", toString(op_.operator_name()).c_str());
    Stack inner;
    wait_and_run([&] {
      for (const c10::IValue& arg : args_) {
        inner.push_back(changed(arg, [](const at::Tensor& t) { return t.is_cuda() ? Described(t).on_cpu() : t; }));
        if (inner.back().isDevice()) inner.back() = c10::IValue(at::Device(at::kCPU));
      }
      op_.callBoxedForDispatchKey(c10::DispatchKey::CPU, inner);
      if (writes_its_arguments()) return;
      for (c10::IValue& value : inner)
        value = changed(value, [&](const at::Tensor& t) {
          const at::Tensor up = at::empty_strided(t.sizes(), t.strides(), t.options().device(any_.device()));
          if (t.numel()) Described(up).on_cpu().copy_(t);
          return up;
        });
    });
    if (writes_its_arguments()) return push_results(stack);
    stack.insert(stack.end(), inner.begin(), inner.end());
  }

  void push_results(Stack& stack) const {
    if (!writes_its_arguments()) {
      for (const at::Tensor& result : results_) stack.push_back(result);
      return;
    }
    std::size_t left = schema_.returns().size();
    for (std::size_t i = 0; i < args_.size() && left > 0; ++i)
      if (writes(schema_.arguments()[i])) stack.push_back(args_[i]), --left;
  }

  static c10::IValue without_tensors(const c10::IValue& value) {
    if (value.isTensor()) return at::Tensor();
    if (value.isTensorList()) return Tensors(value.toTensorVector().size());
    return value.isDevice() ? c10::IValue(at::Device(at::kCPU)) : value;
  }

  static c10::IValue filled(const c10::IValue& value, const std::vector<Described>& tensors) {
    if (value.isTensor()) return tensors.empty() ? value : c10::IValue(tensors[0].on_cpu());
    std::size_t next = 0;
    return changed(value, [&](const at::Tensor&) { return tensors[next++].on_cpu(); });
  }

  c10::OperatorHandle op_;
  const c10::FunctionSchema& schema_;
  std::vector<c10::IValue> args_;
  at::Tensor any_;
  Tensors results_;
};

void on_emulated(const c10::OperatorHandle& op, Stack* stack) { Call(op, *stack).run(*stack); }

/// A copy between host and device waits for the stream unless the host's memory is pinned and the caller does not ask
/// for it.
at::Tensor& copy(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  if (self.is_same(source) || self.numel() == 0) return self;
  const at::Tensor& device = self.is_cuda() ? self : source;
  const at::Tensor& host = self.is_cuda() ? source : self;
  const bool pinned = !host.is_cuda() && MemoryMap::get().place_of(host.const_data_ptr()) == Place::pinned;
  // Between devices; and from pageable memory, which Described reads before the call returns.
  if (host.is_cuda() || (self.is_cuda() && non_blocking && !pinned)) {
    const Described to(self), from(source);
    defer(device, [to, from] { to.on_cpu().copy_(from.on_cpu()); });
    return self;
  }
  if (pinned && non_blocking) {
    const auto view = [](const at::Tensor& t) {
      return at::from_blob(t.data_ptr(), t.sizes(), t.strides(), at::TensorOptions().dtype(t.dtype()));
    };
    const Described on_device(device);
    const at::Tensor beside = view(host);
    const bool up = self.is_cuda();
    defer(device, [on_device, beside, up] {
      const at::Tensor ours = on_device.on_cpu();
      up ? ours.copy_(beside) : beside.copy_(ours);
    });
    at::getHostAllocator(at::kCUDA)->record_event(host.data_ptr(), host.storage().data_ptr().get_context(),
                                                  c10::cuda::getCurrentCUDAStream(device.get_device()).unwrap());
    return self;
  }
  wait_and_run([&] {
    (self.is_cuda() ? Described(self).on_cpu() : self).copy_(source.is_cuda() ? Described(source).on_cpu() : source);
  });
  return self;
}

/// True for operations that only make or name memory, or are composed of others.
bool stays(const c10::OperatorName& name, const c10::FunctionSchema& schema) {
  static const std::set<std::string> own = {"aten::empty",
                                            "aten::empty_strided",
                                            "aten::resize_",
                                            "aten::set_",
                                            "aten::_local_scalar_dense",
                                            "aten::record_stream",
                                            "aten::is_pinned",
                                            "aten::_pin_memory",
                                            "aten::_fused_sdp_choice",
                                            "aten::copy_",
                                            "aten::is_set_to"};
  if (own.count(name.name)) return true;
  for (const c10::Argument& result : schema.returns())
    if (result.alias_info() && !result.alias_info()->isWrite()) return true;  // a view
  return false;
}

void register_meta(torch::Library& library) {  // operations whose shapes LibTorch does not know
  library.impl("embedding_dense_backward",
               [](const at::Tensor& grad, const at::Tensor&, c10::SymInt rows, c10::SymInt, bool) {
                 return at::empty({rows.expect_int(), grad.size(-1)}, grad.options());
               });
  library.impl("index_select", [](const at::Tensor& self, std::int64_t dim, const at::Tensor& index) {
    std::vector<std::int64_t> sizes = self.sizes().vec();
    sizes[static_cast<std::size_t>(dim < 0 ? dim + self.dim() : dim)] = index.numel();
    return at::empty(sizes, self.options());
  });
}

class Silence final : public c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

/// All of it, when the library is loaded.
struct Registrations {
  std::vector<c10::RegistrationHandleRAII> boxed;
  torch::Library device{torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__};
  torch::Library meta{torch::Library::IMPL, "aten", c10::DispatchKey::Meta, __FILE__, __LINE__};

  Registrations() {
    Silence silence;  // LibTorch warns of kernels that are replaced
    const c10::WarningUtils::WarningHandlerGuard guard(&silence);
    register_meta(meta);
    register_attention(device);
    device.impl("copy_", copy);
    c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
      const auto op = dispatcher.findSchema(name);
      if (!op || name.name.rfind("aten::", 0) != 0 || stays(name, op->schema())) continue;
      if (!op->hasKernelForDispatchKey(c10::DispatchKey::CUDA) || !op->hasKernelForDispatchKey(c10::DispatchKey::CPU))
        continue;
      boxed.push_back(dispatcher.registerImpl(name, c10::DispatchKey::CUDA,
                                              c10::KernelFunction::makeFromBoxedFunction<&on_emulated>(), std::nullopt,
                                              nullptr, "emulated"));
    }
  }
};

const auto* registrations = new Registrations;  // never taken back

}  // namespace

}  // namespace zero::emulated
