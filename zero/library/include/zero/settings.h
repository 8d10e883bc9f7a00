#pragma once
// Settings: reads the fields of a JSON object by name and type, and can reject fields that were never read.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace zero {

class Settings {
 public:
  /// Throws InputError if the file is unreadable or not a JSON object.
  explicit Settings(const std::string& path);

  bool has(const std::string& name) const;

  // These throw InputError that names the field if it is missing or of another type.
  double number(const std::string& name) const;
  std::int64_t integer(const std::string& name) const;
  bool flag(const std::string& name) const;
  std::string text(const std::string& name) const;
  std::vector<double> numbers(const std::string& name) const;

  /// Accepts a field that the program does not use.
  void ignore(const std::string& name) const;
  /// Reads a text that must be one of `known`. Otherwise throws InputError that names the field, its value and the
  /// known values.
  std::string one_of(const std::string& name, const std::vector<std::string>& known) const;

  /// Throws InputError that names the fields that were never read, if there are any.
  void refuse_others() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace zero
