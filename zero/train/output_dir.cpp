#include "zero/train/output_dir.h"

#include <filesystem>
#include <fstream>

#include "comm/error.h"

namespace zero {
namespace {

constexpr const char* traces[] = {"metrics.jsonl", "config.toml", "checkpoints", "model", "adapter"};

bool holds(const std::string& path, const char* trace) {
  std::error_code none;
  return std::filesystem::exists(std::filesystem::path(path) / trace, none);
}

}  // namespace

void check_output_dir(const std::string& path, FormerRun former) {
  std::error_code none;
  if (std::filesystem::exists(path, none) && !std::filesystem::is_directory(path, none))
    throw InputError("job.output_dir = \"" + path + "\" is not a directory: name another one");
  if (former == FormerRun::overwritten) return;
  if (former == FormerRun::resumed) {
    if (holds(path, "config.toml")) return;
    throw InputError("job.output_dir = \"" + path + "\" holds no run to resume: leave --resume out to begin one");
  }
  for (const char* trace : traces)
    if (holds(path, trace))
      throw InputError("job.output_dir = \"" + path + "\" holds a run already (" + trace + "): name another directory, or pass --resume to go on with it, or --overwrite");
}

bool holds_result(const std::string& path) { return holds(path, "model") || holds(path, "adapter"); }

void prepare_output_dir(const std::string& path, FormerRun former, const std::string& resolved_config) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw Error("job.output_dir = \"" + path + "\" cannot be made: " + error.message());
  for (const char* trace : traces) {
    if (former == FormerRun::resumed) break;
    std::filesystem::remove_all(std::filesystem::path(path) / trace, error);
    if (error) throw Error(path + "/" + trace + " of the former run cannot be removed: " + error.message());
  }
  std::ofstream file(std::filesystem::path(path) / "config.toml");
  file << resolved_config;
  file.flush();
  if (!file) throw Error(path + "/config.toml cannot be written: is the disk full, or the directory read-only?");
}

}  // namespace zero
