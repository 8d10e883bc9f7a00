#pragma once
// Lookups: what stands under a path. An error is not an absence: a lookup that fails is made again for three seconds where
// its reason may pass, as on a file server, and is refused then.
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/file_calls.h"

namespace zero {

/// A file or folder that cannot be looked at or read: nothing is known of what it holds.
class UnreadableError : public InputError {
 public:
  using InputError::InputError;
};

/// Whether a call that failed for this reason may succeed later. False where the reason is an answer (ENOENT, ENOTDIR).
bool may_pass(int reason);

/// Throws UnreadableError "PATH: cannot be WHAT: REASON; REMEDY" for a call that changes nothing.
[[noreturn]] void refuse_call(const std::string& path, const std::string& what, int reason = errno);

/// Makes `call` again while it fails (-1) for a reason that may pass, three seconds long. Returns the last result, and
/// errno with it. Only for calls that change nothing: a write that failed may have been done in part.
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

/// The same; UnreadableError (refuse_call) instead of a last failure.
template <class Call>
auto answer_of(FileCalls& calls, const std::string& path, const std::string& what, const Call& call) {
  const auto result = patiently(calls, call);
  if (result < 0) refuse_call(path, what);
  return result;
}

/// UnreadableError from all of these where the system gives no answer.
FileFacts facts_of(const std::string& path, FileCalls& calls, Links links = Links::followed);
FileFacts facts_of(const std::string& path, Links links = Links::followed);
inline bool is_there(const std::string& path) { return facts_of(path).kind != FileFacts::Kind::absent; }
inline bool is_file(const std::string& path) { return facts_of(path).kind == FileFacts::Kind::file; }
inline bool is_folder(const std::string& path) { return facts_of(path).kind == FileFacts::Kind::directory; }

/// Names in a folder, sorted; none where there is no such folder.
std::vector<std::string> names_in(const std::string& folder, FileCalls& calls);
std::vector<std::string> names_in(const std::string& folder);

/// Locks a folder against every other holder (FileCalls::lock_directory) and returns its descriptor. -1, with errno, for an
/// answer: another one holds it (EWOULDBLOCK), there is no such folder (ENOENT), the file system has no locks (ENOLCK,
/// ENOSYS, ENOTSUP). UnreadableError where there is no answer.
int lock_folder(const std::string& folder, FileCalls& calls);

/// Whether two paths lead to one file or folder that is there.
bool is_same_place(const std::string& a, const std::string& b);

/// The path without links, as far as it leads to something (std::filesystem::weakly_canonical).
std::string real_path(const std::string& path);

}  // namespace zero
