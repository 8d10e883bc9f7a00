#include "zero/library/include/zero/settings.h"

#include <set>

#include "base/error.h"
#include "base/json_text.h"

namespace zero {

struct Settings::Impl {
  std::string path;
  nlohmann::json object;
  std::set<std::string> asked;

  const nlohmann::json& field(const std::string& name) {
    asked.insert(name);
    const auto found = object.find(name);
    if (found == object.end()) throw InputError(path + ": has no field " + name);
    return *found;
  }
  /// Reads the field as a T. `is`: checks the JSON value; `kind`: the required kind, for messages.
  template <typename T>
  T read(const std::string& name, bool (nlohmann::json::*is)() const noexcept, const char* kind) {
    const nlohmann::json& value = field(name);
    if (!(value.*is)()) refuse_json(path, name, kind, value);
    return value.get<T>();
  }
};

Settings::Settings(const std::string& path) : impl_(std::make_shared<Impl>()) {
  impl_->path = path;
  impl_->object = parse_json(read_text_file(path), path);
  if (!impl_->object.is_object()) throw InputError(path + ": must be a JSON object");
}

bool Settings::has(const std::string& name) const { return impl_->object.contains(name); }

double Settings::number(const std::string& name) const {
  return impl_->read<double>(name, &nlohmann::json::is_number, "a number");
}
std::int64_t Settings::integer(const std::string& name) const {
  const nlohmann::json& value = impl_->field(name);
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t(INT64_MAX))
    refuse_json(impl_->path, name, "an integer of 64 bits", value);
  return impl_->read<std::int64_t>(name, &nlohmann::json::is_number_integer, "an integer");
}
bool Settings::flag(const std::string& name) const {
  return impl_->read<bool>(name, &nlohmann::json::is_boolean, "true or false");
}
std::string Settings::text(const std::string& name) const {
  return impl_->read<std::string>(name, &nlohmann::json::is_string, "a string");
}

std::vector<double> Settings::numbers(const std::string& name) const {
  const nlohmann::json& value = impl_->field(name);
  std::vector<double> numbers;
  if (!value.is_array()) refuse_json(impl_->path, name, "a list of numbers", value);
  for (const auto& item : value) {
    if (!item.is_number()) refuse_json(impl_->path, name, "a list of numbers", value);
    numbers.push_back(item.get<double>());
  }
  return numbers;
}

void Settings::ignore(const std::string& name) const { impl_->asked.insert(name); }

std::string Settings::one_of(const std::string& name, const std::vector<std::string>& known) const {
  const std::string value = text(name);
  std::string list;
  for (const std::string& one : known) {
    if (one == value) return value;
    list += (list.empty() ? "\"" : ", \"") + one + "\"";
  }
  refuse_json(impl_->path, name, (known.size() == 1 ? "" : "one of ") + list, impl_->object.at(name));
}

void Settings::refuse_others() const {
  std::string others;
  for (const auto& [name, value] : impl_->object.items())
    if (!impl_->asked.contains(name)) others += (others.empty() ? "" : ", ") + name;
  if (!others.empty())
    throw InputError(impl_->path + ": unknown field " + others + ": it would have no effect; remove it");
}

}  // namespace zero
