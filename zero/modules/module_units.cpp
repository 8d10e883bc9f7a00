#include "zero/modules/module_units.h"

#include <ATen/ATen.h>
#include <fnmatch.h>
#include <torch/nn/modules/container/moduledict.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/sequential.h>

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "zero/core/buffers/flat_storage.h"

namespace zero {
namespace {

bool is_list(const torch::nn::Module& module) {
  return dynamic_cast<const torch::nn::ModuleListImpl*>(&module) ||
         dynamic_cast<const torch::nn::ModuleDictImpl*>(&module) ||
         dynamic_cast<const torch::nn::SequentialImpl*>(&module);
}

std::int64_t numel_of(const torch::nn::Module& module) {
  std::int64_t numel = 0;
  for (const at::Tensor& parameter : module.parameters()) numel += parameter.defined() ? parameter.numel() : 0;
  return numel;
}

/// Number of parameter elements in lists inside the module.
std::int64_t numel_in_lists(const torch::nn::Module& module) {
  std::int64_t numel = 0;
  for (const auto& child : module.children()) numel += is_list(*child) ? numel_of(*child) : numel_in_lists(*child);
  return numel;
}

/// True for modules such as TransformerEncoder, a list of layers and a norm.
bool is_mostly_lists(const torch::nn::Module& module) { return 2 * numel_in_lists(module) > numel_of(module); }

std::string joined(const std::string& path, const std::string& name) { return path.empty() ? name : path + "." + name; }

struct Found {
  std::string unit, name;  // full names
  at::Tensor tensor;
};

/// Walks the module tree from the root and records which patterns matched.
class Walk {
 public:
  explicit Walk(const std::vector<std::string>& patterns) : patterns_(patterns), matched_(patterns.size(), false) {}

  /// `opens`: children become units, and so do the children of containers. `above`: patterns that match a module around
  /// this one.
  void visit(const torch::nn::Module& module, const std::string& path, const std::string& unit, bool opens,
             const std::set<std::size_t>& above = {}) {
    for (const auto& parameter : module.named_parameters(/*recurse=*/false))
      if (parameter.value().defined()) found_.push_back({unit, joined(path, parameter.key()), parameter.value()});
    for (const auto& child : module.named_children()) {
      const std::string child_path = joined(path, child.key());
      const bool list = is_list(*child.value());
      const bool container = list || (!is_list(module) && is_mostly_lists(*child.value()));
      const std::vector<std::size_t> matching = matches(child_path);
      // A pattern's * matches dots too, so a match inside a matching module belongs to the outer one.
      std::set<std::size_t> around = above;
      around.insert(matching.begin(), matching.end());
      const bool begins = patterns_.empty() ? opens && !list : around.size() > above.size();  // also in a container
      const std::size_t before = found_.size();
      visit(*child.value(), child_path, begins ? child_path : unit, opens && container, around);
      if (found_.size() > before)
        for (const std::size_t p : matching) matched_[p] = true;
    }
  }
  const std::vector<Found>& found() const { return found_; }
  void check_patterns() const {
    for (std::size_t p = 0; p < patterns_.size(); ++p)
      if (!matched_[p])
        throw InputError(text(
            "units: \"", patterns_[p],
            "\" matches no module with parameters; patterns are of full names as named_modules() has them, with * ? "
            "[..]"));
  }

 private:
  std::vector<std::size_t> matches(const std::string& path) const {
    std::vector<std::size_t> matching;
    for (std::size_t p = 0; p < patterns_.size(); ++p)
      if (fnmatch(patterns_[p].c_str(), path.c_str(), 0) == 0) matching.push_back(p);
    return matching;
  }

