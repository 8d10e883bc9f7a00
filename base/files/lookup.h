#pragma once
// Lookups: whether a path exists and what kind of file it names. A failed lookup does not mean that the path is
// missing. A lookup that fails for a transient reason, as on a file server, is retried for three seconds and then
// throws.
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/file_calls.h"

namespace zero {

/// A file or folder cannot be looked up or read, so its contents are unknown.
class UnreadableError : public InputError {
 public:
  using InputError::InputError;
};

/// True if a call that failed with this errno may succeed later. False if the errno is definitive (ENOENT, ENOTDIR).
bool may_pass(int reason);

/// Throws UnreadableError "PATH: cannot be WHAT: REASON; REMEDY" for a read-only call that failed.
[[noreturn]] void refuse_call(const std::string& path, const std::string& what, int reason = errno);

/// Retries `call` for three seconds while it fails (-1) for a transient reason. Returns the last result, with its
/// errno. Use it for read-only calls only: a failed write may have been partly done.
template <class Call>
auto patiently(FileCalls& calls, const Call& call) {
  using std::chrono::milliseconds;
  for (milliseconds pause(50);; pause *= 2) {
    auto result = call();
    while (result < 0 && errno == EINTR) result = call();
    if (result >= 0 || !may_pass(errno) || pause > milliseconds(1600)) return result;
    calls.pause(pause);
  }
}

/// Like patiently(), but throws UnreadableError (refuse_call) instead of returning a failure.
template <class Call>
auto answer_of(FileCalls& calls, const std::string& path, const std::string& what, const Call& call) {
  const auto result = patiently(calls, call);
  if (result < 0) refuse_call(path, what);
  return result;
}

/// These functions throw UnreadableError if the lookup fails.
FileFacts facts_of(const std::string& path, FileCalls& calls, Links links = Links::followed);
FileFacts facts_of(const std::string& path, Links links = Links::followed);
inline bool is_there(const std::string& path) { return facts_of(path).kind != FileFacts::Kind::absent; }
inline bool is_file(const std::string& path) { return facts_of(path).kind == FileFacts::Kind::file; }
inline bool is_folder(const std::string& path) { return facts_of(path).kind == FileFacts::Kind::directory; }

/// True if this process may access the path as `mode` says (R_OK, W_OK, X_OK of access(2)). If access is denied,
/// returns false and sets errno. Throws UnreadableError if the lookup fails.
bool may_access(const std::string& path, int mode);

/// True if the kernel makes up the file system at a path (/proc, /sys), which takes no files of users.
bool belongs_to_kernel(const std::string& path);

/// The names in a folder, sorted. Empty if the folder does not exist.
std::vector<std::string> names_in(const std::string& folder, FileCalls& calls);
std::vector<std::string> names_in(const std::string& folder);

/// Locks a folder against every other holder (FileCalls::lock_directory) and returns its descriptor. Returns -1 with
/// errno for a lock that another holder has (EWOULDBLOCK), a missing folder (ENOENT), and a file system without locks
/// (ENOLCK, ENOSYS, ENOTSUP). Throws UnreadableError if the call fails otherwise.
int lock_folder(const std::string& folder, FileCalls& calls);

/// True if both paths lead to the same existing file or folder.
bool is_same_place(const std::string& a, const std::string& b);

/// The path with links resolved in its existing part (std::filesystem::weakly_canonical).
std::string real_path(const std::string& path);

}  // namespace zero
