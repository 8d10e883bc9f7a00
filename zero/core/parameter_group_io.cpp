// How a group's values come from files and go back to them.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/ScopeExit.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "offload/quantized/nf4.h"
#include "zero/core/parameter_group.h"

namespace zero {
namespace {

constexpr std::int64_t load_chunk = 4 << 20;   // elements: bounds what loading adds to the peak
constexpr std::int64_t state_chunk = 1 << 20;  // elements: of states on their way from and to a GPU

/// The three states of a chunk wherever they are, handed to `visit` in chunks of host memory, those without a wanted
/// element left out.
void visit_on_host(StateAccess access, const ParameterGroup::StateRange& wanted, std::int64_t begin,
                   const std::array<at::Tensor, 3>& states, const std::function<void(const StateChunk&)>& visit) {
  const std::int64_t count = states[0].numel();
  if (std::all_of(states.begin(), states.end(), [](const at::Tensor& t) { return t.is_cpu(); }))
    return visit({begin, begin + count, states[0].data_ptr(), states[1].data_ptr(), states[2].data_ptr()});
  for (std::int64_t done = 0; done < count; done += state_chunk) {
    const std::int64_t n = std::min(state_chunk, count - done);
    if (begin + done + n <= wanted.begin || wanted.end <= begin + done) continue;
    std::array<at::Tensor, 3> chunks;
    for (int s = 0; s < 3; ++s) {
      const at::Tensor part = states[s].narrow(0, done, n);
      chunks[s] = access == StateAccess::write ? at::empty({n}, part.options().device(at::kCPU)) : part.to(at::kCPU);
    }
    visit({begin + done, begin + done + n, chunks[0].data_ptr(), chunks[1].data_ptr(), chunks[2].data_ptr()});
    if (access == StateAccess::read) continue;
    for (int s = 0; s < 3; ++s) states[s].narrow(0, done, n).copy_(chunks[s]);
  }
}

}  // namespace

void ParameterGroup::visit_states(StateAccess access, const StateRange& wanted,
                                  const std::function<void(const StateChunk&)>& visit) {
  ZERO_CHECK(spec_.trainable && access != StateAccess::read_write, "states of trained groups are read or written");
  const at::NoGradGuard no_grad;
  const bool writes = access == StateAccess::write;
  const StateRange touched = writes ? StateRange() : wanted;  // a write sets all of them
  const ShardLease weights = own_weights(writes);
  const at::TensorOptions options = state_options();
  states_->for_each_chunk(access, [&](const StateChunk& chunk) {
    const std::int64_t count = chunk.end - chunk.begin;
    const at::Tensor own = weights.tensor().narrow(0, chunk.begin, count);
    const auto state = [&](void* place) { return at::from_blob(place, {count}, options); };
    visit_on_host(access, touched, chunk.begin,
                  {chunk.master ? state(chunk.master) : own, state(chunk.m), state(chunk.v)}, visit);
    if (writes && chunk.master) own.copy_(state(chunk.master));
  });
  if (writes && host_update_) host_update_->take_weights(weights.tensor());
}

// Elements of the own range from `begin` on, padding as zeros.
void ParameterGroup::read_range(WeightSource& source, std::int64_t begin, const at::Tensor& values) const {
  values.zero_();
  for (const FlatSlice& slice : layout_.slices(own_begin_ + begin, values.numel()))
    source.read(layout_.tensors()[slice.tensor].spec, slice.tensor_begin, slice.count,
                values.narrow(0, slice.range_begin, slice.count));
}

// The same into memory of any device.
void ParameterGroup::read_into(WeightSource& source, std::int64_t begin, const at::Tensor& values) const {
  if (values.is_cpu()) return read_range(source, begin, values);
  for (std::int64_t done = 0; done < values.numel(); done += load_chunk) {
    const at::Tensor part = values.narrow(0, done, std::min(load_chunk, values.numel() - done)),
                     on_host = at::empty(part.sizes(), part.options().device(at::kCPU));
    read_range(source, begin + done, on_host);
    part.copy_(on_host);
  }
}

// Encoded where the bytes live. Scales pass the ranks on the device that collectives run on, and are judged on the
// host.
void ParameterGroup::load_encoded(WeightSource& source) {
  const at::NoGradGuard no_grad;
  const ShardLease bytes = own_weights(true);
  const int shard = weights_sharded() ? context_.shards->rank() : 0;
  const at::Device home = bytes.tensor().device();
  at::Tensor largest, own, encoded;  // of the blocks of all shards, and of this one's
  if (codec_->quantizes_scales()) {
    const std::int64_t blocks = own_numel_ / nf4_block;
    largest = at::zeros({layout_.numel() / nf4_block}, at::TensorOptions().dtype(at::kFloat).device(context_.device));
    own = largest.narrow(0, shard * blocks, blocks);
    encoded = home == context_.device ? own : at::zeros({blocks}, at::kFloat);
  }
  for (std::int64_t begin = 0; begin < own_numel_; begin += load_chunk) {
    const at::Tensor values = at::empty({std::min(load_chunk, own_numel_ - begin)}, at::kFloat);
    read_range(source, begin, values);
    codec_->encode(shard, begin, values.to(home), bytes.tensor(), encoded);
  }
  if (!own.defined()) return;
  if (home != context_.device) own.copy_(encoded);
  if (weights_sharded()) context_.shards->all_gather_into(largest, own, tag(Phase::setup));
  codec_->encode_all_scales(shard, largest.to(at::kCPU), bytes.tensor());
}

void ParameterGroup::load(WeightSource& source) {
  if (codec_) return load_encoded(source);
  {
    const ShardLease weights = own_weights(true);
    const at::TensorOptions options = state_options(), host = options.device(at::kCPU);
    if (states_ && states_->has_master()) {
      states_->for_each_chunk(StateAccess::write, [&](const StateChunk& chunk) {
        const std::int64_t count = chunk.end - chunk.begin;
        const at::Tensor master = at::from_blob(chunk.master, {count}, options);
        read_into(source, chunk.begin, master);
        at::from_blob(chunk.m, {count}, options).zero_();
        at::from_blob(chunk.v, {count}, options).zero_();
        weights.tensor().narrow(0, chunk.begin, count).copy_(master);
      });
    } else {
      for (std::int64_t begin = 0; begin < own_numel_; begin += load_chunk) {
        const at::Tensor values = at::empty({std::min(load_chunk, own_numel_ - begin)}, host);
        read_range(source, begin, values);
        weights.tensor().narrow(0, begin, values.numel()).copy_(values);
      }
      if (host_update_) host_update_->take_weights(weights.tensor());
    }
  }
  gather_updated();
}

std::int64_t ParameterGroup::load_bytes() const {
  const bool scales = codec_ && codec_->quantizes_scales();
  return (load_chunk + (scales ? layout_.numel() / nf4_block : 0)) * std::int64_t(sizeof(float));
}

// What export_weights() and export_flat() hold at once: the own part as it is copied from the master, and all parts.
std::int64_t ParameterGroup::export_bytes() const {
  if (codec_) return 0;
  const bool copied = states_ && states_->has_master();
  const at::ScalarType type = copied ? context_.precision.master : context_.precision.compute;
  const std::int64_t numel = (copied ? own_numel_ : 0) + (own_numel_ < layout_.numel() ? layout_.numel() : 0);
  return numel * std::int64_t(c10::elementSize(type));
}

void ParameterGroup::export_flat(const at::Tensor& own, const TensorSink& sink) {
  at::Tensor full = own;
  if (own.numel() != layout_.numel()) {
    full = context_.device.is_cpu() ? at::empty({layout_.numel()}, own.options())
                                    : context_.shards->memory().allocate(layout_.numel(), own.scalar_type());
    context_.shards->all_gather_into(full, own, tag(Phase::save));
  }
  for (const FlatTensor& tensor : layout_.tensors()) {
    const at::Tensor value = full.narrow(0, tensor.offset, tensor.spec.numel()).view(tensor.spec.shape).to(at::kCPU);
    context_.shards->failures().check();  // the copy has waited for the gather: one that was aborted brought nothing
    sink(tensor.spec, value);
  }
}

void ParameterGroup::export_weights(const TensorSink& sink) {
  if (codec_) {
    unshard(Phase::save);
    const auto end = c10::make_scope_exit([&] { reshard(); });  // also where the sink throws
    return export_flat(full_.tensor(), sink);
  }
  if (!states_ || !states_->has_master()) return export_flat(own_weights(false).tensor().to(context_.device), sink);
  const at::TensorOptions options = state_options();
  const at::Tensor own = at::empty({own_numel_}, options.device(context_.device));
  states_->for_each_chunk(StateAccess::read, [&](const StateChunk& chunk) {
    const std::int64_t count = chunk.end - chunk.begin;
    own.narrow(0, chunk.begin, count).copy_(at::from_blob(chunk.master, {count}, options));
  });
  export_flat(own, sink);
}

void ParameterGroup::export_gradients(const TensorSink& sink) { export_flat(own_gradient(), sink); }

}  // namespace zero
