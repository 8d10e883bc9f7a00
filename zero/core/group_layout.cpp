#include "zero/core/group_layout.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>

#include "zero/core/buffers/sum_ladder.h"

namespace zero {
namespace {

constexpr std::int64_t alignment = 32;  // elements: whole cache lines of any type

GroupLayout lay_out_group(const Units& units, const GroupSpec& spec, const LayoutOptions& options) {
  const int shards = spec.cut ? options.shards_of_cut : options.shards;
  // A group that only one rank holds is not sharded.
  const ShardPlan plan = shards == 1 && !options.stores_weights ? ShardPlan::for_stage(0) : options.plan;
  const auto tensors = specs_of(units, spec);
  const bool coded = quantizes(spec, int(units.size())) && options.frozen.changes(tensors, options.precision.compute);
  const bool kept = !spec.trainable && options.keep_frozen;
  if (coded) options.frozen.check_cuts(tensors);
  const std::int64_t grain = coded ? options.frozen.alignment(tensors, options.precision.compute)
                                   : std::max(alignment, spec.trainable ? options.grain : 1);
  GroupLayout group{spec, FlatLayout(tensors, shards, grain), nullptr, options.precision};
  group.weights = kept ? Placement::resident : plan.parameters;
  group.gradient = plan.gradients;
  group.states = plan.optimizer;
  if (spec.trainable && options.summed_in_order > 0) {
    group.in_turns = !std::has_single_bit(unsigned(shards));
    // A single micro-batch is summed over ranks in place, which gives the same tree.
    const std::int64_t vectors = options.summed_in_order * (group.in_turns ? shards : 1);
    if (vectors > 1) group.rungs = SumLadder::rungs(vectors) - int(group.gradient == Placement::sharded);
  }
  const bool sharded = group.weights == Placement::sharded;
  if (coded) {
    // Unsharded codes are the same on all ranks, and are never updated.
    if (!sharded) group.states = Placement::resident;
    group.format = options.frozen.make(group.flat, sharded ? shards : 1, options.precision.compute, options.device);
  } else {
    group.format = std::make_shared<PlainFormat>(
        options.precision.compute, sharded ? group.flat.shard_numel() : group.flat.numel(), group.flat.numel());
  }
  return group;
}

}  // namespace

FlatRange GroupLayout::own(int place) const {
  if (states == Placement::resident) return {0, flat.numel()};
  return {flat.shard_begin(place), flat.shard_numel()};
}

std::int64_t GroupLayout::wire_bytes() const {
  return weights == Placement::sharded && !format->is_plain() ? format->all_bytes() : 0;
}

std::int64_t GroupLayout::gradient_numel() const {
  if (!spec.trainable) return 0;
  return gradient == Placement::sharded ? flat.shard_numel() : flat.numel();
}

std::int64_t GroupLayout::summed_bytes() const {
  if (!spec.trainable) return 0;
  const at::ScalarType type = gradient == Placement::sharded ? precision.compute : precision.gradient;
  return flat.numel() * std::int64_t(c10::elementSize(type));
}

std::vector<GroupLayout> lay_out(const Units& units, const LayoutOptions& options) {
  std::vector<GroupLayout> groups;
  for (const GroupSpec& spec : plan_groups(units, options.order, options.runs))
    groups.push_back(lay_out_group(units, spec, options));
  return groups;
}

BufferSizes buffer_sizes(const Units& units, const std::vector<GroupLayout>& groups, bool overlap) {
  BufferSizes sizes;
  std::int64_t gathered = 0, borrowing = 0, reduced = 0, wire = 0, in_turns = 0;
  for (const GroupLayout& group : groups) {
    const bool reduces = group.spec.trainable && group.gradient == Placement::sharded;
    if (group.in_turns) in_turns = std::max(in_turns, group.summed_bytes());
    if (group.spec.spans_model()) {
      if (group.comes_and_goes()) sizes.gather.push_back(group.full_bytes());
      if (reduces) sizes.reduce.push_back(group.full_bytes());
      continue;
    }
    if (reduces) reduced = std::max(reduced, group.full_bytes());
    if (!group.comes_and_goes()) continue;
    wire = std::max(wire, group.wire_bytes());
    gathered = std::max(gathered, group.full_bytes());
    if (!units[std::size_t(group.spec.unit)]->borrowed().empty()) borrowing = std::max(borrowing, group.full_bytes());
  }
  const std::size_t depth = overlap ? 2 : 1;
  if (gathered > 0) sizes.gather.insert(sizes.gather.end(), depth, gathered);
  if (wire > 0) sizes.gather.insert(sizes.gather.end(), depth, wire);
  if (borrowing > 0) sizes.gather.push_back(borrowing);
  if (reduced > 0) sizes.reduce.insert(sizes.reduce.end(), depth, reduced);
  if (in_turns > 0) sizes.reduce.push_back(in_turns);  // for the parts of all ranks
  return sizes;
}

BufferSizes buffer_sizes_of_any(const std::vector<GroupLayout>& groups, int open, bool overlap) {
  BufferSizes sizes;
  std::map<int, std::vector<std::int64_t>> of_units;
  for (const GroupLayout& group : groups) {
    if (group.comes_and_goes()) of_units[group.spec.unit].push_back(group.full_bytes());
    if (group.spec.trainable && group.gradient == Placement::sharded) sizes.reduce.push_back(group.full_bytes());
  }
  const auto keep_largest = [](std::vector<std::int64_t>& bytes, std::size_t count) {
    std::sort(bytes.begin(), bytes.end(), std::greater<>());
    bytes.resize(std::min(bytes.size(), count));
  };
  std::vector<std::int64_t> smaller;  // for units with two groups, trained and frozen
  for (auto& [unit, bytes] : of_units) {
    std::sort(bytes.begin(), bytes.end(), std::greater<>());
    sizes.gather.push_back(bytes.front());
    smaller.insert(smaller.end(), bytes.begin() + 1, bytes.end());
  }
  keep_largest(sizes.gather, std::size_t(open) + std::size_t(overlap));
  keep_largest(smaller, std::size_t(open));
  sizes.gather.insert(sizes.gather.end(), smaller.begin(), smaller.end());
  keep_largest(sizes.reduce, 1 + std::size_t(overlap));
  return sizes;
}

}  // namespace zero
