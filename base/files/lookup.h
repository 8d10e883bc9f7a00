#pragma once
// Lookups: whether a path exists and what it names. An error is not an absence: a lookup that fails for a transient
// reason, as on a file server, is retried for three seconds. Then it is refused.
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/file_calls.h"

namespace zero {

/// A file or folder that cannot be looked up or read. Its contents are unknown.
class UnreadableError : public InputError {
 public:
  using InputError::InputError;
};

/// True if a call that failed for this reason may succeed later. False if the reason is an answer (ENOENT, ENOTDIR).
bool may_pass(int reason);

/// Throws UnreadableError "PATH: cannot be WHAT: REASON; REMEDY" for a read-only call.
[[noreturn]] void refuse_call(const std::string& path, const std::string& what, int reason = errno);

/// Retries `call` for three seconds while it fails (-1) for a transient reason. Returns the last result, with its
/// errno. Only for read-only calls: a failed write may have been done in part.
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

/// Does the same, and throws UnreadableError (refuse_call) instead of returning a failure.
template <class Call>
auto answer_of(FileCalls& calls, const std::string& path, const std::string& what, const Call& call) {
  const auto result = patiently(calls, call);
  if (result < 0) refuse_call(path, what);
  return result;
}

/// These throw UnreadableError if the system gives no answer.
FileFacts facts_of(const std::string& path, FileCalls& calls, Links links = Links::followed);
FileFacts facts_of(const std::string& path, Links links = Links::followed);
inline bool is_there(const std::string& path) { return facts_of(path).kind != FileFacts::Kind::absent; }
inline bool is_file(const std::string& path) { return facts_of(path).kind == FileFacts::Kind::file; }
inline bool is_folder(const std::string& path) { return facts_of(path).kind == FileFacts::Kind::directory; }

/// True if this process may use the path in the way of `mode` (R_OK, W_OK, X_OK of access(2)). False, with errno, if
/// the system says that it may not. Throws UnreadableError if there is no answer.
bool may_access(const std::string& path, int mode);

/// The names in a folder, sorted. Empty if the folder does not exist.
std::vector<std::string> names_in(const std::string& folder, FileCalls& calls);
std::vector<std::string> names_in(const std::string& folder);

/// Locks a folder against every other holder (FileCalls::lock_directory) and returns its descriptor. Returns -1, with
/// errno, for an answer. The answers: another one holds it (EWOULDBLOCK), the folder is absent (ENOENT), or the file
/// system has no locks (ENOLCK, ENOSYS, ENOTSUP). Throws UnreadableError if there is no answer.
int lock_folder(const std::string& folder, FileCalls& calls);

/// True if both paths lead to the same existing file or folder.
bool is_same_place(const std::string& a, const std::string& b);

/// The path with its links resolved, as far as it exists (std::filesystem::weakly_canonical).
std::string real_path(const std::string& path);

}  // namespace zero
