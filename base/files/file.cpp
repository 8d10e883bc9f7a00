#include "base/files/file.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/files/transfer.h"
#include "base/log.h"

namespace zero {

File File::open(const std::string& path) { return {path, std::make_shared<FileCalls>(), Links::followed}; }
File File::open(const std::string& path, FileCalls& calls, Links links) { return {path, unowned(calls), links}; }

File::File(std::string path, std::shared_ptr<FileCalls> calls, Links links)
    : path_(std::move(path)),
      calls_(std::move(calls)),
      descriptor_(answer_of(*calls_, path_, "read", [&] { return calls_->open(path_, links); })) {
  try {
    answer_of(*calls_, path_, "looked at", [&] { return calls_->look(descriptor_, facts_); });
    if (facts_.kind != FileFacts::Kind::file) throw InputError(text(path_, ": is no regular file"));
  } catch (...) {
    calls_->close(descriptor_);
    throw;
  }
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)),
      calls_(std::move(other.calls_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      facts_(other.facts_) {}

File::~File() {
  if (descriptor_ >= 0) calls_->close(descriptor_);
}

unsigned File::mode() const {
  const bool for_all = facts_.mode & 0004, own_group = facts_.group == ::getegid();
  return facts_.mode & (for_all || own_group ? 0666 : 0600);
}

bool File::changed() const {
  FileFacts now;
  answer_of(*calls_, path_, "looked at", [&] { return calls_->look(descriptor_, now); });
  return now.bytes != facts_.bytes || now.written != facts_.written;
}

void File::read_at(void* to, std::int64_t bytes, std::int64_t offset) const {
  const std::int64_t moved = read_up_to(to, bytes, offset);
  if (moved == bytes) return;
  throw InputError(text(path_, ": ends at byte ", offset + moved, ", ", bytes - moved,
                        " bytes before it should; was it cut short?"));
}

std::int64_t File::read_up_to(void* to, std::int64_t bytes, std::int64_t offset) const {
  const Transfer got = read_all(*calls_, descriptor_, to, bytes, offset);
  if (got.reason) refuse_call(path_, text("read at byte ", offset + got.moved), got.reason);
  return got.moved;
}

}  // namespace zero
