// Reads a group's values from files and exports them.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/ScopeExit.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "zero/core/parameter_group.h"

namespace zero {
namespace {

constexpr std::int64_t state_chunk = 1 << 20;  // elements of states that are copied from and to a GPU at a time

/// The part [begin, begin + count) of a chunk of states in host memory; states that are already in host memory are not
/// copied.
struct HostPart {
  std::vector<at::Tensor> homes, copies;  // equal if the tensor is in host memory

  HostPart(const std::vector<at::Tensor>& states, StateAccess access) : homes(states) {
    for (const at::Tensor& home : homes)
      copies.push_back(home.is_cpu()                  ? home
                       : access == StateAccess::write ? at::empty(home.sizes(), home.options().device(at::kCPU))
                                                      : home.to(at::kCPU));
  }
  StateChunk chunk(std::int64_t begin, std::int64_t end) const {
    StateChunk chunk{begin, end, {}};
    for (const at::Tensor& copy : copies) chunk.states.push_back(copy.data_ptr());
    return chunk;
  }
  void put_back() const {
    for (std::size_t s = 0; s < homes.size(); ++s)
      if (!homes[s].is_same(copies[s])) homes[s].copy_(copies[s]);
  }
};

void read_slice(WeightSource& source, const TensorSpec& spec, const FlatSlice& slice, const at::Tensor& values) {
  const TensorSpec full = spec.full();
  for_each_run(spec, slice.tensor_begin, slice.count,
               [&](std::int64_t full_begin, std::int64_t done, std::int64_t count) {
                 source.read(full, full_begin, count, values.narrow(0, slice.range_begin + done, count));
               });
}

// A split master is in two places, which may be on two devices: with the weights, and where states are updated. Copies
// of it may be anywhere.
void join(const at::Tensor& weights, const at::Tensor& master, const at::Tensor& remainder) {
  const at::Device device = remainder.device();
  const at::Tensor there = master.device() == device ? master : at::empty_like(master, master.options().device(device));
  join_master(weights.to(device), remainder, there);
  if (!there.is_same(master)) master.copy_(there);
}
void split(const at::Tensor& weights, const at::Tensor& master, const at::Tensor& remainder) {
  const at::Device device = remainder.device();
  const at::Tensor there =
      weights.device() == device ? weights : at::empty_like(weights, weights.options().device(device));
  split_master(master.to(device), there, remainder);
  if (!there.is_same(weights)) weights.copy_(there);
}

}  // namespace

std::vector<StateSpec> ParameterGroup::visited_states(const StateShard& shard) const {
  std::vector<StateSpec> specs = shard.store().states();
  if (shard.splits_master()) specs.erase(specs.begin());
  if (shard.splits_master() || !shard.has_master()) specs.insert(specs.begin(), {"master", precision().master});
  return specs;
}

// Weights that are their own master, or a part of it, have gaps between tensors. The master therefore passes through a
// copy, part by part.
void ParameterGroup::visit_states(StateShard& shard, StateAccess access, const StateRange& wanted,
                                  const StateVisit& visit) {
  ZERO_CHECK(access != StateAccess::read_write, "states are read or written");
  const at::NoGradGuard no_grad;
  const bool writes = access == StateAccess::write;
  const ShardLease rest = weights_.at_rest(writes);
  const at::Tensor weights = weights_.own_of(rest.tensor());
  const bool as_it_is =
      shard.has_master() && !shard.splits_master() && (options().offload.optimizer || options().device.is_cpu());
  shard.store().for_each_chunk(access, [&](const StateChunk& chunk) {
    const std::int64_t most = as_it_is ? chunk.end - chunk.begin : state_chunk;
    for (std::int64_t begin = chunk.begin; begin < chunk.end; begin += most) {
      const std::int64_t end = std::min(begin + most, chunk.end);
      if (!writes && (end <= wanted.begin || wanted.end <= begin)) continue;
      std::vector<at::Tensor> states = shard.view(chunk, begin, end - begin);
      if (!shard.has_master()) states.insert(states.begin(), at::zeros({end - begin}, weights.options()));
      at::Tensor remainder;
      if (shard.splits_master())
        remainder =
            std::exchange(states.front(), at::zeros({end - begin}, states.front().options().dtype(precision().master)));
      const auto for_each_weight = [&](const auto& copy) {
        for (const StateSegment& part : shard.segments(begin, end)) {
          const auto of = [&](const at::Tensor& all) { return all.narrow(0, part.begin - begin, part.count); };
          copy(weights.narrow(0, part.flat_begin, part.count), of(states.front()),
               remainder.defined() ? of(remainder) : remainder);
        }
      };
      if (remainder.defined())
        for_each_weight(join);
      else if (!shard.has_master())
        for_each_weight([](const at::Tensor& own, const at::Tensor& master, const at::Tensor&) { master.copy_(own); });
      const HostPart part(states, access);
      visit(part.chunk(begin, end));
      if (!writes) continue;
      part.put_back();
      if (remainder.defined()) {
        remainder.zero_();
        for_each_weight(split);
      } else {
        for_each_weight([](const at::Tensor& own, const at::Tensor& master, const at::Tensor&) { own.copy_(master); });
      }
    }
  });
  if (writes) host_update_->take_weights(weights);
}

// Reads elements of the own part, starting at `begin`; padding reads as zeros.
void ParameterGroup::read_range(WeightSource& source, std::int64_t begin, const at::Tensor& values) const {
  values.zero_();
  for (const FlatSlice& slice : layout().slices(own_.begin + begin, values.numel()))
    read_slice(source, layout().tensors()[slice.tensor].spec, slice, values);
}

// Reads the same in a ggml type. Bytes outside tensors are zeros.
void ParameterGroup::read_range_as(WeightSource& source, GgmlType type, const FlatRange& range,
                                   const at::Tensor& blocks) const {
  blocks.zero_();
  for (const FlatSlice& slice : layout().slices(own_.begin + range.begin, range.numel)) {
    const TensorSpec &spec = layout().tensors()[slice.tensor].spec, full = spec.full();
    for_each_run(
        spec, slice.tensor_begin, slice.count, [&](std::int64_t full_begin, std::int64_t done, std::int64_t count) {
          source.read_as(full, type, full_begin, count,
                         blocks.narrow(0, ggml_bytes(type, slice.range_begin + done), ggml_bytes(type, count)));
        });
  }
}

// Reads the same into memory on any device.
void ParameterGroup::read_into(WeightSource& source, std::int64_t begin, const at::Tensor& values) const {
  if (values.is_cpu()) return read_range(source, begin, values);
  for (std::int64_t done = 0; done < values.numel(); done += encode_chunk) {
    const at::Tensor part = values.narrow(0, done, std::min(encode_chunk, values.numel() - done)),
                     on_host = at::empty(part.sizes(), part.options().device(at::kCPU));
    read_range(source, begin + done, on_host);
    part.copy_(on_host);
  }
}

WeightReader ParameterGroup::reader_of(WeightSource& source) const {
  WeightReader reader{
      weights_.is_sharded() ? ranks().rank() : 0, own_.numel, precision().master, options().device, {}, {}, {}};
  reader.read = [&](std::int64_t begin, const at::Tensor& values) { read_range(source, begin, values); };
  reader.read_as = [&](std::int64_t begin, std::int64_t count, GgmlType type, const at::Tensor& blocks) {
    read_range_as(source, type, {begin, count}, blocks);
  };
  reader.gather = [this](const at::Tensor& all, const at::Tensor& own) {
    if (weights_.is_sharded()) ranks().all_gather_into(all, own, tag(Phase::setup));
  };
  return reader;
}

// Elements outside tensors are zeros.
void ParameterGroup::load_states(WeightSource& source, const at::Tensor& weights) {
  const at::NoGradGuard no_grad;
  for (const auto& shard : states_) {
    const int own = int(shard->has_master()), initial = shard->optimizer().starts_as_weights();
    shard->store().for_each_chunk(StateAccess::write, [&](const StateChunk& chunk) {
      const std::vector<at::Tensor> states = shard->view(chunk, chunk.begin, chunk.end - chunk.begin);
      for (const at::Tensor& state : states) state.zero_();
      const auto load = [&](const StateSegment& part) {
        const at::Tensor own_weights = weights.narrow(0, part.flat_begin, part.count);
        const auto of = [&](int state) {
          return states[std::size_t(state)].narrow(0, part.begin - chunk.begin, part.count);
        };
        at::Tensor master = own ? of(0) : own_weights;
        if (shard->splits_master()) master = at::empty({part.count}, master.options().dtype(precision().master));
        if (own) read_into(source, part.flat_begin, master);
        if (shard->splits_master())
          split(own_weights, master, of(0));
        else if (own)
          own_weights.copy_(master);
        if (initial >= 0) of(own + initial).copy_(master);
      };
      const std::int64_t most = shard->splits_master() ? state_chunk : chunk.end - chunk.begin;
      for (const StateSegment& part : shard->segments(chunk.begin, chunk.end, most)) load(part);
    });
  }
}

// Master weights are read into the states, and the weights are computed from them.
void ParameterGroup::read(WeightSource& source) {
  const at::NoGradGuard no_grad;
  const ShardLease rest = weights_.at_rest(true);
  const at::Tensor own = weights_.own_of(rest.tensor());
  if (has_master())
    own.zero_();
  else
    layout_.format->encode(reader_of(source), own);
  load_states(source, own);
  if (host_update_) host_update_->take_weights(own);
}

void ParameterGroup::load(WeightSource& source) {
  read(source);
  weights_.gather_updated();
}

void ParameterGroup::visit_weights(const FlatRange& range, const std::function<void(const at::Tensor&)>& visit) const {
  const at::NoGradGuard no_grad;
  const ShardLease rest = weights_.at_rest(false);
  const at::Tensor own = weights_.own_of(rest.tensor());
  for (std::int64_t done = 0; done < range.numel; done += state_chunk)
    visit(own.narrow(0, range.begin - own_.begin + done, std::min(state_chunk, range.numel - done)).to(at::kCPU));
}

// export_weights() and export_flat() hold the own part, as a copy of the master, and all parts at the same time.
std::int64_t ParameterGroup::export_bytes() const {
  if (!layout_.format->is_plain()) return 0;
  const at::ScalarType type = has_master() ? precision().master : precision().compute;
  const std::int64_t numel = (has_master() ? own_.numel : 0) + (own_.numel < layout().numel() ? layout().numel() : 0);
  return numel * std::int64_t(c10::elementSize(type));
}

// Joins a flattened slice with the slices of the other ranks into the full tensor.
at::Tensor ParameterGroup::joined(const TensorSpec& spec, const at::Tensor& slice) const {
  if (!spec.cut) return slice.view(spec.shape);
  Communicator& slices = *context_.slices;
  std::int64_t most = 0;  // elements of a slice
  for (int r = 0; r < slices.size(); ++r) most = std::max(most, spec.of_rank(r).numel());
  const at::Tensor all = slices.memory().allocate(slices.size() * most, slice.scalar_type());
  const at::Tensor own = all.narrow(0, slices.rank() * most, most);
  own.narrow(0, 0, slice.numel()).copy_(slice);
  slices.all_gather_into(all, own, tag(Phase::save));
  const at::Tensor full = at::empty(spec.full().shape, slice.options());
  for (int r = 0; r < slices.size(); ++r) {
    const TensorSpec other = spec.of_rank(r);
    const at::Tensor values = all.narrow(0, r * most, other.numel()).view(other.shape);
    std::int64_t done = 0;
    for (const TensorCut::Window& window : spec.cut->windows(r)) {
      full.narrow(spec.cut->dim, window.begin, window.count).copy_(values.narrow(spec.cut->dim, done, window.count));
      done += window.count;
    }
  }
  return full;
}

void ParameterGroup::export_flat(const at::Tensor& own, const TensorSink& sink) {
  at::Tensor full = own;
  if (own.numel() != layout().numel()) {
    full = options().device.is_cpu() ? at::empty({layout().numel()}, own.options())
                                     : ranks().memory().allocate(layout().numel(), own.scalar_type());
    ranks().all_gather_into(full, own, tag(Phase::save));
  }
  for (const FlatTensor& tensor : layout().tensors()) {
    const at::Tensor value = joined(tensor.spec, full.narrow(0, tensor.offset, tensor.spec.numel())).to(at::kCPU);
    ranks().failures().check();  // the copy has waited for the gather, which brings no data if it was aborted
    sink(tensor.spec.full(), value);
  }
}

void ParameterGroup::export_weights(const TensorSink& sink) {
  if (!layout_.format->is_plain()) {
    weights_.unshard(Phase::save);
    const auto end = c10::make_scope_exit([&] { weights_.reshard(); });  // even if the sink throws
    return export_flat(weights_.whole(), sink);
  }
  if (!has_master()) {
    const ShardLease rest = weights_.at_rest(false);
    return export_flat(weights_.own_of(rest.tensor()).to(options().device), sink);
  }
  const at::Tensor own =
      at::zeros({own_.numel}, at::TensorOptions().dtype(precision().master).device(options().device));
  // `weights`: used if masters are split.
  const auto copy_masters = [&](const at::Tensor& weights) {
    for (const auto& shard : states_)
      shard->store().for_each_chunk(StateAccess::read, [&](const StateChunk& chunk) {
        for (const StateSegment& part : shard->segments(chunk.begin, chunk.end)) {
          const at::Tensor to = own.narrow(0, part.flat_begin, part.count),
                           stored = shard->view(chunk, part.begin, part.count).front();
          if (shard->splits_master())
            join(weights.narrow(0, part.flat_begin, part.count), to, stored);
          else
            to.copy_(stored);
        }
      });
  };
  if (options().storage.split_master) {
    const ShardLease rest = weights_.at_rest(false);
    copy_masters(weights_.own_of(rest.tensor()));
  } else {
    copy_masters({});
  }
  export_flat(own, sink);
}

}  // namespace zero