  const std::vector<std::string>& patterns_;
  std::vector<bool> matched_;
  std::vector<Found> found_;
};

void check_tensor(const Found& found, const Found& first) {
  const at::Tensor& tensor = found.tensor;
  const auto refuse = [&](const std::string& what) { throw InputError("parameter " + found.name + " " + what); };
  if (FlatStorage::owner_of(tensor))
    refuse("belongs to another sharded model: a module is sharded once; give this one a module of its own");
  if (tensor.layout() != at::kStrided) refuse("is sparse: sharded parameters are dense");
  if (!at::isFloatingType(tensor.scalar_type()))
    refuse(text("is of type ", tensor.scalar_type(),
                ": parameters that are sharded are of floating types; make it a buffer (register_buffer)"));
  if (!tensor.is_leaf()) refuse("is no leaf: it was computed from other tensors; register the leaf that it comes from");
  if (tensor.scalar_type() != first.tensor.scalar_type())
    refuse(text("is of type ", tensor.scalar_type(), " and ", first.name, " of ", first.tensor.scalar_type(),
                ": make them one type with module->to(type) before sharding"));
  if (tensor.is_meta() != first.tensor.is_meta())
    refuse(text("is on ", tensor.device(), " and ", first.name, " on ", first.tensor.device(),
                ": build the whole module inside zero::deferred(), and name no device there"));
  if (tensor.device() != first.tensor.device())
    refuse(text("is on ", tensor.device(), " and ", first.name, " on ", first.tensor.device(),
                ": move the module with module->to(world.device()) before sharding"));
}

/// The bytes from a tensor's first element to the end of its last one, with any strides.
struct ByteRange {
  const void* storage;  // set on Meta, where positions are within a storage; else null, and positions are addresses
  std::intptr_t begin, end;

