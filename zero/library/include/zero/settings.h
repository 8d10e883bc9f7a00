#pragma once
// Settings: the fields of a JSON object, each asked for by name and type, so that one that nobody asked for can be told of.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace zero {

class Settings {
 public:
  /// InputError when the file cannot be read or is no JSON object.
  explicit Settings(const std::string& path);

  bool has(const std::string& name) const;

  // InputError names the field that is absent or of another type.
  double number(const std::string& name) const;
  std::int64_t integer(const std::string& name) const;
  bool flag(const std::string& name) const;
  std::string text(const std::string& name) const;
  std::vector<double> numbers(const std::string& name) const;

  /// Fields that may be there and mean nothing to the program.
  void ignore(const std::string& name) const;
  /// The text, which must be one of these: InputError names the field, its value and what is known.
  std::string one_of(const std::string& name, const std::vector<std::string>& known) const;

  /// InputError names the fields that nobody asked for.
  void refuse_others() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace zero
