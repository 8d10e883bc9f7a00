#include "zero/estimate/disk_room.h"

#include <sys/vfs.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/byte_count.h"
#include "base/error.h"
#include "base/files/free_space.h"
#include "base/files/lookup.h"
#include "base/log.h"
#include "models/formats/base_model.h"
#include "models/formats/tokenizer_files.h"
#include "offload/memory/node_memory.h"
#include "zero/config/config_rules.h"
#include "zero/config/run_model.h"
#include "zero/config/setup.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

// Upper bounds in bytes of a logged step in each record, and of what SQLite holds besides.
constexpr std::int64_t metrics_line = 640, event_record = 1024, database_row = 1536, database_log = 8 << 20;
constexpr std::int64_t parts_of_a_step = 1024;  // in each of these records
constexpr std::int64_t unknown_steps = 10'000;
constexpr long tmpfs_magic = 0x01021994;

std::int64_t bytes_below(const fs::path& folder) {
  std::int64_t bytes = 0;
  for (const std::string& name : names_in(folder)) {
    const fs::path path = folder / name;
    FileCalls calls;
    const FileFacts facts = facts_of(path, calls, Links::kept);
    if (facts.kind == FileFacts::Kind::file) bytes += facts.bytes;
    if (facts.kind == FileFacts::Kind::directory) bytes += bytes_below(path);
  }
  return bytes;
}

fs::path existing(fs::path place) {
  std::error_code none;
  place = fs::absolute(place, none);
  while (!is_there(place) && place.has_relative_path()) place = place.parent_path();
  return place;
}

bool same_disk(const std::string& a, const std::string& b) {
  return facts_of(existing(a)).device == facts_of(existing(b)).device;
}

std::int64_t tokenizer_bytes(const Config& config) {
  std::int64_t bytes = 0;
  for (const std::string& from : {config.model.path.value_or(""), config.data.tokenizer}) {
    if (from.empty()) continue;
    if (is_file(from) && !is_gguf_model(from)) bytes += facts_of(from).bytes;
    for (const std::string& name : tokenizer_file_names())
      if (const FileFacts file = facts_of(fs::path(from) / name); file.kind == FileFacts::Kind::file)
        bytes += file.bytes;
  }
  return bytes;
}

}  // namespace

DiskNeed disk_need(const Config& config, const Model& model, const MemoryPlan& plan,
                   std::optional<std::int64_t> steps) {
  DiskNeed need;
  if (config.lora) {
    const bool doubles = config.lora->init_lora_weights == "pissa";  // written as a plain adapter of twice the rank
    need.result = model.trainable_numel() * std::int64_t(sizeof(float)) * (doubles ? 2 : 1);
    if (const auto start = start_of(config, model))
      for (const StoredTensor& tensor : start->beside()) need.result += tensor.numel() * std::int64_t(sizeof(float));
  } else {
    need.result = model.numel() * std::int64_t(c10::elementSize(write_options_of(config).type));
  }
  need.result += need.result / 1000 + tokenizer_bytes(config) + 64 * 1024;  // headers and JSON
  if (config.checkpoint.keep_best) need.result *= 3;                        // best/, and its next contents
  if (config.checkpoint.is_regular())                                       // "keep all" may be a very large number
    need.checkpoints =
        std::int64_t(std::min((double(config.checkpoint.keep) + 1) * double(plan.checkpoint), std::ldexp(1.0, 62)));
  const bool tensorboard = config.metrics.tensorboard, trackio = !config.metrics.trackio.empty();
  const std::int64_t records = 1 + (tensorboard ? 1 : 0) + (trackio ? 1 : 0);
  const std::int64_t step = metrics_line + (tensorboard ? event_record : 0) + (trackio ? database_row : 0) +
                            (config.metrics.step_parts ? records * parts_of_a_step : 0);
  need.records = steps.value_or(unknown_steps) / std::max<std::int64_t>(1, config.metrics.log_interval) * step +
                 64 * 1024 + (trackio ? database_log : 0);
  return need;
}

std::int64_t room_in(const std::string& directory) {
  const fs::path place = existing(directory);
  std::int64_t room = free_disk_bytes(place.string());
  struct statfs system {};
  if (room >= 0 && ::statfs(place.c_str(), &system) == 0 && system.f_type == tmpfs_magic)
    if (const std::int64_t memory = node_memory().available; memory >= 0) room = std::min(room, memory);
  return room < 0 ? room : room - room / 100;
}

std::int64_t output_room(const Config& config, FormerRun former) {
  const std::string& output = config.job.output_dir;
  const std::int64_t free = free_disk_bytes(output);
  if (free < 0) return free;
  std::int64_t removed = bytes_below(checkpoints_root(config));
  if (former == FormerRun::overwritten)
    for (const char* folder : {"model", "adapter", "best"}) removed += bytes_below(fs::path(output) / folder);
  return free + removed;
}

std::int64_t offloaded_beside(const Config& config, const MemoryPlan& plan, int ranks_here) {
  if (config.offload.nvme_dir.empty() || !same_disk(config.offload.nvme_dir, config.job.output_dir)) return 0;
  return plan.disk * ranks_here;
}

void require_room(const Config& config, const DiskNeed& need, std::int64_t room, std::int64_t offloaded) {
  if (room < 0 || need.sum() + offloaded <= room) return;
  std::string words = text(where_of(config, "job.output_dir", config.job.output_dir), " its disk has room for ",
                           bytes_text(room), ", and the run will write ", bytes_text(need.sum() + offloaded), " (",
                           config.lora ? "adapter " : "model ", bytes_text(need.result));
  if (need.checkpoints > 0)
    words +=
        text(", ", config.checkpoint.keep, " checkpoints and the one being written ", bytes_text(need.checkpoints));
  if (offloaded > 0) words += text(", states that [offload] keeps on the same disk ", bytes_text(offloaded));
  words += text(", metrics ", bytes_text(need.records), "): free some, name another output_dir");
  if (need.checkpoints > 0) words += ", or lower checkpoint.keep";
  throw InputError(words);
}

}  // namespace zero
