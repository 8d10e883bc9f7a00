#pragma once
// ConfigFields: a config.json while a family reads it: typed values by name, and which fields were asked for. What nobody
// asked for and is known to change the results of decoders is refused at the end. For .cpp files only: it brings
// nlohmann-json with it.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace zero {

class ConfigFields {
 public:
  /// `path` is for messages. `file` must be an object and outlive this.
  ConfigFields(const nlohmann::json& file, std::string path) : file_(file), path_(std::move(path)) {}

  /// The value; nullptr where the field is absent or null. Counts as asked for.
  const nlohmann::json* find(const std::string& name);
  /// These leave `value` as it is where the field is absent or null. InputError for another type.
  void integer(const std::string& name, std::int64_t& value);
  void number(const std::string& name, double& value);
  void flag(const std::string& name, bool& value);
  void word(const std::string& name, std::string& value);
  /// Of a field that is not there; of one that is there and null.
  bool is_absent(const std::string& name) const { return !file_.contains(name); }
  bool is_null(const std::string& name) const { return file_.contains(name) && file_[name].is_null(); }
  /// The integer of a field that must be there.
  void required(const std::string& name, std::int64_t& value);
  /// InputError unless the field is absent, null or the one value (JSON) that is done here.
  void only(const std::string& name, const std::string& accepted);

  /// InputError for fields that nobody asked for and that change the result of some decoder (windows, dropout, soft
  /// caps, experts, ...), unless their value says that the thing is absent.
  void refuse_the_rest() const;
  /// Those asked for, as the text of a JSON object; without the tokens that begin and end a text.
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
