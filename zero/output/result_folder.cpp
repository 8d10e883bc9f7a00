#include "zero/output/result_folder.h"

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/log.h"
#include "zero/output/run_mark.h"

namespace zero {

ResultFolder::ResultFolder(std::string path, std::shared_ptr<FileCalls> calls)
    : path_(std::move(path)), calls_(std::move(calls)) {
  const FileFacts::Kind kind = facts_of(path_, *calls_).kind;
  existed_ = kind != FileFacts::Kind::absent;
  was_empty_ = !existed_ || (kind == FileFacts::Kind::directory && is_empty_but_for_unpublished(path_, *calls_));
  if (is_marked(path_, Mark::result, *calls_)) former_ = files();
}

ResultFolder::~ResultFolder() {
  if (finished_ || !was_empty_) return;
  try {
    clear_result_folder(path_, *calls_);
    if (existed_) calls_->make_directory(path_);
  } catch (const std::exception& error) {
    log_warning(error.what());
  }
}

void ResultFolder::mark() { mark_folder(path_, Mark::result, *calls_); }

void ResultFolder::finish() {
  finished_ = true;
  const std::map<std::string, Stamp> now = files();
  for (const auto& [name, stamp] : former_) {
    const auto found = now.find(name);
    if (found == now.end() || found->second != stamp) continue;
    remove_file(path_ + "/" + name, *calls_);
  }
}

std::map<std::string, ResultFolder::Stamp> ResultFolder::files() const {
  std::map<std::string, Stamp> found;
  for (const std::string& name : names_in(path_, *calls_)) {
    if (!is_result_file(name)) continue;
    const FileFacts facts = facts_of(path_ + "/" + name, *calls_, Links::kept);
    if (facts.kind != FileFacts::Kind::absent && facts.kind != FileFacts::Kind::directory)
      found[name] = {facts.inode, facts.written};
  }
  return found;
}

}  // namespace zero
