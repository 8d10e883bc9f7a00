#include "zero/core/model_states.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/AutogradState.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "zero/optim/kernels/device_step.h"

namespace zero {

ShardPlan plan_on(const MeshShape& mesh, const StatesOptions& options) {
  options.plan.stage();  // throws if the placements match no stage
  const bool alone = mesh.size(axes::states | MeshAxis::tensor) == 1;
  return alone && !options.offload.weights ? ShardPlan::for_stage(0) : options.plan;
}

ModelStates::ModelStates(const Units& units, Mesh& mesh, const StatesOptions& options)
    : mesh_(mesh),
      options_(options),
      groups_{.units = units,
              .gather_stream = SideStream(options.device, true),
              .reduce_stream = SideStream(options.device, true),
              .overlap = options.overlap} {
  check_runs();
  // The backward hooks then run on the thread that calls backward, which owns the rank's communicators.
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
  options_.plan = plan_on(mesh.shape(), options);
  ZERO_CHECK(!options.storage.split_master ||
                 (options.precision.compute == at::kBFloat16 && options.precision.master == at::kFloat),
             "fp32 masters are split over bf16 weights");
  const bool divided = options_.plan.optimizer == Placement::sharded, sliced = mesh.size(MeshAxis::tensor) > 1;
  const AxisSet sharing = divided ? axes::states : axes::tokens;
  replicas_ = divided ? axes::replicas : AxisSet();
  check_order();
  whole_ = make_sharing(sliced ? sharing | MeshAxis::tensor : sharing);
  if (sliced) slices_ = make_sharing(sharing);
  if (sliced) groups_.tensor_ranks = &mesh.along(MeshAxis::tensor);
  if (mesh.size(MeshAxis::context) > 1) groups_.context_ranks = &mesh.along(MeshAxis::context);
  norm_ranks();  // created here because all ranks must take part
  statistics_ranks();
  mesh_.along(MeshAxis::pipeline);
  make_groups();
  start_optimizers();
  if (!on_device()) return;
  numbers_ = at::zeros({StepNumbers::count}, at::TensorOptions().dtype(at::kDouble).device(options_.device));
  norm_scratch_ = at::zeros({device_norm_blocks}, numbers_.options());
}

ModelStates::~ModelStates() = default;

void ModelStates::check_runs() const {
  const std::vector<UnitRun>& runs = options_.runs;
  const int stages = mesh_.size(MeshAxis::pipeline);
  if (stages > 1 && runs.empty())
    throw InputError("a mesh of " + mesh_.shape().describe() +
                     ": only a chain of units can be dealt out to its stages: use the other axes");
  if (stages > 1 && on_device())
    throw InputError("[parallel] pipeline: runs on CPUs so far; use the other axes on GPUs");
  int end = 0;
  for (const UnitRun& run : runs) {
    ZERO_CHECK(run.begin == end && run.end > run.begin && run.stage >= 0 && run.stage < stages,
               "runs hold all units in order, each on a stage of the mesh");
    end = run.end;
  }
  ZERO_CHECK(runs.empty() || end == int(groups_.units.size()), "runs hold all units");
}

void ModelStates::check_order() const {
  if (!options_.sums_in_order) return;
  ZERO_CHECK(mesh_.size({MeshAxis::context, MeshAxis::tensor}) == 1,
             "sums in order are those of ranks with whole rows and tensors");
  ZERO_CHECK(mesh_.size(replicas_) == 1 || std::has_single_bit(unsigned(mesh_.size(axes::tokens))),
             "sums in order over replicas are those of a power of two of ranks");
  ZERO_CHECK(options_.precision.gradient == options_.precision.sum, "sums in order are rounded to their own type only");
}

std::vector<GroupLayout> ModelStates::lay_out_groups() const {
  LayoutOptions layout{options_.plan, options_.precision, mesh_.size(whole_.axes)};
  if (slices_) layout.shards_of_cut = mesh_.size(slices_->axes);
  layout.stores_weights = bool(options_.offload.weights);
  layout.keep_frozen = options_.keep_frozen;
  layout.frozen = options_.frozen;
  layout.grain = optimizers_.grain(options_.precision.master);
  layout.device = options_.device;
  layout.order = options_.order;
  layout.runs = options_.runs;
  if (options_.sums_in_order) layout.summed_in_order = options_.micro_batches;
  return lay_out(groups_.units, layout);
}

ModelStates::Sharing ModelStates::make_sharing(AxisSet axes) {
  Sharing sharing{axes, &mesh_.along(axes)};
  if (options_.overlap) sharing.reductions = mesh_.another(axes);
  return sharing;
}

void ModelStates::make_buffers(const std::vector<GroupLayout>& layouts, Sharing& sharing) {
  const BufferSizes sizes = options_.order == UnitOrder::chain
                                ? buffer_sizes(groups_.units, layouts, options_.overlap)
                                : buffer_sizes_of_any(layouts, options_.open_groups, options_.overlap);
  reserve(layouts, sizes, sharing);
  if (!sizes.gather.empty()) sharing.gather_buffers = std::make_unique<BufferPool>(*sharing.ranks, sizes.gather);
  if (!sizes.reduce.empty()) sharing.reduce_buffers = std::make_unique<BufferPool>(sharing.sums(), sizes.reduce);
}

// Reserves all memory that collectives read and write: buffers, and the vectors that groups hold at rest.
void ModelStates::reserve(const std::vector<GroupLayout>& layouts, const BufferSizes& buffers, Sharing& sharing) {
  std::vector<std::int64_t> gathered = buffers.gather, summed = buffers.reduce;
  std::int64_t largest_sum = 0;
  for (const GroupLayout& group : layouts) {
    const bool stored = options_.offload.weights && group.weights == Placement::sharded;
    if (!stored) gathered.push_back(group.format->rest_bytes());
    if (group.spec.trainable) summed.push_back(group.rest_gradient_bytes());
    summed.insert(summed.end(), std::size_t(group.rungs), group.rung_bytes());
    largest_sum = std::max(largest_sum, group.summed_bytes());
  }
  if (sharing.reductions) {
    sharing.ranks->memory().reserve(gathered, 0);
    sharing.sums().memory().reserve(summed, largest_sum);
  } else {
    gathered.insert(gathered.end(), summed.begin(), summed.end());
    sharing.ranks->memory().reserve(gathered, largest_sum);
  }
}

void ModelStates::make_store(const std::vector<GroupLayout>& layouts) {
  if (!options_.offload.weights || options_.plan.parameters == Placement::resident) return;
  std::vector<std::int64_t> bytes;
  for (const GroupLayout& group : layouts)
    bytes.push_back(group.weights == Placement::sharded && group.spec.stage == stage() ? group.format->rest_bytes()
                                                                                       : 0);
  weight_store_ = options_.offload.weights(bytes);
}

GroupContext ModelStates::make_context(Sharing& sharing) {
  GroupContext context{.options = &options_};
  context.weights = {sharing.gather_buffers.get(), &groups_.gather_stream};
  context.gradients = {sharing.reduce_buffers.get(), &groups_.reduce_stream};
  context.sharing = sharing.ranks;
  context.sums = &sharing.sums();
  context.replicas = &mesh_.along(replicas_);
  context.slices = &mesh_.along(MeshAxis::tensor);
  context.weight_store = weight_store_.get();
  context.optimizers = &optimizers_;
  context.optimizer_tensors = &optimizer_tensors_;
  context.stage = stage();
  return context;
}

void ModelStates::make_groups() {
  const std::vector<GroupLayout> layouts = lay_out_groups();
  const auto of = [&](bool cut) {
    std::vector<GroupLayout> found;
    for (const GroupLayout& layout : layouts)
      if (layout.spec.cut == cut && layout.spec.stage == stage()) found.push_back(layout);
    return found;
  };
  make_buffers(of(false), whole_);
  if (slices_) make_buffers(of(true), *slices_);
  make_store(layouts);
  const GroupContext whole = make_context(whole_), slices = slices_ ? make_context(*slices_) : whole;
  for (std::size_t g = 0; g < layouts.size(); ++g)
    groups_.groups.push_back(
        std::make_unique<ParameterGroup>(int(g), layouts[g], groups_.units, layouts[g].spec.cut ? slices : whole));
  find_users();
}

void ModelStates::find_users() {
  const std::size_t runs = std::max<std::size_t>(1, options_.runs.size());
  groups_.needed_by.resize(groups_.units.size());
  groups_.spanning.resize(runs);
  groups_.in_step.resize(runs);
  for (const auto& group : groups_.groups) {
    const GroupSpec& spec = group->spec();
    if (!group->is_here()) continue;
    groups_.gathers |= group->weights().comes_and_goes();
    (spec.spans_model() ? groups_.spanning[std::size_t(spec.run)] : groups_.needed_by[spec.unit])
        .push_back(group.get());
  }
  for (std::size_t u = 0; u < groups_.units.size(); ++u)
    for (const BorrowedParameter& borrowed : groups_.units[u]->borrowed())
      for (const auto& group : groups_.groups)
        if (group->is_here() && !group->spec().spans_model() &&
            group->owns({borrowed.owner_unit, borrowed.owner_parameter}))
          groups_.needed_by[u].push_back(group.get());
}

std::int64_t ModelStates::peak_device_bytes() const {
  if (!on_device()) return 0;
  const auto allocated =
      at::getDeviceAllocator(options_.device.type())->getDeviceStats(options_.device.index()).allocated_bytes[0].peak;
  std::int64_t own = mesh_.own_device_bytes();
  if (whole_.reductions) own += whole_.reductions->memory().own_device_bytes();
  if (slices_ && slices_->reductions) own += slices_->reductions->memory().own_device_bytes();
  return allocated + own;
}

std::int64_t ModelStates::gather_buffer_bytes() const {
  std::int64_t bytes = whole_.gather_buffers ? whole_.gather_buffers->bytes() : 0;
  if (slices_ && slices_->gather_buffers) bytes += slices_->gather_buffers->bytes();
  return bytes;
}

std::int64_t ModelStates::reduce_buffer_bytes() const {
  std::int64_t bytes = whole_.reduce_buffers ? whole_.reduce_buffers->bytes() : 0;
  if (slices_ && slices_->reduce_buffers) bytes += slices_->reduce_buffers->bytes();
  return bytes;
}

void ModelStates::load(WeightSource& source, bool frozen_only) {
  groups_.end_passes();
  for (const auto& group : groups_.groups)
    if (group->is_here() && (!frozen_only || !group->spec().trainable)) group->load(source);
}

namespace {

struct ExportedTensor {
  ParameterGroup* group = nullptr;
  int unit = 0, parameter = 0;
  TensorSpec spec;
  bool is_joined = false;  // of the slices of several ranks
  at::Tensor value = {};
};

/// Returns the groups by unit; groups that span the model are together.
std::vector<std::vector<ParameterGroup*>> by_unit(const std::vector<ParameterGroup*>& groups) {
  std::vector<std::vector<ParameterGroup*>> units;
  for (ParameterGroup* group : groups) {
    if (units.empty() || units.back().front()->spec().unit != group->spec().unit) units.emplace_back();
    units.back().push_back(group);
  }
  return units;
}

std::vector<ExportedTensor> tensors_of(const std::vector<ParameterGroup*>& groups) {
  std::vector<ExportedTensor> tensors;
  for (ParameterGroup* group : groups)
    for (const FlatTensor& tensor : group->layout().tensors()) {
      const ParameterRef member = group->spec().members[std::size_t(tensor.parameter)];
      tensors.push_back({group, member.unit, member.parameter, tensor.spec.full(), tensor.spec.cut.has_value()});
    }
  return tensors;
}

/// Whole parameters and slices are in separate groups, but files have the order of the unit's parameters.
void sort_by_parameter(std::vector<ExportedTensor>& tensors) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const ExportedTensor& a, const ExportedTensor& b) {
    return std::pair(a.unit, a.parameter) < std::pair(b.unit, b.parameter);
  });
}

}  // namespace