  auto operator<=>(const ByteRange&) const = default;
  bool meets(const ByteRange& o) const { return storage == o.storage && begin < o.end && o.begin < end; }
};

ByteRange bytes_of(const at::Tensor& tensor) {
  const auto size = std::int64_t(tensor.element_size());
  std::int64_t last = 0;
  for (std::int64_t d = 0; d < tensor.dim(); ++d) last += (tensor.size(d) - 1) * tensor.stride(d);
  const void* storage = tensor.is_meta() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
  const std::intptr_t begin = storage ? std::intptr_t(tensor.storage_offset() * size)
                                      : reinterpret_cast<std::intptr_t>(tensor.const_data_ptr());
  return {storage, begin, begin + (last + 1) * size};
}

bool has_bytes(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided && tensor.numel() > 0;
}

/// Throws InputError for a buffer that shares a parameter's elements, since it would keep the old values.
void check_buffers(const torch::nn::Module& module, const std::vector<Found>& distinct) {
  for (const auto& buffer : module.named_buffers()) {
    if (!has_bytes(buffer.value())) continue;
    if (FlatStorage::owner_of(buffer.value()))
      throw InputError(
          "buffer " + buffer.key() +
          " is a view of a parameter of another sharded model, whose memory comes and goes: make it a copy "
          "with clone()");
    const ByteRange bytes = bytes_of(buffer.value());
    for (const Found& found : distinct)
      if (has_bytes(found.tensor) && bytes.meets(bytes_of(found.tensor)))
        throw InputError("buffer " + buffer.key() + " shares memory with parameter " + found.name +
                         ", and would not follow it: take the parameter itself where it is used, or make the buffer a "
                         "copy with clone()");
  }
}

/// Throws InputError for two parameters that share elements, since they would be trained as if they were separate.
void check_memory(const std::vector<Found>& distinct) {
  struct Place {
    ByteRange bytes;
    const Found* found;
  };
  std::vector<Place> places;
  for (const Found& found : distinct)
    if (has_bytes(found.tensor)) places.push_back({bytes_of(found.tensor), &found});
  std::ranges::stable_sort(places, {}, &Place::bytes);
  for (std::size_t p = 1; p < places.size(); ++p)
    if (places[p - 1].bytes.meets(places[p].bytes))
      throw InputError("parameters " + places[p - 1].found->name + " and " + places[p].found->name +
                       " share memory and are two tensors: register the same tensor under both names");
}

}  // namespace

namespace {

constexpr const char* root_unit = "the module itself";
constexpr std::int64_t small_unit = 1 << 20;  // bytes; a smaller unit need not be split

std::int64_t numel_of(const ParameterUnit& unit) {
  std::int64_t numel = 0;
  for (const Parameter& parameter : unit.parameters()) numel += parameter.numel();
  return numel;
}

}  // namespace

class ModuleUnits::Unit final : public ParameterUnit {
 public:
  using ParameterUnit::ParameterUnit;
  void add(const std::string& name, const at::Tensor& tensor) {
    Parameter parameter;
    parameter.parts.push_back({name, tensor.sizes().vec()});
    parameter.trainable = tensor.requires_grad();
    parameter.tensor = tensor;
    parameter.given = true;
    parameters_.push_back(std::move(parameter));
  }
};

ModuleUnits::ModuleUnits(const torch::nn::Module& module, const std::vector<std::string>& patterns) {
  Walk walk(patterns);
  walk.visit(module, "", "", true);
  walk.check_patterns();
  if (walk.found().empty()) throw InputError("the module " + module.name() + " has no parameters to shard");
  std::vector<Found> distinct;
  std::map<const c10::TensorImpl*, std::string> names;
  std::map<std::string, Unit*> units;
  for (const Found& found : walk.found()) {
    const auto [first, fresh] = names.emplace(found.tensor.unsafeGetTensorImpl(), found.name);
    parameters_.push_back({found.name, found.tensor, first->second});
    if (!fresh) continue;
    check_tensor(found, walk.found().front());
    distinct.push_back(found);
    Unit*& unit = units[found.unit];
    if (!unit) {
      units_.push_back(std::make_unique<Unit>(found.unit.empty() ? root_unit : found.unit));
      unit = static_cast<Unit*>(units_.back().get());
    }
    unit->add(found.name, found.tensor);
  }
  check_memory(distinct);
  check_buffers(module, distinct);
  type_ = distinct.front().tensor.scalar_type();
  device_ = distinct.front().tensor.device();
}

void ModuleUnits::freeze() {
  for (const auto& unit : units_)
    for (Parameter& parameter : unit->parameters()) parameter.trainable = false;
}

namespace {

/// The unit pattern that splits the named module into its children, or into those of the child that holds most of it;
/// empty if none.
std::string parting_pattern(std::string path, const std::vector<Parameter>& parameters) {
  for (;;) {
    const std::string prefix = path.empty() ? "" : path + ".";
    std::int64_t all = 0;
    std::map<std::string, std::int64_t> children;
    std::set<std::string> with_children;
    for (const Parameter& parameter : parameters) {
      const std::string& name = parameter.parts.front().name;
      if (!name.starts_with(prefix)) continue;
      all += parameter.numel();
      const std::size_t dot = name.find('.', prefix.size());
      if (dot == std::string::npos) continue;
      const std::string child = name.substr(prefix.size(), dot - prefix.size());
      children[child] += parameter.numel();
      if (name.find('.', dot + 1) != std::string::npos) with_children.insert(child);
    }
    if (children.empty()) return "";
    const auto largest = std::ranges::max_element(children, {}, [](const auto& child) { return child.second; });
    if (2 * largest->second <= all || !with_children.contains(largest->first)) return prefix + "*";
    path = prefix + largest->first;
  }
}

}  // namespace

std::optional<std::string> ModuleUnits::large_unit() const {
  std::int64_t all = 0;
  for (const auto& unit : units_) all += numel_of(*unit);
  for (const auto& unit : units_) {
    const std::int64_t numel = numel_of(*unit), bytes = numel * std::int64_t(c10::elementSize(type_));
    if (2 * numel <= all || bytes < small_unit) continue;
    const std::string pattern = parting_pattern(unit->name() == root_unit ? "" : unit->name(), unit->parameters());
    if (!pattern.empty())
      return text("unit ", unit->name(), " holds ", 100 * numel / all,
                  " % of the parameters, and stage 3 gathers all of them at once. Make units of its parts: "
                  "ShardOptions{.units = {\"",
                  pattern, "\"}}");
  }
  return std::nullopt;
}

std::vector<std::string> ModuleUnits::names() const {
  std::vector<std::string> names;
  for (const auto& unit : units_) names.push_back(unit->name());
  return names;
}

Units ModuleUnits::units() const {
  Units units;
  for (const auto& unit : units_) units.push_back(unit.get());
  return units;
}

}  // namespace zero
