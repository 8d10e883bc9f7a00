#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/files/make_folder.h"
#include "base/log.h"
#include "zero/fetch/destination.h"
#include "zero/fetch/folder_lock.h"

namespace zero {
namespace {

constexpr std::int64_t long_read = 1 << 30;  // bytes whose hash takes seconds

bool has_content(FileCalls& calls, const std::string& path, const HubFile& file) {
  ContentHash hash(file);
  hash.add_file(calls, path, file.bytes);
  return hash.finish() == file.hash;
}

class FolderDestination : public Destination {
 public:
  FolderDestination(FileCalls& calls, std::string folder, bool overwrite)
      : calls_(calls), folder_(std::move(folder)), overwrite_(overwrite) {
    while (folder_.size() > 1 && folder_.ends_with("/")) folder_.pop_back();
  }

  std::string folder() const override { return folder_; }

  std::int64_t missing_bytes(const HubFile& file) const override {
    const FileFacts facts = facts_of(path_of(file), calls_);
    if (facts.kind == FileFacts::Kind::file && facts.bytes == file.bytes) return 0;
    return file.bytes - std::min(file.bytes, facts_of(partial_path(file), calls_).bytes);
  }

  void open() override { lock_.emplace(calls_, folder_, inner()); }

  bool holds(const HubFile& file) const override {
    const FileFacts facts = facts_of(path_of(file), calls_);
    if (facts.kind == FileFacts::Kind::absent) return false;
    if (facts.kind != FileFacts::Kind::file)
      throw InputError(text(path_of(file), ": is no file, and a file of the hub has this name; name another folder"));
    if (file.bytes >= long_read) log_info(path_of(file), ": is there; its hash is compared");
    if (facts.bytes == file.bytes && has_content(calls_, path_of(file), file)) return true;
    if (overwrite_) return false;
    throw InputError(text(path_of(file),
                          ": is there and differs from the hub's file: --overwrite replaces it, or name ",
                          "another folder"));
  }

  std::string partial_path(const HubFile& file) const override { return inner() + "/" + file.hash + ".partial"; }

  void publish(PartialFile& partial, const HubFile& file) override {
    make_folder(calls_, std::filesystem::path(path_of(file)).parent_path().string());
    partial.publish(path_of(file));
  }

  void finish(const std::vector<HubFile>&) override { calls_.remove(inner()); }  // fails if it is not empty

 private:
  std::string inner() const { return folder_ + "/.zero_fetch"; }
  std::string path_of(const HubFile& file) const { return folder_ + "/" + file.path; }

  FileCalls& calls_;
  std::string folder_;
  bool overwrite_;
  std::optional<FolderLock> lock_;
};

}  // namespace

std::unique_ptr<Destination> folder_destination(FileCalls& calls, std::string folder, bool overwrite) {
  return std::make_unique<FolderDestination>(calls, std::move(folder), overwrite);
}

}  // namespace zero
