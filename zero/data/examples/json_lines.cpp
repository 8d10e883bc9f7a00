#include "zero/data/examples/json_lines.h"

#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r\n") == std::string_view::npos; }

}  // namespace

JsonLines::JsonLines(std::string path, std::function<void(std::string_view line, std::int64_t number)> take,
                     std::int64_t max_line_bytes, std::int64_t lines_before)
    : path_(std::move(path)), take_(std::move(take)), max_bytes_(max_line_bytes), number_(lines_before) {}

void JsonLines::add(std::string_view bytes) {
  for (std::size_t end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
    hold(bytes.substr(0, end));
    bytes.remove_prefix(end + 1);
    finish();
  }
  hold(bytes);
}

void JsonLines::hold(std::string_view bytes) {
  held_.append(bytes);
  if (static_cast<std::int64_t>(held_.size()) > max_bytes_)
    throw InputError(
        text(path_, ":", number_ + 1, ": the line is longer than ", max_bytes_, " bytes; an example is one line"));
}

void JsonLines::finish() {
  ++number_;
  if (!is_blank(held_)) take_(held_, number_);
  held_.clear();
}

}  // namespace zero
