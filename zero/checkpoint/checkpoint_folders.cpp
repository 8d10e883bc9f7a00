#include "zero/checkpoint/checkpoint_folders.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/files/make_folder.h"
#include "base/log.h"

namespace zero {
namespace {

constexpr std::string_view prefix = "step-", temporary = ".tmp", damaged = ".damaged", later = ".later",
                           replaced = ".replaced", kept = ".kept";

std::optional<std::int64_t> step_of(std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  if (name.size() < 8 || name.size() > 18 || name.find_first_not_of("0123456789") != std::string_view::npos)
    return std::nullopt;
  return std::stoll(std::string(name));
}

bool is_part(std::string_view name) {
  return name == "manifest.json" || (name.starts_with("rank-") && name.ends_with(".states"));
}

/// Returns the step in a name with this suffix.
std::optional<std::int64_t> step_of(std::string_view name, std::string_view end) {
  return name.ends_with(end) ? step_of(name.substr(0, name.size() - end.size())) : std::nullopt;
}

}  // namespace

std::string CheckpointFolders::path(std::int64_t step) const {
  char name[32];
  std::snprintf(name, sizeof name, "/step-%08lld", static_cast<long long>(step));
  return root_ + name;
}

std::vector<std::int64_t> CheckpointFolders::steps() const {
  std::vector<std::int64_t> steps = names();
  std::erase_if(steps, [&](std::int64_t step) { return !is_complete(step); });
  return steps;
}

bool CheckpointFolders::is_complete(const std::string& folder) const {
  const std::vector<std::string> files = names_in(folder, calls_);
  return std::binary_search(files.begin(), files.end(), "manifest.json");
}

std::vector<std::int64_t> CheckpointFolders::names() const {
  std::vector<std::int64_t> steps;
  for (const std::string& name : names_in(root_, calls_))
    if (const auto step = step_of(name)) steps.push_back(*step);
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

void CheckpointFolders::make_root() {
  std::filesystem::path root = std::filesystem::absolute(root_).lexically_normal();
  if (!root.has_filename()) root = root.parent_path();  // a/b/
  if (make_folder(calls_, root.string())) {
    // The run's own directory may be just as new.
    const std::filesystem::path above = root.parent_path().parent_path();
    check_call(calls_.sync_directory(above.string()), above.string(), "synced");
  }
}

void CheckpointFolders::begin(std::int64_t step) {
  make_root();
  take_back();
  remove(temporary_path(step));
  check_call(calls_.make_directory(temporary_path(step)), temporary_path(step), "made");
}

void CheckpointFolders::publish(std::int64_t step) {
  check_call(calls_.sync_directory(temporary_path(step)), temporary_path(step), "synced");
  int renamed = calls_.rename(temporary_path(step), path(step));
  if (renamed < 0 && (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR)) {
    if (is_complete(step)) return replace(step);
    put_aside(path(step));
    renamed = calls_.rename(temporary_path(step), path(step));
  }
  check_call(renamed, temporary_path(step), "renamed");
  check_call(calls_.sync_directory(root_), root_, "synced");
}

void CheckpointFolders::replace(std::int64_t step) {
  std::string former = temporary_path(step);
  if (calls_.exchange(former, path(step)) < 0) {
    if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) fail_call(former, "renamed");
    former = path(step) + std::string(replaced);
    remove(former);
    check_call(calls_.rename(path(step), former), path(step), "renamed");
    if (calls_.rename(temporary_path(step), path(step)) < 0) {
      const int reason = errno;
      calls_.rename(former, path(step));
      fail_call(temporary_path(step), "renamed", reason);
    }
  }
  check_call(calls_.sync_directory(root_), root_, "synced");
  try {
    remove(former);
  } catch (const Error& error) {
    log_warning("what ", path(step), " has replaced stays: ", error.what());
  }
}

std::vector<CheckpointFolders::Complete> CheckpointFolders::replaced_ones() const {
  std::vector<Complete> found;
  for (const std::string& name : names_in(root_, calls_)) {
    const std::optional<std::int64_t> step = step_of(name, replaced);
    const std::string folder = root_ + "/" + name;
    if (step && !is_complete(*step) && is_complete(folder)) found.push_back({*step, folder});
  }
  return found;
}

std::vector<CheckpointFolders::Complete> CheckpointFolders::resumable() const {
  std::vector<Complete> all = replaced_ones();
  for (const std::int64_t step : steps()) all.push_back({step, path(step)});
  std::ranges::sort(all, std::ranges::greater(), &Complete::step);
  return all;
}

int CheckpointFolders::take_back() {
  const std::vector<Complete> all = replaced_ones();
  for (const auto& [step, former] : all) {
    int renamed = calls_.rename(former, path(step));
    if (renamed < 0 && (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR)) {
      put_aside(path(step));
      renamed = calls_.rename(former, path(step));
    }
    check_call(renamed, former, "renamed");
    check_call(calls_.sync_directory(root_), root_, "synced");
  }
  return int(all.size());
}

void CheckpointFolders::prune(std::int64_t keep) {
  const std::vector<std::int64_t> all = steps();
  for (std::size_t i = static_cast<std::size_t>(std::max<std::int64_t>(keep, 1)); i < all.size(); ++i) {
    // A complete checkpoint must not lose files while it has its final name.
    remove(temporary_path(all[i]));
    check_call(calls_.rename(path(all[i]), temporary_path(all[i])), path(all[i]), "renamed");
    check_call(calls_.sync_directory(root_), root_, "synced");
    remove(temporary_path(all[i]));
  }
}

int CheckpointFolders::sweep() {
  int removed = 0;
  for (const std::string& name : names_in(root_, calls_)) {
    const std::optional<std::int64_t> old = step_of(name, replaced);
    if (!step_of(name, temporary) && !(old && is_complete(*old))) continue;
    remove(root_ + "/" + name);
    ++removed;
  }
  return removed;
}

void CheckpointFolders::set_aside(std::int64_t step, Aside as) {
  const std::string aside = path(step) + std::string(as == Aside::damaged ? damaged : later);
  remove(aside);
  check_call(calls_.rename(path(step), aside), path(step), "renamed");
  log_warning(path(step), " is set aside as ", aside, ": remove it when you have looked at it");
}

void CheckpointFolders::discard(std::int64_t step) {
  try {
    remove(temporary_path(step));
  } catch (const Error& error) {
    log_warning("an unfinished checkpoint stays: ", error.what());
  }
}

void CheckpointFolders::remove(const std::string& folder) {
  if (gone(folder)) return;
  for (const std::string& name : names_in(folder, calls_))
    if (is_part(name)) gone(folder + "/" + name);
  if (!gone(folder)) put_aside(folder);
}

// Removes a file, a link or an empty folder; false for a folder that is not empty.
bool CheckpointFolders::gone(const std::string& path) {
  if (calls_.remove(path) == 0 || errno == ENOENT) return true;
  if (errno != ENOTEMPTY && errno != EEXIST) fail_call(path, "removed");
  return false;
}

void CheckpointFolders::put_aside(const std::string& folder) {
  const std::vector<std::string> taken = names_in(root_, calls_);
  const std::string name = std::filesystem::path(folder).stem().string() + std::string(kept);
  std::string free = name;
  for (int number = 2; std::find(taken.begin(), taken.end(), free) != taken.end(); ++number)
    free = text(name, "-", number);
  check_call(calls_.rename(folder, root_ + "/" + free), folder, "renamed");
  log_warning(folder, " holds files that no run writes, which stay in ", root_, "/", free);
}

}  // namespace zero
