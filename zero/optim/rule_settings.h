#pragma once
// RuleSettings: the hyperparameters that a user may set for optimizers' update rules. rule_settings.inl has a line for
// each. This file declares what the lines expand to.
#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

namespace zero {

/// Plain values. Each rule reads only those that it uses.
struct RuleSettings {
#define SETTING(type, field, initial, ...) type field = initial;
#include "zero/optim/rule_settings.inl"
#undef SETTING

  bool operator==(const RuleSettings&) const = default;
};

/// The values that a setting may have. The library has bounds of its own, because its users may compute in fp64.
struct Bound {
  std::string text;  // completes "must be ..."; empty: no restriction
  std::function<bool(double)> accepts;
  std::string library_text;
  std::function<bool(double)> library_accepts;
};
namespace bounds {
Bound anything();
/// In a configuration values are at most 1e30, and for above_zero() at least 1e-30, since fp32 can represent these and
/// their reciprocals.
Bound not_negative();
Bound above_zero();
/// At least 0 and below 1.
Bound below_one();
/// From `low` to `high`, both included.
Bound between(std::int64_t low, std::int64_t high);
}  // namespace bounds

enum class Takers : std::uint8_t { every_rule, named_rules };
enum class OnResume : std::uint8_t { must_agree, may_change };

struct SettingField {
  std::string name;
  std::variant<double RuleSettings::*, bool RuleSettings::*, std::int64_t RuleSettings::*> at;
};

/// A key of [optimizer]. The fields are the columns of rule_settings.inl.
struct RuleSetting {
  std::string key;
  std::vector<SettingField> fields;  // one number, or two
  Takers takers = Takers::named_rules;
  Bound bound;
  OnResume on_resume = OnResume::must_agree;
  std::string meaning;
};

/// In the order of the documentation.
const std::vector<RuleSetting>& rule_settings();

/// Throws InternalError for an unknown key.
const RuleSetting& rule_setting(const std::string& key);

/// Copies one setting from `from` to `to`.
void copy_setting(const RuleSetting& setting, const RuleSettings& from, RuleSettings& to);

}  // namespace zero
