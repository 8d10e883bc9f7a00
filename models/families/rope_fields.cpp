#include "models/families/rope_fields.h"

#include <cmath>
#include <map>

#include "base/error.h"
#include "base/json_text.h"
#include "base/log.h"

namespace zero {
namespace {

using nlohmann::json;

constexpr const char* original_key = "original_max_position_embeddings";

/// Keys that a rope type reads in addition to the common ones.
const std::map<std::string, std::set<std::string>> keys_of_types{
    {"default", {}},
    {"linear", {"factor"}},
    {"llama3", {"factor", "low_freq_factor", "high_freq_factor", original_key}},
    {"yarn",
     {"factor", "attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate", original_key}},
    {"longrope", {"factor", "attention_factor", "short_factor", "long_factor", original_key}},
};

class RopeObject {
 public:
  RopeObject(const json& object, const std::string& type, const RopeRules& rules, const ConfigFields& fields)
      : object_(object), type_(type), rules_(rules), fields_(fields) {}

  bool has(const char* name) const { return object_.contains(name) && !object_[name].is_null(); }
  double number(const char* name, double otherwise) const {
    return json_value<double>(object_, name, otherwise, fields_.path());
  }
  double needed(const char* name) const {
    if (!has(name)) fields_.refuse(text("rope_type \"", type_, "\" needs ", name));
    return number(name, 0);
  }
  bool flag(const char* name, bool otherwise) const { return json_value(object_, name, otherwise, fields_.path()); }
  std::int64_t original() const {
    if (rules_.original_max_position_embeddings > 0) return rules_.original_max_position_embeddings;
    return json_value<std::int64_t>(object_, original_key, rules_.max_position_embeddings, fields_.path());
  }
  /// "factor", or the growth of the context.
  double growth() const {
    return number("factor", double(rules_.max_position_embeddings) / double(std::max<std::int64_t>(original(), 1)));
  }
  std::vector<double> numbers(const char* name) const {
    if (!has(name) || !object_[name].is_array())
      fields_.refuse(text("rope_type \"longrope\" needs ", name, ", a list"));
    std::vector<double> found;
    for (const json& item : object_[name]) {
      if (!item.is_number()) refuse_json(fields_.path(), name, "a list of numbers", object_[name]);
      found.push_back(item.get<double>());
    }
    return found;
  }

