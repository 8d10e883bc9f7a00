#include "zero/data/examples/example_file.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/log.h"
#include "base/utf8.h"
#include "zero/data/examples/json_list.h"

namespace zero {
namespace {

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r\n") == std::string_view::npos; }

// The lines of a .jsonl file, whole, without the mark that may stand at its start.
class Lines {
 public:
  Lines(std::string path, std::function<void(std::string_view, std::int64_t)> take, std::int64_t max_bytes)
      : path_(std::move(path)), take_(std::move(take)), max_bytes_(max_bytes) {}

  void add(std::string_view bytes) {
    for (std::size_t end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
      held_.append(bytes.substr(0, end));
      bytes.remove_prefix(end + 1);
      finish();
      held_.clear();
    }
    held_.append(bytes);
    if (static_cast<std::int64_t>(held_.size()) > max_bytes_)
      throw InputError(
          text(path_, ":", number_ + 1, ": the line is longer than ", max_bytes_, " bytes; an example is one line"));
  }
  void finish() {
    ++number_;
    if (!is_blank(held_)) take_(held_, number_);
  }

 private:
  std::string path_;
  std::function<void(std::string_view, std::int64_t)> take_;
  std::int64_t max_bytes_;
  std::string held_;  // a line's beginning
  std::int64_t number_ = 0;
};

// Gives a file's bytes to `reader` as long as they are wanted.
template <class Reader>
void read_file(const std::string& path, Reader reader, const bool& wanted) {
  const File file = File::open(path);
  std::vector<char> block(1 << 20);
  for (std::int64_t offset = 0; offset < file.size() && wanted;) {
    const std::int64_t count = std::min<std::int64_t>(static_cast<std::int64_t>(block.size()), file.size() - offset);
    file.read_at(block.data(), count, offset);
    std::string_view bytes(block.data(), static_cast<std::size_t>(count));
    if (offset == 0 && bytes.starts_with(byte_order_mark)) bytes.remove_prefix(byte_order_mark.size());
    offset += count;
    reader.add(bytes);
  }
  if (wanted) reader.finish();
}

void read_and_tell(const std::string& path, const std::function<bool(const Example&)>& take, std::int64_t max_bytes,
                   std::set<std::string>* ignored) {
  const bool list = std::filesystem::path(path).extension() == ".json";
  bool wanted = true;
  std::int64_t found = 0;
  const auto take_text = [&](std::string_view content, std::int64_t number) {
    if (!wanted) return;
    ++found;
    wanted = take(parse_example(content, text(path, list ? ": row " : ":", number), ignored));
  };
  if (list)
    read_file(path, JsonList(path, take_text, max_bytes), wanted);
  else
    read_file(path, Lines(path, take_text, max_bytes), wanted);
  if (found == 0) throw InputError(text(path, ": holds no example"));
}

}  // namespace

void read_examples(const std::string& path, const std::function<bool(const Example&)>& take, std::int64_t max_bytes) {
  read_and_tell(path, take, max_bytes, nullptr);
}

std::set<std::string> ignored_keys(const std::string& path, std::int64_t count) {
  std::set<std::string> ignored;
  read_and_tell(
      path, [&](const Example&) { return --count > 0; }, 16 << 20, &ignored);
  return ignored;
}

}  // namespace zero
