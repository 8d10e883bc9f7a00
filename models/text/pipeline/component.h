#pragma once
// Component: one part of a tokenizer.json, read key by key. Unread keys are an error, since they could change ids.
// Include this in .cpp files only, since it includes nlohmann-json. Does not include LibTorch.
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_text.h"

namespace zero {

class Pattern;

class Component {
 public:
  /// `path` is the file's path, and `name` the value's name in the file ("normalizer"). Throws InputError if the value
  /// is not an object.
  Component(const nlohmann::json& value, std::string path, std::string name);

  /// "PATH: normalizer", the beginning of messages.
  std::string place() const { return path_ + ": " + name_; }
  const std::string& path() const { return path_; }
  std::string type();
  bool has(const char* key) const;  // and the value is not null

  /// Throws InputError if the key is missing or null, or its value has another type. T is bool, std::int64_t, double,
  /// std::string, std::vector<std::string>.
  template <class T>
  T get(const char* key) {
    require(key);
    return get<T>(key, T{});
  }
  template <class T>
  T get(const char* key, T otherwise) {
    used_.insert(key);
    return json_value<T>(value_, key, std::move(otherwise), place());
  }
  /// character() reads a string of one character. count() reads a small non-negative integer.
  std::string character(const char* key);
  std::size_t count(const char* key);

  const nlohmann::json& value(const char* key);  // throws if the key is missing
  std::string name_of(const char* key) const { return name_ + "." + key; }
  std::vector<Component> list(const char* key);
  /// Reads {"String": "..."} or {"Regex": "..."}.
  std::unique_ptr<const Pattern> pattern(const char* key);

  /// Accepts a key that does not affect ids.
  void pass_over(const char* key) { used_.insert(key); }
  /// Throws InputError, whose message begins with `place`, if a step would make a text or its ids larger than 1 GiB.
  static void require_room(std::size_t size, const std::string& place);
  /// Throws InputError for a key that was not read. Call it last.
  void finish() const;
  /// Throws InputError, whose message says that the type is none of `known`.
  [[noreturn]] void refuse_type(std::string_view known);
  /// Throws InputError: PATH: NAME: "KEY" WHAT.
  [[noreturn]] void refuse(const char* key, std::string_view what) const;

 private:
  void require(const char* key);

  const nlohmann::json& value_;
  std::string path_, name_;
  std::set<std::string, std::less<>> used_;
};

}  // namespace zero
