#include "zero/core/states/nonfinite_search.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "comm/object_collectives.h"
#include "zero/core/kernels/reduce_kernels.h"

namespace zero {
namespace {

constexpr std::int64_t none = -1, device_span = 1 << 24;  // elements for which a GPU makes masks at once

bool is_finite(const at::Tensor& values) {
  if (!at::isFloatingType(values.scalar_type())) return true;
  if (values.is_cpu()) return sum_of_squares(values.contiguous()).finite;
  for (std::int64_t begin = 0; begin < values.numel(); begin += device_span)
    if (!at::isfinite(values.narrow(0, begin, std::min(device_span, values.numel() - begin))).all().item<bool>())
      return false;
  return true;
}

/// All trained (or all frozen) tensors in chain order, the same on every rank, and those that this rank has found.
class Findings {
 public:
  Findings(ModelStates& model, bool trained) {
    std::vector<std::tuple<int, int, int>> order;  // unit, group, tensor
    const auto& groups = model.groups();
    for (int g = 0; g < int(groups.size()); ++g) {
      if (groups[std::size_t(g)]->spec().trainable != trained) continue;
      const auto& tensors = groups[std::size_t(g)]->layout().tensors();
      for (int t = 0; t < int(tensors.size()); ++t)
        order.emplace_back(groups[std::size_t(g)]->spec().members[std::size_t(tensors[std::size_t(t)].parameter)].unit,
                           g, t);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [unit, g, t] : order) {
      const std::string& name = groups[std::size_t(g)]->layout().tensors()[std::size_t(t)].spec.name;
      numbers_[name] = std::int64_t(places_.size());
      places_.push_back({unit, name});
    }
  }

  void add(const std::string& name) {
    const std::int64_t number = numbers_.at(name);
    first_ = first_ == none ? number : std::min(first_, number);
    last_ = std::max(last_, number);
  }
  void add_all() {
    for (const TensorPlace& place : places_) add(place.name);
  }

  std::optional<NonfiniteTensors> agree(Communicator& ranks) const {
    const std::array mine{first_, last_};
    const std::vector<std::int64_t> all = all_gather_numbers(ranks, mine, {Phase::other});
    std::int64_t first = none, last = none;
    for (std::size_t i = 0; i < all.size(); i += 2) {
      if (all[i] == none) continue;
      first = first == none ? all[i] : std::min(first, all[i]);
      last = std::max(last, all[i + 1]);
    }
    if (first == none) return std::nullopt;
    return NonfiniteTensors{places_[std::size_t(first)], places_[std::size_t(last)]};
  }

 private:
  std::vector<TensorPlace> places_;
  std::map<std::string, std::int64_t> numbers_;
  std::int64_t first_ = none, last_ = none;
};

/// Searches a range of the group's flat vector.
void look_at(const at::Tensor& values, std::int64_t begin, const FlatLayout& layout, Findings& findings) {
  if (is_finite(values)) return;
  for (const FlatSlice& slice : layout.slices(begin, values.numel()))
    if (!is_finite(values.narrow(0, slice.range_begin, slice.count)))
      findings.add(layout.tensors()[std::size_t(slice.tensor)].spec.name);
}

void look_at(StateShard& shard, Findings& findings) {
  shard.store().for_each_chunk(StateAccess::read, [&](const StateChunk& chunk) {
    const std::vector<at::Tensor> states = shard.view(chunk, chunk.begin, chunk.end - chunk.begin);
    const std::vector<StateSpec>& specs = shard.store().states();
    for (std::size_t s = 0; s < states.size(); ++s) {
      if (is_finite(states[s])) continue;
      for (const FlatSlice& slice : shard.layout().slices(shard.begin() + chunk.begin, chunk.end - chunk.begin))
        if (!is_finite(states[s].narrow(0, slice.range_begin / specs[s].grain, specs[s].numel(slice.count))))
          findings.add(shard.layout().spec(slice.tensor).name);
    }
  });
}

/// Searches the statistics of tensors, and of the run, on which all tensors depend.
void look_at_statistics(ModelStates& model, Findings& findings) {
  for (int i = 0; i < model.optimizers().size(); ++i) {
    const Statistics& statistics = model.statistics(i);
    if (statistics.all_kept().numel() == 0 || is_finite(statistics.all_kept())) continue;
    if (statistics.kept_of_run().numel() > 0 && !is_finite(statistics.kept_of_run())) findings.add_all();
    for (int t = 0; t < statistics.tensors(); ++t)
      if (statistics.kept(t).numel() > 0 && !is_finite(statistics.kept(t)))
        findings.add(model.optimizer_tensors(i)[std::size_t(t)].name);
  }
}

/// If a rank's disk fails, all ranks throw.
std::optional<NonfiniteTensors> search(ModelStates& model, const std::function<void(Findings&)>& look,
                                       bool trained = true) {
  const at::NoGradGuard no_grad;
  Findings findings(model, trained);
  all_or_none(model.host(), [&] { look(findings); });
  return findings.agree(model.host());
}

void look_at_weights(ParameterGroup& group, Findings& findings) {
  const ShardLease rest = group.weights().at_rest(false);
  look_at(group.weights().own_of(rest.tensor()), group.own().begin, group.layout(), findings);
}

}  // namespace

std::string NonfiniteTensors::describe() const {
  const auto named = [](const TensorPlace& place) { return text(place.name, " (unit ", place.unit, ")"); };
  return first == last ? "in " + named(first) : text("from ", named(first), " to ", named(last));
}

std::optional<NonfiniteTensors> nonfinite_gradients(ModelStates& model) {
  return search(model, [&](Findings& findings) {
    for (ParameterGroup* group : model.units().trained())
      look_at(group->gradient().part(), group->counted().begin, group->layout(), findings);
  });
}

std::optional<NonfiniteTensors> nonfinite_states(ModelStates& model) {
  return search(model, [&](Findings& findings) {
    for (ParameterGroup* group : model.units().trained()) {
      look_at_weights(*group, findings);
      for (const auto& shard : group->states()) look_at(*shard, findings);
    }
    look_at_statistics(model, findings);
  });
}

std::optional<NonfiniteTensors> nonfinite_frozen(ModelStates& model) {
  return search(
      model,
      [&](Findings& findings) {
        for (const auto& group : model.groups())
          if (group->is_here() && !group->spec().trainable) look_at_weights(*group, findings);
      },
      /*trained=*/false);
}

}  // namespace zero
