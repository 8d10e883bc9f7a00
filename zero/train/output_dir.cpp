#include "zero/train/output_dir.h"

#include <filesystem>
#include <fstream>

#include "comm/error.h"

namespace zero {
namespace {

constexpr const char* traces[] = {"metrics.jsonl", "config.toml", "checkpoints", "model", "adapter"};

}  // namespace

void check_output_dir(const std::string& path, bool overwrite) {
  std::error_code none;
  if (std::filesystem::exists(path, none) && !std::filesystem::is_directory(path, none))
    throw InputError("job.output_dir = \"" + path + "\" is not a directory: name another one");
  if (overwrite) return;
  for (const char* trace : traces)
    if (std::filesystem::exists(std::filesystem::path(path) / trace, none))
      throw InputError("job.output_dir = \"" + path + "\" holds a run already (" + trace + "): name another directory, or pass --overwrite");
}

void prepare_output_dir(const std::string& path, const std::string& resolved_config) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw Error("job.output_dir = \"" + path + "\" cannot be made: " + error.message());
  for (const char* trace : traces) {
    std::filesystem::remove_all(std::filesystem::path(path) / trace, error);
    if (error) throw Error(path + "/" + trace + " of the former run cannot be removed: " + error.message());
  }
  std::ofstream file(std::filesystem::path(path) / "config.toml");
  file << resolved_config;
  file.flush();
  if (!file) throw Error(path + "/config.toml cannot be written: is the disk full, or the directory read-only?");
}

}  // namespace zero
