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
  options.plan.stage();  // or none
  return mesh.size(axes::states) == 1 && !options.offload.weights ? ShardPlan::for_stage(0) : options.plan;
}

ModelStates::ModelStates(const Units& units, Mesh& mesh, const StatesOptions& options)
    : mesh_(mesh),
      options_(options),
      groups_{.units = units,
              .gather_stream = SideStream(options.device, true),
              .reduce_stream = SideStream(options.device, true),
              .overlap = options.overlap} {
  if (mesh.size({MeshAxis::pipeline, MeshAxis::context}) > 1)
    throw InputError("a mesh of " + mesh.shape().describe() +
                     ": an engine runs all units on every rank, and all tokens of a row: use the other axes");
  // The backward hooks then run on the thread that calls backward, which owns the rank's communicators.
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
  options_.plan = plan_on(mesh.shape(), options);
  check_order();
  ZERO_CHECK(!options.storage.split_master ||
                 (options.precision.compute == at::kBFloat16 && options.precision.master == at::kFloat),
             "fp32 masters are split over bf16 weights");
  const bool divided = options_.plan.optimizer == Placement::sharded;
  sharing_ = divided ? axes::states : axes::tokens;
  replicas_ = divided ? axes::replicas : AxisSet();
  norm_ranks();  // made here, on all ranks
  if (options_.overlap) reductions_ = mesh_.another(sharing_);
  make_groups();
  start_optimizers();
  if (!on_device()) return;
  numbers_ = at::zeros({StepNumbers::count}, at::TensorOptions().dtype(at::kDouble).device(options_.device));
  norm_scratch_ = at::zeros({device_norm_blocks}, numbers_.options());
}

ModelStates::~ModelStates() = default;

void ModelStates::check_order() const {
  if (!options_.sums_in_order) return;
  const auto ranks = unsigned(mesh_.size(axes::tokens));
  ZERO_CHECK(std::has_single_bit(ranks) && mesh_.size(axes::model) == 1,
             "sums in order are those of a power of two of ranks that hold whole tensors");
  ZERO_CHECK(options_.precision.gradient == options_.precision.sum, "sums in order are rounded to their own type only");
}

std::vector<GroupLayout> ModelStates::lay_out_groups() const {
  LayoutOptions layout{options_.plan, options_.precision, mesh_.size(sharing_)};
  layout.keep_frozen = options_.keep_frozen;
  layout.frozen = options_.frozen;
  layout.grain = optimizers_.grain(options_.precision.master);
  layout.device = options_.device;
  layout.order = options_.order;
  if (options_.sums_in_order) layout.summed_in_order = options_.micro_batches;
  return lay_out(groups_.units, layout);
}

void ModelStates::make_buffers(const std::vector<GroupLayout>& layouts) {
  const BufferSizes sizes = options_.order == UnitOrder::chain
                                ? buffer_sizes(groups_.units, layouts, options_.overlap)
                                : buffer_sizes_of_any(layouts, options_.open_groups, options_.overlap);
  reserve(layouts, sizes);
  if (!sizes.gather.empty()) gather_buffers_ = std::make_unique<BufferPool>(gathers(), sizes.gather);
  if (!sizes.reduce.empty()) reduce_buffers_ = std::make_unique<BufferPool>(sums(), sizes.reduce);
}

// All that collectives read and write beside passing values: buffers, and what groups keep at rest.
void ModelStates::reserve(const std::vector<GroupLayout>& layouts, const BufferSizes& buffers) {
  std::vector<std::int64_t> gathered = buffers.gather, summed = buffers.reduce;
  std::int64_t largest_sum = 0;
  for (const GroupLayout& group : layouts) {
    const bool stored = options_.offload.weights && group.weights == Placement::sharded;
    if (!stored) gathered.push_back(group.format->rest_bytes());
    if (group.spec.trainable) summed.push_back(group.rest_gradient_bytes());
    summed.insert(summed.end(), std::size_t(group.rungs), group.rung_bytes());
    largest_sum = std::max(largest_sum, group.summed_bytes());
  }
  if (reductions_) {
    gathers().memory().reserve(gathered, 0);
    sums().memory().reserve(summed, largest_sum);
  } else {
    gathered.insert(gathered.end(), summed.begin(), summed.end());
    gathers().memory().reserve(gathered, largest_sum);
  }
}

void ModelStates::make_store(const std::vector<GroupLayout>& layouts) {
  if (!options_.offload.weights || options_.plan.parameters == Placement::resident) return;
  std::vector<std::int64_t> bytes;
  for (const GroupLayout& group : layouts)
    bytes.push_back(group.weights == Placement::sharded ? group.format->rest_bytes() : 0);
  weight_store_ = options_.offload.weights(bytes);
}

GroupContext ModelStates::make_context() {
  GroupContext context{.options = &options_};
  context.weights = {gather_buffers_.get(), &groups_.gather_stream};
  context.gradients = {reduce_buffers_.get(), &groups_.reduce_stream};
  context.sharing = &gathers();
  context.sums = &sums();
  context.replicas = &mesh_.along(replicas_);
  context.slices = &mesh_.along(MeshAxis::tensor);
  context.weight_store = weight_store_.get();
  context.optimizers = &optimizers_;
  context.optimizer_tensors = &optimizer_tensors_;
  return context;
}

void ModelStates::make_groups() {
  const std::vector<GroupLayout> layouts = lay_out_groups();
  make_buffers(layouts);
  make_store(layouts);
  const GroupContext context = make_context();
  for (std::size_t g = 0; g < layouts.size(); ++g)
    groups_.groups.push_back(std::make_unique<ParameterGroup>(int(g), layouts[g], groups_.units, context));
  find_users();
}

void ModelStates::find_users() {
  groups_.needed_by.resize(groups_.units.size());
  for (const auto& group : groups_.groups) groups_.gathers |= group->weights().comes_and_goes();
  for (const auto& group : groups_.groups)
    (group->spec().spans_model() ? groups_.spanning : groups_.needed_by[group->spec().unit]).push_back(group.get());
  for (std::size_t u = 0; u < groups_.units.size(); ++u)
    for (const BorrowedParameter& borrowed : groups_.units[u]->borrowed())
      for (const auto& group : groups_.groups)
        if (!group->spec().spans_model() && group->owns({borrowed.owner_unit, borrowed.owner_parameter}))
          groups_.needed_by[u].push_back(group.get());
}

std::int64_t ModelStates::peak_device_bytes() const {
  if (!on_device()) return 0;
  const auto allocated =
      at::getDeviceAllocator(options_.device.type())->getDeviceStats(options_.device.index()).allocated_bytes[0].peak;
  return allocated + mesh_.own_device_bytes() + (reductions_ ? reductions_->memory().own_device_bytes() : 0);
}

void ModelStates::load(WeightSource& source, bool frozen_only) {
  groups_.end_passes();
  for (const auto& group : groups_.groups)
    if (!frozen_only || !group->spec().trainable) group->load(source);
}

void ModelStates::export_weights(const ParameterGroup::TensorSink& sink, bool trainable_only) {
  mesh_.ranks().failures().check();
  for (const auto& group : groups_.groups)
    if (group->spec().trainable || !trainable_only) group->export_weights(sink);
}

void ModelStates::export_gradients(const ParameterGroup::TensorSink& sink) {
  mesh_.ranks().failures().check();
  for (ParameterGroup* group : groups_.trained()) group->export_gradients(sink);
}

}  // namespace zero
