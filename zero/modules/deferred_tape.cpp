#include "zero/modules/deferred_tape.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/ScopeExit.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "zero/modules/parameter_watch.h"

namespace zero {
namespace {

/// The mark on a Meta storage.
struct Mark {
  std::shared_ptr<DeferredTape> tape;
  std::int64_t storage;
};

void free_mark(void* mark) { delete static_cast<Mark*>(mark); }

const Mark* mark_of(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return nullptr;
  const c10::DataPtr& pointer = tensor.storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks();
  return pointer.get_deleter() == &free_mark ? static_cast<const Mark*>(pointer.get_context()) : nullptr;
}

/// Calls visit(element, tensor) for the tensors in a value; `element` is -1 if the value itself is a tensor.
template <typename Visit>
void for_each_tensor(const c10::IValue& value, const Visit& visit) {
  if (value.isTensor()) return visit(-1, value.toTensor());
  if (!value.isList()) return;
  const auto list = value.toListRef();
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[i].isTensor()) visit(std::int64_t(i), list[i].toTensor());
}

/// Replaces the tensor at this element of the value.
void put_tensor(c10::IValue& value, std::int64_t element, const at::Tensor& tensor) {
  if (element < 0)
    value = tensor;
  else
    value.toList().set(std::size_t(element), tensor);
}

/// A view of this storage with the same geometry.
at::Tensor view_of(const c10::Storage& storage, const DeferredTensor& tensor) {
  return at::empty({0}, tensor.type).set_(storage, tensor.offset, tensor.sizes, tensor.strides);
}

/// True if the operation with these arguments makes or uses a Meta tensor.
bool is_deferred(const c10::FunctionSchema& schema, const torch::jit::Stack& arguments) {
  bool any = false, on_meta = false;
  for (const c10::IValue& argument : arguments)
    for_each_tensor(argument, [&](std::int64_t, const at::Tensor& tensor) {
      any |= tensor.defined();
      on_meta |= tensor.defined() && tensor.is_meta();
    });
  const auto device = schema.argumentIndexWithName("device");
  return any ? on_meta : device && arguments[std::size_t(*device)].isNone();
}

thread_local DeferredTape* recording = nullptr;

}  // namespace

struct DeferredTape::Impl {
  struct Place {
    std::size_t value = 0;      // index among arguments or results
    std::int64_t element = -1;  // index in a list
    DeferredTensor tensor;
    bool written = false;
  };
  struct Step {
    c10::OperatorHandle operation;
    torch::jit::Stack arguments;  // with the tensors removed
    std::vector<Place> tensors, made;
  };
  std::vector<Step> steps;
  std::vector<std::int64_t> bytes;  // by storage

  DeferredTensor note(const at::Tensor& tensor, DeferredTape& tape);
  std::vector<Place> take_tensors(const c10::FunctionSchema& schema, torch::jit::Stack& arguments, DeferredTape& tape);
  void record(const c10::OperatorHandle& operation, torch::jit::Stack* stack, DeferredTape& tape);
  std::set<std::size_t> steps_to(std::int64_t storage) const;
};

DeferredTape::DeferredTape() : impl_(std::make_unique<Impl>()) {}
DeferredTape::~DeferredTape() = default;

struct DeferredTape::Recording::Impl {
  std::shared_ptr<DeferredTape> tape = std::make_shared<DeferredTape>();
  c10::impl::IncludeDispatchKeyGuard sees_all{watch_key};
};
DeferredTape::Recording::Recording() {
  if (recording) return;
  impl_ = std::make_unique<Impl>();
  recording = impl_->tape.get();
}
DeferredTape::Recording::~Recording() {
  if (impl_) recording = nullptr;
}

std::shared_ptr<DeferredTape> DeferredTape::of(const at::Tensor& tensor) {
  const Mark* mark = mark_of(tensor);
  return mark ? mark->tape : nullptr;
}

DeferredTensor DeferredTape::tensor_of(const at::Tensor& tensor) {
  const Mark* mark = mark_of(tensor);
  ZERO_CHECK(mark, "a tensor of a tape");
  return {mark->storage,           tensor.sizes().vec(), tensor.strides().vec(),
          tensor.storage_offset(), tensor.scalar_type(), {}};
}