 private:
  const json& object_;
  const std::string& type_;
  const RopeRules& rules_;
  const ConfigFields& fields_;
};

double mscale_of(double factor, double mscale) { return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0; }

YarnScaling yarn_of(const RopeObject& rope) {
  YarnScaling yarn;
  yarn.factor = rope.growth();
  yarn.original_max_position_embeddings = rope.original();
  const double mscale = rope.number("mscale", 0), of_all = rope.number("mscale_all_dim", 0);
  yarn.attention_factor = mscale != 0 && of_all != 0 ? mscale_of(yarn.factor, mscale) / mscale_of(yarn.factor, of_all)
                                                     : mscale_of(yarn.factor, 1);
  yarn.attention_factor = rope.number("attention_factor", yarn.attention_factor);
  if (const double fast = rope.number("beta_fast", 0); fast != 0) yarn.beta_fast = fast;
  if (const double slow = rope.number("beta_slow", 0); slow != 0) yarn.beta_slow = slow;
  yarn.truncate = rope.flag("truncate", true);
  return yarn;
}

LongRopeScaling longrope_of(const RopeObject& rope) {
  LongRopeScaling scaling{rope.numbers("short_factor"), rope.numbers("long_factor")};
  scaling.original_max_position_embeddings = rope.original();
  const double growth = rope.growth();
  const double amplitude =
      growth <= 1 ? 1.0 : std::sqrt(1 + std::log(growth) / std::log(double(scaling.original_max_position_embeddings)));
  scaling.attention_factor = rope.number("attention_factor", amplitude);
  return scaling;
}

std::optional<RopeScaling> scaling_of(const RopeObject& rope, const std::string& type) {
  if (type == "linear") return LinearScaling{rope.needed("factor")};
  if (type == "yarn") return yarn_of(rope);
  if (type == "longrope") return longrope_of(rope);
  if (type != "llama3") return std::nullopt;
  return Llama3Scaling{rope.needed("factor"), rope.needed("low_freq_factor"), rope.needed("high_freq_factor"),
                       rope.original()};
}

/// The type. The oldest files call "rope_type" "type".
std::string type_of(const json& object, const RopeRules& rules, const ConfigFields& fields) {
  std::string type = "default";
  for (const char* key : {"type", "rope_type"}) type = json_value(object, key, type, fields.path());
  if (rules.old_names_of_longrope && (type == "su" || type == "yarn")) type = "longrope";
  if (!keys_of_types.contains(type))
    fields.refuse(text("rope_type \"", type, "\" is not supported; known are ",
                       "\"default\", \"linear\", \"llama3\", \"longrope\" and \"yarn\""));
  return type;
}

void check_keys(const json& object, const std::string& type, const ConfigFields& fields) {
  static const std::set<std::string> of_all{"rope_type", "type", "rope_theta", "partial_rotary_factor"};
  for (const auto& [key, value] : object.items())
    if (!of_all.contains(key) && !keys_of_types.at(type).contains(key) && !value.is_null() && key != original_key)
      fields.refuse(text("\"", key, "\" is no key of rope_type \"", type,
                         "\" that is known here; remove it if it says ", "nothing about the weights"));
}

/// True if `one` has a setting that `other` lacks or contradicts. A theta or share may also be next to the objects.
bool contradicts(const json& one, const json& other) {
  const auto said = [](const json& object, const std::string& key) {
    const bool is_type = key == "type" || key == "rope_type";
    return is_type ? object.value("rope_type", object.value("type", json("default"))) : object.value(key, json());
  };
  for (const auto& [key, value] : one.items()) {
    const bool may_stand_beside = key == "rope_theta" || key == "partial_rotary_factor";
    if (value.is_null() || (may_stand_beside && !other.contains(key))) continue;
    if (said(one, key) != said(other, key)) return true;
  }
  return false;
}

}  // namespace

RopeFields read_rope_object(const json& object, RopeFields found, const RopeRules& rules, const ConfigFields& fields) {
  const std::string type = type_of(object, rules, fields);
  check_keys(object, type, fields);
  found.theta = json_value<double>(object, "rope_theta", found.theta, fields.path());
  found.share = json_value<double>(object, "partial_rotary_factor", found.share, fields.path());
  found.scaling = scaling_of(RopeObject(object, type, rules, fields), type);
  return found;
}

RopeFields read_rope(ConfigFields& fields, RopeFields found, const RopeRules& rules) {
  const json *parameters = fields.find("rope_parameters"), *scaling = fields.find("rope_scaling"),
             *theta = fields.find("rope_theta");
  for (const auto& [name, object] : {std::pair("rope_parameters", parameters), std::pair("rope_scaling", scaling)})
    if (object && !object->is_object()) refuse_json(fields.path(), name, "an object or null", *object);
  if (parameters && scaling && (contradicts(*parameters, *scaling) || contradicts(*scaling, *parameters)))
    fields.refuse("rope_parameters and rope_scaling (its older name) contradict each other; remove one");
  for (const json* object : {parameters, scaling})
    if (theta && object && object->value("rope_theta", *theta) != *theta)
      fields.refuse("rope_theta is there twice with two values; remove one");
  fields.number("rope_theta", found.theta);
  fields.number("partial_rotary_factor", found.share);
  if (scaling) found = read_rope_object(*scaling, found, rules, fields);
  return parameters ? read_rope_object(*parameters, found, rules, fields) : found;
}

}  // namespace zero
