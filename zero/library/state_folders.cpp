#include "zero/library/state_folders.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/log.h"

namespace zero {
namespace {

/// One key per folder, however its path is written.
std::string key_of(const std::string& folder) {
  const std::filesystem::path path(real_path(std::filesystem::absolute(folder).lexically_normal().string()));
  return (path.has_filename() ? path : path.parent_path()).string();
}

/// Returns true if all of `these` are in `owners` under the same names, even if they were destroyed.
bool are_among(const StateOwners& these, const StateOwners& owners) {
  return std::ranges::all_of(these, [&](const auto& one) {
    const auto found = owners.find(one.first);
    return found != owners.end() && !found->second.owner_before(one.second) && !one.second.owner_before(found->second);
  });
}

bool are_gone(const StateOwners& owners) {
  return std::ranges::all_of(owners, [](const auto& owner) { return owner.second.expired(); });
}

constexpr const char* remedy =
    ": give each model a folder of its own, or keep their states together, as one zero::Checkpoint";

}  // namespace

StateFolders::~StateFolders() {
  for (const auto& [path, folder] : folders_)
    if (folder.lock >= 0) calls_.close(folder.lock);
}

bool StateFolders::lock(const std::string& folder) {
  const std::string key = key_of(folder);
  if (folders_.contains(key)) return true;
  const int lock = lock_folder(key, calls_);
  const int reason = errno;
  if (lock < 0 && reason == ENOENT) return false;
  if (lock < 0 && reason == EWOULDBLOCK)
    throw InputError(folder +
                     ": another running program keeps its states there: wait for its end, or name another folder");
  if (lock < 0)
    log_warning(folder, ": its file system has no locks (", std::strerror(reason),
                "), so nothing keeps a second program from saving its states there");
  folders_[key].lock = lock;
  return true;
}

const StateOwners* StateFolders::owners_of(const std::string& folder) const {
  const auto found = folders_.find(key_of(folder));
  return found == folders_.end() || found->second.owners.empty() ? nullptr : &found->second.owners;
}

void StateFolders::check_save(const std::string& folder, const StateOwners& owners) const {
  const StateOwners* const others = owners_of(folder);
  if (others && !are_among(*others, owners))
    throw InputError(folder + ": holds the state of another model of this program, which would be replaced" + remedy);
}

void StateFolders::check_load(const std::string& folder, const StateOwners& owners) const {
  const StateOwners* const others = owners_of(folder);
  if (others && !are_among(*others, owners) && !are_gone(*others))
    throw InputError(folder + ": holds the state of another model of this program" + remedy +
                     "; model.load(tensors) copies the values of one model into another");
}

void StateFolders::set_owners(const std::string& folder, const StateOwners& owners) {
  folders_[key_of(folder)].owners = owners;
}

}  // namespace zero