std::vector<ParameterGroup*> ModelStates::exported_groups(bool trainable_only) const {
  std::vector<ParameterGroup*> exported;
  for (const auto& group : groups_.groups)
    if (group->spec().trainable || !trainable_only) exported.push_back(group.get());
  return exported;
}

std::int64_t ModelStates::export_bytes(bool trainable_only) const {
  std::int64_t most = 0;
  for (const auto& groups : by_unit(exported_groups(trainable_only))) {
    std::int64_t flat = 0, gathered = 0, full = 0;  // a group's vectors, slices of a tensor, tensors that wait
    for (const ParameterGroup* group : groups) {
      flat = std::max(flat, group->export_bytes());
      const auto element = std::int64_t(c10::elementSize(group->exported_type()));
      for (const FlatTensor& tensor : group->layout().tensors()) {
        const std::int64_t bytes = element * tensor.spec.full().numel();
        if (tensor.spec.cut || !group->is_here()) gathered = std::max(gathered, bytes);
        full = slices_ && groups.size() > 1 ? full + bytes : tensor.spec.cut ? std::max(full, bytes) : full;
      }
    }
    most = std::max(most, flat + gathered + full);
  }
  return most;
}

std::vector<TensorSpec> ModelStates::exported_tensors(bool trainable_only) const {
  std::vector<TensorSpec> specs;
  for (const auto& groups : by_unit(exported_groups(trainable_only))) {
    std::vector<ExportedTensor> tensors = tensors_of(groups);
    if (slices_) sort_by_parameter(tensors);
    for (ExportedTensor& tensor : tensors) specs.push_back(std::move(tensor.spec));
  }
  return specs;
}

