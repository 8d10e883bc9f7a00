#include "zero/estimate/activation_plan.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>

#include "models/nn/head.h"
#include "zero/core/chain.h"
#include "zero/core/gradient_accumulation.h"
#include "zero/estimate/meta_rank.h"

namespace zero {
namespace {

at::Tensor meta(std::vector<std::int64_t> shape, at::ScalarType type) {
  return at::empty(shape, at::TensorOptions().dtype(type).device(at::kMeta));
}

Batch batch_of(const ActivationWork& work) {
  const std::int64_t B = work.batch, T = work.seq_len;
  Batch batch;
  batch.ids = meta({B, T}, at::kLong);
  batch.targets = meta({B, T}, at::kLong);
  if (work.packed || work.masked_targets) batch.positions = meta({B, T}, at::kLong);  // examples differ in length
  if (work.packed) batch.documents = meta({B, T}, at::kInt);
  batch.meta.device = work.on_device ? at::kCUDA : at::kCPU;
  batch.meta.ignores_targets = work.masked_targets && !work.on_device;  // a GPU's kernels skip them
  const CategoryScope scope(MemoryCategory::activations);
  if (work.packed && work.on_device && work.compute == at::kFloat) batch.bias = meta({B, 1, T, T}, work.compute);
  return batch;
}

EngineOptions options_of(const ActivationWork& work) {
  EngineOptions options;
  options.plan = ShardPlan::for_stage(0);
  options.precision = {work.compute, at::kFloat, work.written_gradient.value_or(work.compute), at::kFloat};
  static_cast<KeptOptions&>(options) = work;
  options.write_gradients = options.fuse_accumulation = work.written_gradient.has_value();
  options.pipeline = {work.schedule, work.chunks};
  return options;
}

std::int64_t rounded_up(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

/// The rows of the embedding, and so of the head, that this rank holds.
std::int64_t own_rows(const Model& model) { return model.units.front()->parameters().front().shape().front(); }

/// The head's tensors that are recognised by size: chunks of logits, and the fp32 gradient sum of the output
/// matrix.
struct HeadSizes {
  std::set<std::int64_t> chunks;
  std::int64_t sum;

  HeadSizes(const Model& model, const ActivationWork& work)
      : sum(rounded_up(4 * own_rows(model) * model.config.hidden_size)) {
    const std::int64_t row = own_rows(model) * std::int64_t(c10::elementSize(work.compute));
    const std::int64_t tokens = (work.batch * work.seq_len - 1) / work.context_ranks + 1;
    const std::int64_t rows =
        logits_chunk_rows(tokens, row, work.logits_bytes > 0 ? work.logits_bytes : default_logits_bytes);
    for (const std::int64_t chunk : {std::min(tokens, rows), tokens % rows})
      if (chunk > 0) chunks.insert(rounded_up(chunk * row));
  }
};

/// The length of a shorter step with which the stage keeps as many micro-batches in memory.
std::int64_t shorter_step(Pipeline& pipeline, const ActivationWork& work) {
  const auto most_live = [&](std::int64_t micro_batches) {
    return pipeline.timeline(micro_batches).most_live[std::size_t(work.stage)];
  };
  const int all = most_live(work.micro_batches);
  for (std::int64_t some = pipeline_fill(work.stages, work.chunks); some < work.micro_batches; some *= 2)
    if (most_live(some) >= all) return some;
  return work.micro_batches;
}

}  // namespace

ActivationBytes plan_activations(const Model& model, const ActivationWork& asked) {
  // GPU kernels treat fp16 like bf16. Meta tensors take the CPU path, which has no fp16 kernels.
  ActivationWork work = asked;
  if (work.on_device && work.compute == at::kHalf) {
    work.compute = at::kBFloat16;
    if (work.written_gradient == at::kHalf) work.written_gradient = at::kBFloat16;
  }
  const Chain chain = chain_of(model);
  RankSetting setting;
  setting.mesh.context = work.context_ranks;
  setting.mesh.tensor = work.tensor_ranks;
  setting.mesh.pipeline = work.stages;
  setting.stage = work.stage;
  MetaRank rank(chain, options_of(work), setting);
  std::set<int> gradients;
  const auto watch = [&](const at::Tensor& leaf) {
    if (leaf.requires_grad())
      leaf.register_hook([&](const at::Tensor& gradient) {
        if (gradient.defined()) gradients.insert(MetaAllocator::block_of(gradient.storage()));
      });
  };
  for (Unit* unit : chain) {
    for (const Parameter& parameter : unit->parameters()) watch(parameter.tensor);
    for (const BorrowedParameter& borrowed : unit->borrowed()) watch(borrowed.tensor);
  }

  ActivationBytes bytes;
  const auto live = [&] { return rank.live(MemoryCategory::activations); };
  const ContextOf context_of = [&](std::int64_t, Batch& batch) {
    bytes.kept = std::max(bytes.kept, live());  // before the next micro-batch
    batch = batch_of(work);
    bytes.batch = 0;
    for (const at::Tensor& tensor : {batch.ids, batch.targets, batch.positions, batch.documents})
      if (tensor.defined()) bytes.batch += std::int64_t(tensor.nbytes());
    ForwardContext context;
    context.batch = &batch;
    context.training = true;
    context.logits_bytes = work.logits_bytes;
    return context;
  };
  if (work.stages > 1) {
    Pipeline& pipeline = *rank.engine().pipeline();
    const std::int64_t planned = shorter_step(pipeline, work);
    accumulate_gradients(rank.engine(), planned, 1.0, context_of);
    bytes.batch *= pipeline.timeline(planned).most_live[std::size_t(work.stage)];
  } else {
    Batch batch;
    const ForwardContext context = context_of(0, batch);
    ChainPass pass(rank.engine().chain_run(), context, {});
    bytes.kept = live();
    pass.backward(1.0);
  }
  if (const auto& home = rank.engine().units().input_home) bytes.on_host = home->buffers.bytes();
  bytes.at_rest = live();
  bytes.kept = std::max<std::int64_t>(0, bytes.kept - bytes.at_rest);

  const HeadSizes head(model, work);
  for (const int block : rank.trace().alive_at_peak(MemoryCategory::activations)) {
    const std::int64_t size = rank.trace().blocks()[std::size_t(block)].bytes;
    const bool is_gradient = gradients.contains(block) || size == head.sum;
    (is_gradient ? bytes.unit_gradients : head.chunks.contains(size) ? bytes.logits : bytes.activations) += size;
  }
  return bytes;
}

}  // namespace zero