bool DeferredTape::call(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  if (recording) {
    recording->impl_->record(operation, stack, *recording);
    return true;
  }
  const std::size_t first = stack->size() - operation.schema().arguments().size();
  for (std::size_t i = first; i < stack->size(); ++i)
    for_each_tensor((*stack)[i], [&](std::int64_t, const at::Tensor& tensor) {
      if (mark_of(tensor))
        throw InputError(
            operation.schema().name() +
            " on a tensor of zero::deferred(), which has no values before its model is sharded: convert and "
            "initialise inside the zero::deferred() that builds it, and register what forward uses as parameter or "
            "buffer");
    });
  return false;
}

/// Returns the tape's record of the tensor, and adds one if there is none. Throws InputError for a tensor of another
/// tape.
DeferredTensor DeferredTape::Impl::note(const at::Tensor& tensor, DeferredTape& tape) {
  if (!tensor.is_meta()) return {.constant = tensor.detach().clone()};  // its current values
  const Mark* mark = mark_of(tensor);
  if (mark && mark->tape.get() != &tape)
    throw InputError(
        "a tensor of one zero::deferred() is used inside another one, which its model's values do not follow from: "
        "build and initialise a module inside one zero::deferred()");
  if (!mark) {
    c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
    auto fresh = std::make_unique<Mark>(Mark{tape.shared_from_this(), std::int64_t(bytes.size())});
    storage->set_data_ptr_noswap(c10::DataPtr(nullptr, fresh.release(), &free_mark, at::Device(at::kMeta)));
    bytes.push_back(std::int64_t(storage->nbytes()));
  }
  watch_parameter(tensor);
  return tensor_of(tensor);
}

/// Moves the tensors out of the arguments, so that steps keep no storage of a tape alive.
std::vector<DeferredTape::Impl::Place> DeferredTape::Impl::take_tensors(const c10::FunctionSchema& schema,
                                                                        torch::jit::Stack& arguments,
                                                                        DeferredTape& tape) {
  std::vector<Place> places;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto* alias = schema.arguments()[i].alias_info();
    if (arguments[i].isList()) arguments[i] = arguments[i].toList().copy();
    for_each_tensor(arguments[i], [&](std::int64_t element, const at::Tensor& tensor) {
      if (tensor.defined()) places.push_back({i, element, note(tensor, tape), alias && alias->isWrite()});
    });
  }
  for (const Place& place : places) put_tensor(arguments[place.value], place.element, at::Tensor());
  return places;
}

void DeferredTape::Impl::record(const c10::OperatorHandle& operation, torch::jit::Stack* stack, DeferredTape& tape) {
  const c10::FunctionSchema& schema = operation.schema();
  const std::size_t first = stack->size() - schema.arguments().size();
  Step step{operation, torch::jit::Stack(stack->begin() + std::ptrdiff_t(first), stack->end()), {}, {}};
  const c10::impl::ExcludeDispatchKeyGuard without(watch_key);
  if (!is_deferred(schema, step.arguments)) return operation.callBoxed(stack);
  step.tensors = take_tensors(schema, step.arguments, tape);
  const auto device = schema.argumentIndexWithName("device");
  if (step.tensors.empty() && device && (*stack)[first + std::size_t(*device)].isNone())
    (*stack)[first + std::size_t(*device)] = at::Device(at::kMeta);
  try {
    operation.callBoxed(stack);
  } catch (const c10::Error& error) {
    throw InputError(text(schema.name(), " inside zero::deferred(): ", error.what_without_backtrace(),
                          ". Tensors have no values there: leave out what reads them, or name a device (at::kCPU) for "
                          "small ones that must have some"));
  }
  const std::size_t results = stack->size() - schema.returns().size();
  for (std::size_t i = results; i < stack->size(); ++i)
    for_each_tensor((*stack)[i], [&](std::int64_t element, const at::Tensor& tensor) {
      if (!tensor.defined() || !tensor.is_meta()) return;
      const bool known = mark_of(tensor);
      const DeferredTensor noted = note(tensor, tape);
      if (!known) step.made.push_back({i - results, element, noted});
    });
  const bool writes = std::ranges::any_of(step.tensors, &Place::written);
  if (writes || !step.made.empty()) steps.push_back(std::move(step));
}

