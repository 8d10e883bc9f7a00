#pragma once
// JsonList: splits a file that is one JSON list into its objects. Holds one object at a time. No LibTorch.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace zero {

class JsonList {
 public:
  /// `take` gets each object's text and its number, which counts from 1. The text has balanced brackets and strings,
  /// but is not parsed yet. Messages begin with `path`. If `objects_before` > 0, the bytes come after that many objects
  /// and a comma.
  JsonList(std::string path, std::function<void(std::string_view object, std::int64_t number)> take,
           std::int64_t max_object_bytes, std::int64_t objects_before = 0);

  /// Adds the file's next bytes. Throws InputError if the file is not a list of objects, or if an object exceeds
  /// max_object_bytes.
  void add(std::string_view bytes);

  /// True if the last byte was the comma after an object, or a blank after that comma.
  bool between() const { return place_ == Place::next; }

  /// Call it at the end of the file. Throws InputError if the list is not closed.
  void finish() const;

 private:
  enum class Place : std::uint8_t {
    before,
    first,
    next,
    behind,
    inside,
    after
  };  // the parts of a list that may come next
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
