#include "base/files/new_file.h"

#include <sys/random.h>

#include <cstdio>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace zero {
namespace {

constexpr std::string_view temporary_mark = ".tmp-";
constexpr std::size_t random_digits = 16;

std::string random_name(const std::string& path) {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number)
    throw Error(path + ": the system gives no random number for a temporary name");
  char digits[random_digits + 1];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number));
  return path + std::string(temporary_mark) + digits;
}

}  // namespace

NewFile::NewFile(const std::string& path, unsigned mode, std::shared_ptr<FileCalls> calls)
    : calls_(std::move(calls)), path_(path), file_(*calls_, random_name(path), DurableFile::Buffered{mode}) {}

NewFile::~NewFile() {
  if (!published_) calls_->remove(file_.path());
}

void NewFile::publish() {
  ZERO_CHECK(!published_, path_ + " was published before");
  file_.finish();
  check_call(calls_->rename(file_.path(), path_), file_.path(), "renamed");
  published_ = true;
  // The rename is done. If only the sync of the folder fails, the file is complete, but the name may be lost in a power
  // cut.
  calls_->sync_directory(std::filesystem::absolute(path_).parent_path().string());
}

bool is_unpublished(const std::string& name) {
  if (name.size() < temporary_mark.size() + random_digits) return false;
  const std::string_view digits = std::string_view(name).substr(name.size() - random_digits);
  return digits.find_first_not_of("0123456789abcdef") == std::string_view::npos &&
         std::string_view(name).substr(0, name.size() - random_digits).ends_with(temporary_mark);
}

}  // namespace zero
