#include "zero/data/examples/json_list.h"

#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace zero {

JsonList::JsonList(std::string path, std::function<void(std::string_view, std::int64_t)> take,
                   std::int64_t max_object_bytes, std::int64_t objects_before)
    : path_(std::move(path)),
      take_(std::move(take)),
      max_bytes_(max_object_bytes),
      place_(objects_before > 0 ? Place::next : Place::before),
      number_(objects_before) {}

void JsonList::refuse(std::string_view why) const {
  throw InputError(text(path_, ": ", number_ > 0 ? text("behind row ", number_, ": ") : "", why,
                        "; a .json file is one list of examples, [{...}, {...}], or has one example a line"));
}

void JsonList::step(char byte) {
  const bool blank = byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
  switch (place_) {
    case Place::inside:
      object_ += byte;
      if (in_string_) {
        if (!escaped_ && byte == '"') in_string_ = false;
        escaped_ = !escaped_ && byte == '\\';
        return;
      }
      if (byte == '"') in_string_ = true;
      if (byte == '{' || byte == '[') ++depth_;
      if ((byte == '}' || byte == ']') && --depth_ == 0) {
        place_ = Place::behind;
        take_(object_, number_);
        object_.clear();
      }
      return;
    case Place::before:
      if (byte == '[')
        place_ = Place::first;
      else if (!blank)
        refuse("does not begin with [");
      return;
    case Place::first:
    case Place::next:
      if (byte == ']' && place_ == Place::first) {
        place_ = Place::after;
        return;
      }
      if (blank) return;
      if (byte != '{') refuse("is no object");
      place_ = Place::inside;
      object_ = byte;
      depth_ = 1;
      ++number_;
      return;
    case Place::behind:
      if (byte == ',')
        place_ = Place::next;
      else if (byte == ']')
        place_ = Place::after;
      else if (!blank)
        refuse("neither a comma nor the end of the list");
      return;
    case Place::after:
      if (!blank) refuse("something follows the list");
  }
}

void JsonList::add(std::string_view bytes) {
  for (const char byte : bytes) {
    step(byte);
    if (static_cast<std::int64_t>(object_.size()) > max_bytes_)
      throw InputError(text(path_, ": row ", number_, " is longer than ", max_bytes_, " bytes"));
  }
}

void JsonList::finish() const {
  if (place_ != Place::after) refuse("the list does not end; was the file cut short?");
}

}  // namespace zero
