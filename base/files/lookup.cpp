#include "base/files/lookup.h"

#include <linux/magic.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/log.h"

namespace zero {
namespace {

bool is_absence(int reason) { return reason == ENOENT || reason == ENOTDIR; }

const char* reading_remedy(int reason) {
  switch (reason) {
    case EIO:
      return "; its disk or file server fails: look at the system's log, and start again when it is back";
    case ESTALE:
      return "; its file server knows it no more: start again, or mount it anew";
    case EMFILE:
    case ENFILE:
      return "; raise the limit of open files (ulimit -n)";
    case EACCES:
    case EPERM:
      return "; let this user read it and the folders above it";
    case ENOMEM:
      return "; the node has no memory left";
    case ENOENT:
    case ENOTDIR:
      return "; its folder must stay in place, and all nodes of a run must share it";
    default:
      return "";
  }
}

}  // namespace

bool may_pass(int reason) {
  switch (reason) {
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case EEXIST:
    case ENOTEMPTY:
    case ELOOP:
    case ENAMETOOLONG:
    case EINVAL:
    case EBADF:
    case ENXIO:
    case EOVERFLOW:
    case ENOSYS:
    case EOPNOTSUPP:
      return false;
    default:
      return true;
  }
}

void refuse_call(const std::string& path, const std::string& what, int reason) {
  throw UnreadableError(text(path, ": cannot be ", what, ": ", std::strerror(reason),
                             may_pass(reason) ? " (tried for three seconds)" : "", reading_remedy(reason)));
}

FileFacts facts_of(const std::string& path, FileCalls& calls, Links links) {
  FileFacts facts;
  const int result = patiently(calls, [&] { return calls.look(path, links, facts); });
  if (result >= 0) return facts;
  if (!is_absence(errno)) refuse_call(path, "looked at");
  return {};
}

FileFacts facts_of(const std::string& path, Links links) {
  FileCalls calls;
  return facts_of(path, calls, links);
}

std::vector<std::string> names_in(const std::string& folder, FileCalls& calls) {
  std::vector<std::string> names;
  const int result = patiently(calls, [&] { return calls.list(folder, names); });
  if (result < 0 && !is_absence(errno)) refuse_call(folder, "listed");
  if (result < 0) names.clear();
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> names_in(const std::string& folder) {
  FileCalls calls;
  return names_in(folder, calls);
}

bool belongs_to_kernel(const std::string& path) {
  struct statfs system {};
  return statfs(path.c_str(), &system) == 0 && (system.f_type == PROC_SUPER_MAGIC || system.f_type == SYSFS_MAGIC);
}

bool may_access(const std::string& path, int mode) {
  FileCalls calls;
  int reason = 0;
  answer_of(calls, path, "looked at", [&] {
    reason = ::access(path.c_str(), mode) == 0 ? 0 : errno;
    return reason == 0 || reason == EACCES || reason == EPERM || reason == EROFS ? 0 : -1;
  });
  errno = reason;
  return reason == 0;
}

int lock_folder(const std::string& folder, FileCalls& calls) {
  int file = -1, reason = 0;
  answer_of(calls, folder, "locked", [&] {
    file = calls.lock_directory(folder);
    reason = file < 0 ? errno : 0;
    const bool answers = reason == 0 || reason == EWOULDBLOCK || reason == ENOENT || reason == ENOLCK ||
                         reason == ENOSYS || reason == ENOTSUP;
    return answers ? 0 : -1;
  });
  errno = reason;
  return file;
}

bool is_same_place(const std::string& a, const std::string& b) {
  const FileFacts of_a = facts_of(a), of_b = facts_of(b);
  return of_a.kind != FileFacts::Kind::absent && of_a.device == of_b.device && of_a.inode == of_b.inode;
}

std::string real_path(const std::string& path) {
  FileCalls calls;
  std::filesystem::path real;
  answer_of(calls, path, "looked at", [&] {
    std::error_code error;
    real = std::filesystem::weakly_canonical(path, error);
    errno = error.value();
    return error ? -1 : 0;
  });
  return real.string();
}

}  // namespace zero
