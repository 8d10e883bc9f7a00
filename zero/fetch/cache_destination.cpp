#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/files/make_folder.h"
#include "base/json_text.h"
#include "base/log.h"
#include "zero/fetch/destination.h"
#include "zero/fetch/folder_lock.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

class CacheDestination : public Destination {
 public:
  CacheDestination(FileCalls& calls, std::string root, std::string revision, std::string commit)
      : calls_(calls), root_(std::move(root)), revision_(std::move(revision)), commit_(std::move(commit)) {}

  std::string folder() const override { return root_ + "/snapshots/" + commit_; }

  std::int64_t missing_bytes(const HubFile& file) const override {
    return is_blob(file) ? 0 : file.bytes - std::min(file.bytes, facts_of(partial_path(file), calls_).bytes);
  }

  void open() override { lock_.emplace(calls_, root_, blobs()); }

  bool holds(const HubFile& file) const override {
    if (is_blob(file)) return true;
    if (facts_of(blob(file), calls_).kind == FileFacts::Kind::file)
      log_warning(blob(file), ": has another size than the hub's ", file.path, ", and is fetched anew");
    return false;
  }

  // huggingface_hub counts *.incomplete as unfinished, and writes to other names.
  std::string partial_path(const HubFile& file) const override { return blob(file) + ".zero.incomplete"; }

  void publish(PartialFile& partial, const HubFile& file) override { partial.publish(blob(file)); }

  void finish(const std::vector<HubFile>& files) override {
    for (const HubFile& file : files) link(file);
    calls_.sync_directory(folder());
    if (revision_ == commit_) return;
    const fs::path ref = fs::path(root_) / "refs" / revision_;
    make_folder(calls_, ref.parent_path().string());
    write_text_file(ref.string(), commit_);
  }

 private:
  std::string blobs() const { return root_ + "/blobs"; }
  std::string blob(const HubFile& file) const { return blobs() + "/" + file.hash; }
  bool is_blob(const HubFile& file) const {
    const FileFacts facts = facts_of(blob(file), calls_);
    return facts.kind == FileFacts::Kind::file && facts.bytes == file.bytes;
  }

  /// Makes snapshots/COMMIT/PATH a relative link to the blob, so that the cache may move.
  void link(const HubFile& file) {
    const fs::path path = fs::path(folder()) / file.path;
    make_folder(calls_, path.parent_path().string());
    const fs::path target = fs::path(blob(file)).lexically_relative(path.parent_path());
    if (leads_to(path, target, file)) return;
    const std::string temporary = path.string() + ".zero.incomplete";
    if (facts_of(temporary, calls_, Links::kept).kind != FileFacts::Kind::absent) calls_.remove(temporary);
    std::error_code error;
    fs::create_symlink(target, temporary, error);
    if (error)
      throw Error(text(path.string(), ": cannot be made a link: ", error.message(),
                       "; --to FOLDER fetches into a folder without links"));
    check_call(calls_.rename(temporary, path.string()), path.string(), "made a link");
  }

  /// True if the name needs no new link. huggingface_hub puts copies where a file system has no links.
  bool leads_to(const fs::path& path, const fs::path& target, const HubFile& file) const {
    const FileFacts facts = facts_of(path.string(), calls_, Links::kept);
    std::error_code error;
    if (facts.kind == FileFacts::Kind::link) return fs::read_symlink(path, error) == target;
    return facts.kind == FileFacts::Kind::file && facts.bytes == file.bytes;
  }

  FileCalls& calls_;
  std::string root_, revision_, commit_;
  std::optional<FolderLock> lock_;
};

}  // namespace

std::unique_ptr<Destination> cache_destination(FileCalls& calls, const std::string& cache, const Repository& repository,
                                               const std::string& commit) {
  return std::make_unique<CacheDestination>(calls, cache + "/" + repository.cache_name(), repository.revision, commit);
}

}  // namespace zero
