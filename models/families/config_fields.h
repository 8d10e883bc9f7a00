#pragma once
// ConfigFields: a config.json while a family reads it. It gives typed values by name and records the requested fields.
// At the end it refuses fields that nobody requested and that are known to change the results of decoders. For .cpp
// files only: it includes nlohmann-json.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace zero {

class ConfigFields {
 public:
  /// `path` is for messages. `file` must be an object and outlive this.
  ConfigFields(const nlohmann::json& file, std::string path) : file_(file), path_(std::move(path)) {}

  /// The value, or nullptr if the field is absent or null. Counts as a request.
  const nlohmann::json* find(const std::string& name);
  /// These leave `value` as it is if the field is absent or null. They throw InputError for another type.
  void integer(const std::string& name, std::int64_t& value);
  void number(const std::string& name, double& value);
  void flag(const std::string& name, bool& value);
  void word(const std::string& name, std::string& value);
  /// True if the field is missing, and true if it is present and null.
  bool is_absent(const std::string& name) const { return !file_.contains(name); }
  bool is_null(const std::string& name) const { return file_.contains(name) && file_[name].is_null(); }
  /// The integer of a mandatory field.
  void required(const std::string& name, std::int64_t& value);
  /// Throws InputError unless the field is absent, null or `accepted` (JSON), the one supported value.
  void only(const std::string& name, const std::string& accepted);

  /// Throws InputError for fields that nobody requested and that change the result of some decoder (windows, dropout,
  /// soft caps, experts, ...). Values that switch the feature off are allowed.
  void refuse_the_rest() const;
  /// The requested fields as the text of a JSON object, without the tokens that begin and end a text.
  std::string used() const;

  bool was_asked_for(const std::string& name) const { return asked_.contains(name); }

  const std::string& path() const { return path_; }
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  const nlohmann::json& file_;
  std::string path_;
  std::set<std::string> asked_;
};

}  // namespace zero
