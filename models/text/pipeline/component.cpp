#include "models/text/pipeline/component.h"

#include <memory>

#include "base/error.h"
#include "base/log.h"
#include "base/utf8.h"
#include "models/text/pipeline/unicode/pattern.h"

namespace zero {

constexpr const char* remedy = "; take another tokenizer, or write token ids to a .bin file by Hugging Face's library";

Component::Component(const nlohmann::json& value, std::string path, std::string name)
    : value_(value), path_(std::move(path)), name_(std::move(name)) {
  if (!value.is_object()) throw InputError(text(place(), " must be an object"));
}

std::string Component::type() { return get<std::string>("type"); }

bool Component::has(const char* key) const {
  const auto found = value_.find(key);
  return found != value_.end() && !found->is_null();
}

void Component::require(const char* key) {
  if (!has(key)) refuse(key, "is missing");
}

const nlohmann::json& Component::value(const char* key) {
  require(key);
  used_.insert(key);
  return value_[key];
}

std::string Component::character(const char* key) {
  const auto one = get<std::string>(key);
  if (one.empty() || first_character(one).size() != one.size()) refuse(key, "must be one character");
  return one;
}

std::size_t Component::count(const char* key) {
  const auto number = get<std::int64_t>(key);
  if (number < 0 || number > 1 << 20) refuse(key, "must be a small number, and none below 0");
  return static_cast<std::size_t>(number);
}

std::vector<Component> Component::list(const char* key) {
  const nlohmann::json& items = value(key);
  if (!items.is_array()) refuse(key, "must be a list");
  std::vector<Component> components;
  for (std::size_t i = 0; i < items.size(); ++i)
    components.emplace_back(items[i], path_, text(name_of(key), "[", i, "]"));
  return components;
}

std::unique_ptr<const Pattern> Component::pattern(const char* key) {
  Component pattern(value(key), path_, name_of(key));
  const bool regex = pattern.has("Regex");
  const auto content = pattern.get<std::string>(regex ? "Regex" : "String");
  pattern.finish();
  return regex ? regex_pattern(content, pattern.place()) : string_pattern(content, pattern.place());
}

void Component::finish() const {
  for (const auto& [key, value] : value_.items())
    if (!used_.contains(key)) refuse(key.c_str(), text("is not known here, and could change ids", remedy));
}

void Component::require_room(std::size_t size, const std::string& place) {
  constexpr std::size_t most = std::size_t{1} << 30;
  if (size > most) throw InputError(text(place, " makes ", size, " bytes of a text; ", most, " are the most"));
}

void Component::refuse_type(std::string_view known) {
  refuse("type", text("is ", value_["type"].dump(), ", which is not executed here; known are ", known, remedy));
}

void Component::refuse(const char* key, std::string_view what) const {
  throw InputError(text(place(), ": \"", key, "\" ", what));
}

}  // namespace zero
