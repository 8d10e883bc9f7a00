#pragma once
// JsonList: the objects of a file that is one JSON list, one by one. Only one of them is held at a time. No LibTorch.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace zero {

class JsonList {
 public:
  /// `take` gets each object's text and its number from 1. It is not yet known to be JSON, but that its brackets and
  /// strings end. `path` begins messages. With `objects_before`, the bytes to come go on behind so many objects and a
  /// comma.
  JsonList(std::string path, std::function<void(std::string_view object, std::int64_t number)> take,
           std::int64_t max_object_bytes, std::int64_t objects_before = 0);

  /// The file's next bytes. InputError for what is no list of objects, or an object longer than max_object_bytes.
  void add(std::string_view bytes);

  /// Whether the last byte was the comma behind an object, or a blank after it.
  bool between() const { return place_ == Place::next; }

  /// The file is at its end. InputError when the list is not.
  void finish() const;

 private:
  enum class Place : std::uint8_t {
    before,
    first,
    next,
    behind,
    inside,
    after
  };  // the list's start, an object's, a comma, ...
  void step(char byte);
  [[noreturn]] void refuse(std::string_view why) const;

  std::string path_;
  std::function<void(std::string_view, std::int64_t)> take_;
  std::int64_t max_bytes_;
  Place place_ = Place::before;
  std::string object_;
  std::int64_t number_ = 0;
  int depth_ = 0;
  bool in_string_ = false, escaped_ = false;
};

}  // namespace zero
