#include "zero/checkpoint/save_checkpoint.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>

#include "base/error.h"
#include "base/files/durable_file.h"
#include "base/log.h"
#include "comm/agreement.h"
#include "comm/object_collectives.h"
#include "zero/checkpoint/state_shares.h"

namespace zero {
namespace {

std::string shard_name(int rank) {
  char name[32];
  std::snprintf(name, sizeof name, "rank-%05d.states", rank);
  return name;
}

void write_section(ParameterGroup& group, StateShard& shard, const ShardSection& own, ShardWriter& writer) {
  const std::vector<StateSpec> specs = group.visited_states(shard);
  const std::int64_t first = own.begin - shard.begin();
  group.visit_states(shard, StateAccess::read, {first, first + own.count}, [&](const StateChunk& chunk) {
    const std::int64_t begin = std::max(first, chunk.begin), end = std::min(first + own.count, chunk.end);
    if (begin >= end) return;
    std::vector<const void*> states;
    for (std::size_t s = 0; s < specs.size(); ++s)
      states.push_back(static_cast<const std::byte*>(chunk.states[s]) + specs[s].bytes(begin - chunk.begin));
    writer.append(states, end - begin);
  });
}

/// The own sections, durable when it returns.
FileMark write_shard(ModelStates& model, const std::string& path, const ShardFormat& format, FileCalls& calls) {
  ShardWriter writer(calls, path, format);
  auto section = format.sections().begin();
  for (const auto& group : model.groups())
    for (const auto& shard : group->states()) {
      if (section->count > 0) write_section(*group, *shard, *section, writer);
      ++section;
    }
  for (const ParameterGroup* group : saved_frozen(model)) {
    group->visit_weights({section->begin, section->count},
                         [&](const at::Tensor& values) { writer.append({values.const_data_ptr()}, values.numel()); });
    ++section;
  }
  for (const SavedStatistic& statistic : saved_statistics(model)) {
    if (section++->count == 0) continue;
    const at::Tensor values = statistic.values.to(at::kCPU).contiguous();
    writer.append({values.const_data_ptr()}, values.numel());
  }
  return writer.finish();
}

/// Every rank's mark, by rank. Collective.
std::vector<FileMark> gather(Communicator& communicator, const FileMark& mark) {
  const std::array mine{mark.bytes, std::bit_cast<std::int64_t>(mark.checksum)};
  const std::vector<std::int64_t> all = all_gather_numbers(communicator, mine, {Phase::save});
  std::vector<FileMark> marks(static_cast<std::size_t>(communicator.size()));
  for (std::size_t r = 0; r < marks.size(); ++r)
    marks[r] = {all[2 * r], std::bit_cast<decltype(mark.checksum)>(all[2 * r + 1])};
  return marks;
}

/// Durable when it returns. Under its own name, since the folder has none yet that says complete.
void write_manifest(const Manifest& manifest, const std::string& folder, FileCalls& calls) {
  const std::string content = format_manifest(manifest);
  DurableFile file(calls, folder + "/manifest.json", DurableFile::Buffered{});
  file.append(content.data(), static_cast<std::int64_t>(content.size()));
  file.finish();
}

/// The one of this step is the newest from now on: those of later steps are of a run that did not go on. One that cannot be
/// moved or removed does no harm to the new one.
void prune(CheckpointFolders& folders, std::int64_t step, std::int64_t keep) {
  try {
    folders.set_aside_after(step, CheckpointFolders::Aside::later);
    folders.prune(keep);
  } catch (const Error& error) {
    log_warning("an old checkpoint stays: ", error.what());
  }
}

}  // namespace

void save_checkpoint(ModelStates& model, const RunDescription& run, const RunPosition& position,
                     CheckpointFolders& folders, FileCalls& calls, Communicator& control, const SaveOptions& options) {
  ZERO_CHECK(model.mesh().size(axes::model) == 1, "a checkpoint holds full tensors");
  Communicator& communicator = model.host();
  const int rank = communicator.rank(), ranks = communicator.size();
  const std::vector<std::vector<ShardSection>> sections = sections_of_ranks(model);
  const std::string temporary = folders.temporary_path(position.steps);
  Manifest manifest;
  manifest.run = run;
  manifest.position = position;
  manifest.chunk_elements = options.chunk_elements;
  manifest.groups = saved_groups(model);

  // 1. An empty temporary folder.
  all_or_none(control, [&] {
    if (rank == 0) folders.begin(position.steps);
  });
  // 2. Every rank's states, synced. Nobody goes on before all are.
  FileMark mark;
  all_or_none(control, [&] {
    model.mesh().ranks().failures().check();
    mark = write_shard(model, temporary + "/" + shard_name(rank),
                       ShardFormat(sections[std::size_t(rank)], manifest.states(), manifest.chunk_elements), calls);
  });
  // 3. What is known of every file.
  const std::vector<FileMark> marks = gather(communicator, mark);
  for (int r = 0; r < ranks; ++r)
    manifest.files.push_back({shard_name(r), sections[std::size_t(r)], marks[std::size_t(r)]});
  // 4. The manifest, synced; then the name that says complete; then room for the next one.
  all_or_none(control, [&] {
    if (rank != 0) return;
    write_manifest(manifest, temporary, calls);
    folders.publish(position.steps);
    prune(folders, position.steps, options.keep);
  });
}

}  // namespace zero