/// The steps that the values of a storage depend on.
std::set<std::size_t> DeferredTape::Impl::steps_to(std::int64_t storage) const {
  std::set<std::int64_t> wanted{storage};
  std::set<std::size_t> needed;
  for (std::size_t s = steps.size(); s-- > 0;) {
    const Step& step = steps[s];
    const auto is_wanted = [&](const Place& place) { return wanted.contains(place.tensor.storage); };
    const auto is_written = [&](const Place& place) { return place.written && is_wanted(place); };
    if (!std::ranges::any_of(step.made, is_wanted) && !std::ranges::any_of(step.tensors, is_written)) continue;
    needed.insert(s);
    for (const Place& place : step.tensors)
      if (place.tensor.storage >= 0) wanted.insert(place.tensor.storage);
  }
  return needed;
}

namespace {

/// Gives an operation its own generator. Most operations take it as an argument, some through another overload. The
/// others draw from the default generator, which is restored afterwards.
class OwnDraws {
 public:
  OwnDraws(c10::OperatorHandle operation, torch::jit::Stack& arguments, std::uint32_t seed)
      : operation_(std::move(operation)) {
    at::Generator own = at::detail::createCPUGenerator(seed);
    if (put(operation_.schema(), arguments, own) || !operation_.hasTag(at::Tag::nondeterministic_seeded)) return;
    const c10::OperatorName& name = operation_.operator_name();
    const std::string overload = name.overload_name.empty() ? "generator" : name.overload_name + "_generator";
    if (const auto other = c10::Dispatcher::singleton().findSchema({name.name, overload}))
      rearrange(*other, arguments, own);
    else
      seed_default(own);
  }
  ~OwnDraws() {
    if (before_.defined()) set_default(before_);
  }
  OwnDraws(const OwnDraws&) = delete;
  OwnDraws& operator=(const OwnDraws&) = delete;
  const c10::OperatorHandle& operation() const { return operation_; }

 private:
  static bool put(const c10::FunctionSchema& schema, torch::jit::Stack& arguments, const at::Generator& own) {
    const auto place = schema.argumentIndexWithName("generator");
    if (place) arguments[std::size_t(*place)] = own;
    return place.has_value();
  }
  void rearrange(const c10::OperatorHandle& other, torch::jit::Stack& arguments, const at::Generator& own) {
    torch::jit::Stack rearranged;
    for (const c10::Argument& argument : other.schema().arguments()) {
      const auto place = operation_.schema().argumentIndexWithName(argument.name());
      rearranged.push_back(place ? arguments[std::size_t(*place)] : c10::IValue(own));
    }
    arguments = std::move(rearranged);
    operation_ = other;
  }
  void seed_default(const at::Generator& own) {
    before_ = at::detail::getDefaultCPUGenerator().get_state();
    set_default(own.get_state());
  }
  static void set_default(const at::Tensor& state) {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_state(state);
  }

  c10::OperatorHandle operation_;
  at::Tensor before_;
};

}  // namespace

at::Tensor DeferredTape::values(const DeferredTensor& wanted, std::uint32_t seed) const {
  const at::NoGradGuard no_grad;
  std::map<std::int64_t, c10::Storage> storages;
  const auto real = [&](const DeferredTensor& tensor) {
    if (tensor.storage < 0) return tensor.constant;
    auto found = storages.find(tensor.storage);
    if (found == storages.end())
      found =
          storages.emplace(tensor.storage, at::empty({impl_->bytes[std::size_t(tensor.storage)]}, at::kByte).storage())
              .first;
    return view_of(found->second, tensor);
  };
  for (const std::size_t s : impl_->steps_to(wanted.storage)) {
    const Impl::Step& step = impl_->steps[s];
    torch::jit::Stack stack = step.arguments;
    for (c10::IValue& value : stack)
      if (value.isList()) value = value.toList().copy();
    for (const Impl::Place& place : step.tensors) put_tensor(stack[place.value], place.element, real(place.tensor));
    const OwnDraws draws(step.operation, stack, seed + std::uint32_t(s));
    draws.operation().callBoxed(stack);
    for (const Impl::Place& place : step.made)
      for_each_tensor(stack[place.value], [&](std::int64_t element, const at::Tensor& made) {
        if (element != place.element) return;
        const DeferredTensor& want = place.tensor;
        const bool as_it_is = made.strides() == at::IntArrayRef(want.strides) && made.storage_offset() == want.offset;
        const at::Tensor laid_out =
            as_it_is ? made : at::empty_strided(want.sizes, want.strides, want.type).copy_(made);
        storages.insert_or_assign(want.storage, laid_out.storage());
      });
  }
  return real(wanted);
}

}  // namespace zero
