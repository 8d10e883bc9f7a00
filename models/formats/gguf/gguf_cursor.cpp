#include "models/formats/gguf/gguf_cursor.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

constexpr std::int64_t read_ahead = 1 << 20;

}  // namespace

std::int64_t GgufCursor::bytes_left() const { return std::min(file_.size(), gguf_max_head) - place_; }

void GgufCursor::refuse(std::string_view rule) const {
  throw InputError(text(file_.path(), ": byte ", place_, " of the GGUF file: ", rule));
}

void GgufCursor::refuse_content(std::string_view rule) const { throw InputError(text(file_.path(), ": ", rule)); }

void GgufCursor::take(void* to, std::int64_t bytes) {
  if (bytes > bytes_left())
    refuse(
        file_.size() > gguf_max_head
            ? text("the head is longer than ", gguf_max_head, " bytes")
            : text(bytes, " more bytes are announced than the file has; it was cut short: copy or download it again"));
  const auto held = buffer_begin_ + static_cast<std::int64_t>(buffer_.size());
  if (place_ < buffer_begin_ || place_ + bytes > held) {
    buffer_.resize(static_cast<std::size_t>(std::min(std::max(bytes, read_ahead), bytes_left())));
    file_.read_at(buffer_.data(), static_cast<std::int64_t>(buffer_.size()), place_);
    buffer_begin_ = place_;
  }
  std::memcpy(to, buffer_.data() + (place_ - buffer_begin_), static_cast<std::size_t>(bytes));
  place_ += bytes;
}

std::string GgufCursor::take_text(std::int64_t most) {
  const auto length = take<std::uint64_t>();
  if (length > static_cast<std::uint64_t>(std::min(most, bytes_left())))
    refuse(text("a text of ", length, " bytes, where ", std::min(most, bytes_left()), " are possible"));
  std::string value(static_cast<std::size_t>(length), '\0');
  take(value.data(), static_cast<std::int64_t>(length));
  return value;
}

std::int64_t GgufCursor::take_count(std::int64_t bytes_each, std::string_view what) {
  const auto count = take<std::uint64_t>();
  if (count > static_cast<std::uint64_t>(bytes_left() / bytes_each))
    refuse(text(count, " ", what, " are announced, more than the file has room for"));
  return static_cast<std::int64_t>(count);
}

}  // namespace zero
