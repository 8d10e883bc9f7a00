#include "zero/prove/step_recorder.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "base/error.h"
#include "comm/object_collectives.h"

namespace zero {
namespace {

constexpr std::int64_t chunk = 1 << 16;  // elements that are converted at once

TensorSketch sketch_of(const at::Tensor& flat, std::int64_t tensor_begin, double factor = 1) {
  TensorSketch sketch;
  for (std::int64_t done = 0; done < flat.numel(); done += chunk) {
    at::Tensor part = flat.narrow(0, done, std::min(chunk, flat.numel() - done)).to(at::kCPU, at::kDouble).contiguous();
    if (factor != 1) part = part.mul(factor);
    sketch.add(tensor_begin + done, {part.const_data_ptr<double>(), std::size_t(part.numel())});
  }
  return sketch;
}

/// Elements [begin, begin + flat.numel()) of a tensor, or of a slice of one.
TensorSketch sketch_of(const at::Tensor& flat, const TensorSpec& tensor, std::int64_t begin, double factor = 1) {
  TensorSketch sketch;
  for_each_run(tensor, begin, flat.numel(), [&](std::int64_t full_begin, std::int64_t done, std::int64_t count) {
    sketch.add(sketch_of(flat.narrow(0, done, count), full_begin, factor));
  });
  return sketch;
}

// Values are sent as raw bytes, since all ranks run the same program on the same kind of machine.
template <class T>
void put(std::string& bytes, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
}
void put(std::string& bytes, const std::string& value) {
  put(bytes, value.size());
  bytes += value;
}
template <class T>
T take(const std::string& bytes, std::size_t& at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  at += sizeof(T);
  return value;
}
std::string take_text(const std::string& bytes, std::size_t& at) {
  const auto size = take<std::size_t>(bytes, at);
  at += size;
  return bytes.substr(at - size, size);
}

}  // namespace

StepRecorder::StepRecorder(RecordOptions options, const ObservedRun& run)
    : options_(std::move(options)), run_(run), model_(run.engine) {
  if (model_.mesh().host().rank() != 0) return;
  file_.open(options_.path, std::ios::trunc);
  if (!file_) throw Error(options_.path + ": cannot be written");
}

void StepRecorder::add_gradients(ParameterGroup& group, double factor, std::vector<Part>& parts) const {
  const at::Tensor own = group.gradient().own();
  const bool divided = own.numel() < group.layout().numel();
  for (const FlatSlice& slice : group.layout().slices(group.own().begin, group.own().numel)) {
    const TensorSpec& spec = group.layout().tensors()[std::size_t(slice.tensor)].spec;
    parts.push_back(
        {{spec.name, sketch_of(own.narrow(0, slice.range_begin, slice.count), spec, slice.tensor_begin, factor)},
         "gradient",
         parts_over(group, divided)});
  }
}

AxisSet StepRecorder::parts_over(const ParameterGroup& group, bool divided) const {
  const AxisSet slices = group.spec().cut ? AxisSet(MeshAxis::tensor) : AxisSet();
  return divided ? slices | model_.sharing_axes(group.spec()) : slices;
}

void StepRecorder::add_states(ParameterGroup& group, std::vector<Part>& parts) const {
  const bool divided = group.own().numel < group.layout().numel();
  for (const auto& shard : group.states()) {
    const std::vector<StateSpec> specs = group.visited_states(*shard);
    group.visit_states(*shard, StateAccess::read, [&](const StateChunk& visited) {
      for (const FlatSlice& slice : shard->layout().slices(shard->begin() + visited.begin, visited.end - visited.begin))
        for (std::size_t s = 0; s < specs.size(); ++s) {
          const StateSpec& spec = specs[s];
          // A value that a block of elements shares counts if the block begins in the slice.
          const std::int64_t from = spec.numel(slice.range_begin), to = spec.numel(slice.range_begin + slice.count);
          const at::Tensor all = at::from_blob(visited.states[s], {spec.numel(visited.end - visited.begin)}, spec.type);
          const TensorSpec& tensor = shard->layout().spec(slice.tensor);
          const at::Tensor own = all.narrow(0, from, to - from);
          parts.push_back({{tensor.name,
                            tensor.cut ? sketch_of(own, tensor, slice.tensor_begin)
                                       : sketch_of(own, spec.numel(slice.tensor_begin)),
                            at::isFloatingType(spec.type) && spec.grain == 1},
                           spec.name,
                           parts_over(group, divided)});
        }
    });
  }
}

void StepRecorder::add_weights(ParameterGroup& group, std::vector<Part>& parts) const {
  const ShardLease rest = group.weights().at_rest(false);
  const at::Tensor held = rest.tensor();
  const bool divided = group.weights().is_sharded();
  const std::int64_t begin = divided ? group.own().begin : 0;
  for (const FlatSlice& slice : group.layout().slices(begin, held.numel())) {
    const TensorSpec& spec = group.layout().tensors()[std::size_t(slice.tensor)].spec;
    parts.push_back({{spec.name, sketch_of(held.narrow(0, slice.range_begin, slice.count), spec, slice.tensor_begin)},
                     "weights",
                     parts_over(group, divided)});
  }
}

void StepRecorder::run_begins() {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const auto loss_scale = run_.loop.position().loss_scale;
  write_line(
      format_figures(run_.loop.steps_done(), {none, none, loss_scale ? loss_scale->scale : 1.0, model_.steps_done()}));
  record_states();
}

void StepRecorder::gradients_ready(const Step& step) {
  const at::NoGradGuard no_grad;
  std::vector<Part> parts;
  for (ParameterGroup* group : model_.units().trained()) add_gradients(*group, 1 / step.loss_scale, parts);
  write(step.index + 1, parts);
  updated_ = true;
}

void StepRecorder::figures_known(Step& step) {
  const StepMetrics& metrics = step.metrics;
  write_line(format_figures(step.index + 1,
                            {metrics.loss, metrics.grad_norm, metrics.loss_scale.value_or(1.0), model_.steps_done()}));
}

Then StepRecorder::at_boundary() {
  if (std::exchange(updated_, false)) record_states();
  if (run_.loop.failed() || run_.loop.steps_done() < options_.steps) return Then::go_on;
  run_.saving.records().end_line();
  if (options_.checkpoint && !run_.saving.save_to_the_end(std::chrono::steady_clock::now()))
    throw Error("the checkpoint of a recorded run could not be written");
  return Then::stop;
}

void StepRecorder::record_states() {
  const at::NoGradGuard no_grad;
  std::vector<Part> parts;
  for (ParameterGroup* group : model_.units().trained()) {
    add_states(*group, parts);
    add_weights(*group, parts);
  }
  write(run_.loop.steps_done(), parts);
}

void StepRecorder::write(std::int64_t step, const std::vector<Part>& parts) {
  std::string mine;
  for (const Part& part : parts) {
    put(mine, part.kind);
    put(mine, part.record.tensor);
    put(mine, part.record.sketch);
    put(mine, part.record.numbers);
    put(mine, part.over);
  }
  Communicator& host = model_.mesh().host();
  const std::vector<std::string> all = all_gather_texts(host, mine, {Phase::other});
  if (host.rank() != 0) return;
  for (const KindRecord& kind : joined(all)) write_line(format_kind(step, kind));
}

// The ranks that together hold one copy of a tensor add their parts. Copies must agree.
std::vector<KindRecord> StepRecorder::joined(const std::vector<std::string>& of_ranks) const {
  std::vector<std::string> kinds;
  std::map<std::string, std::map<std::string, std::map<int, TensorRecord>>> found;  // kind, tensor, copy
  for (int rank = 0; rank < int(of_ranks.size()); ++rank) {
    const std::string& bytes = of_ranks[std::size_t(rank)];
    for (std::size_t at = 0; at < bytes.size();) {
      const std::string kind = take_text(bytes, at), tensor = take_text(bytes, at);
      const auto sketch = take<TensorSketch>(bytes, at);
      const auto numbers = take<bool>(bytes, at);
      const int copy = model_.mesh().shape().index(rank, take<AxisSet>(bytes, at).others());
      if (!found.contains(kind)) kinds.push_back(kind);
      const auto [place, is_new] = found[kind][tensor].try_emplace(copy, TensorRecord{tensor, {}, numbers, rank});
      place->second.sketch.add(sketch);
    }
  }
  std::vector<KindRecord> records;
  for (const std::string& kind : kinds) {
    KindRecord record{kind, {}};
    for (const TensorSpec& tensor : model_.exported_tensors(/*trainable_only=*/true)) {
      const auto copies = found[kind].find(tensor.name);
      if (copies == found[kind].end()) continue;
      TensorRecord first = copies->second.begin()->second;
      first.other_rank = -1;
      for (const auto& [copy, other] : copies->second)
        if (first.other_rank < 0 && other.sketch.hash != first.sketch.hash) first.other_rank = other.other_rank;
      record.tensors.push_back(first);
    }
    records.push_back(std::move(record));
  }
  return records;
}

void StepRecorder::write_line(const std::string& line) {
  if (!file_.is_open()) return;
  file_ << line << '\n' << std::flush;
  if (!file_) throw Error(options_.path + ": cannot be written");
}

}  // namespace zero
