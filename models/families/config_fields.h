#pragma once
// ConfigFields: a config.json while a family reads it. It returns typed values by name and records which fields were
// read. At the end it rejects unread fields that are known to change a decoder's results. Include this in .cpp files
// only, since it includes nlohmann-json.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace zero {

class ConfigFields {
 public:
  /// Messages name `path`. `file` must be an object and must outlive this.
  ConfigFields(const nlohmann::json& file, std::string path) : file_(file), path_(std::move(path)) {}

  /// The value, or nullptr if the field is absent or null. The field then counts as read.
  const nlohmann::json* find(const std::string& name);
  /// These functions leave `value` unchanged if the field is absent or null. They throw InputError if the field has
  /// another type.
  void integer(const std::string& name, std::int64_t& value);
  void number(const std::string& name, double& value);
  void flag(const std::string& name, bool& value);
  void word(const std::string& name, std::string& value);
  /// is_absent(): the field is missing. is_null(): the field is present, and its value is null.
  bool is_absent(const std::string& name) const { return !file_.contains(name); }
  bool is_null(const std::string& name) const { return file_.contains(name) && file_[name].is_null(); }
  /// Reads a mandatory integer field.
  void required(const std::string& name, std::int64_t& value);
  /// Throws InputError unless the field is absent, null or `accepted` (JSON), the one supported value.
  void only(const std::string& name, const std::string& accepted);

  /// Throws InputError for unread fields that change some decoder's results (windows, dropout, soft caps, experts,
  /// ...). Values that switch the feature off are allowed.
  void refuse_the_rest() const;
  /// The fields that were read, as the text of a JSON object. The tokens that begin and end a text are omitted.
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