// Every pipeline stage gets the tensors of the other stages too.
void ModelStates::export_group(ParameterGroup& group, const Export& of_group, const ParameterGroup::TensorSink& sink) {
  Communicator& stages = mesh_.along(MeshAxis::pipeline);
  if (stages.size() == 1) return of_group.run(group, sink);
  const CallTag tag{Phase::save};
  if (group.is_here()) {
    of_group.run(group, [&](const TensorSpec& spec, const at::Tensor& value) {
      stages.broadcast(value.contiguous().view({-1}), stages.rank(), tag);
      sink(spec, value);
    });
  } else {
    for (const FlatTensor& tensor : group.layout().tensors()) {
      const TensorSpec full = tensor.spec.full();
      const at::Tensor value = at::empty(full.shape, of_group.type(group));
      stages.broadcast(value.view({-1}), group.spec().stage, tag);
      sink(full, value);
    }
  }
}

void ModelStates::export_in_order(const std::vector<ParameterGroup*>& exported, const Export& of_group,
                                  const ParameterGroup::TensorSink& sink) {
  mesh_.ranks().failures().check();
  for (const auto& groups : by_unit(exported)) {
    if (!slices_ || groups.size() == 1) {
      for (ParameterGroup* group : groups) export_group(*group, of_group, sink);
      continue;
    }
    std::vector<ExportedTensor> tensors = tensors_of(groups);
    auto next = tensors.begin();
    for (ParameterGroup* group : groups)
      export_group(*group, of_group, [&](const TensorSpec&, const at::Tensor& value) {
        next->value = next->is_joined ? value : value.clone();  // of the group's vector
        ++next;
      });
    sort_by_parameter(tensors);
    for (const ExportedTensor& tensor : tensors) sink(tensor.spec, tensor.value);
  }
}

void ModelStates::export_weights(const ParameterGroup::TensorSink& sink, bool trainable_only) {
  export_in_order(exported_groups(trainable_only),
                  {[](ParameterGroup& group, const auto& to) { group.export_weights(to); },
                   [](const ParameterGroup& group) { return group.exported_type(); }},
                  sink);
}

void ModelStates::export_gradients(const ParameterGroup::TensorSink& sink) {
  export_in_order(exported_groups(/*trainable_only=*/true),
                  {[](ParameterGroup& group, const auto& to) { group.export_gradients(to); },
                   [](const ParameterGroup& group) { return group.gradient_type(); }},
                  sink);
}

}  // namespace zero
