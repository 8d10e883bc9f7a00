#include "zero/optim/rule_settings.h"

#include "base/error.h"

namespace zero {
namespace {

std::vector<RuleSetting> settings_of_lines() {
  using namespace bounds;
  using enum Takers;
  using enum OnResume;
  std::vector<RuleSetting> settings;
  const auto add = [&](const RuleSetting& line) {
    if (settings.empty() || settings.back().key != line.key) return settings.push_back(line);
    settings.back().fields.push_back(line.fields.front());
  };
#define SETTING(type, field, initial, key, takers, bound, on_resume, meaning) \
  add({key, {{#field, &RuleSettings::field}}, takers, bound, on_resume, meaning});
#include "zero/optim/rule_settings.inl"
#undef SETTING
  return settings;
}

}  // namespace

namespace bounds {

Bound anything() {
  const auto always = [](double) { return true; };
  return {"", always, "", always};
}

Bound not_negative() {
  return {"between 0 and 1e30", [](double x) { return x >= 0 && x <= 1e30; }, "at least 0",
          [](double x) { return x >= 0; }};
}

Bound above_zero() {
  return {"between 1e-30 and 1e30", [](double x) { return x >= 1e-30 && x <= 1e30; }, "above 0",
          [](double x) { return x > 0; }};
}

Bound below_one() {
  const auto accepts = [](double x) { return x >= 0 && x < 1; };
  return {"at least 0 and below 1", accepts, "at least 0, below 1", accepts};
}

Bound between(std::int64_t low, std::int64_t high) {
  const std::string from = std::to_string(low), to = std::to_string(high);
  const auto accepts = [low, high](double x) { return x >= double(low) && x <= double(high); };
  return {"between " + from + " and " + to, accepts, from + " to " + to, accepts};
}

}  // namespace bounds

const std::vector<RuleSetting>& rule_settings() {
  static const std::vector<RuleSetting> settings = settings_of_lines();
  return settings;
}

const RuleSetting& rule_setting(const std::string& key) {
  for (const RuleSetting& setting : rule_settings())
    if (setting.key == key) return setting;
  throw InternalError("no setting \"" + key + "\" of an optimizer");
}

void copy_setting(const RuleSetting& setting, const RuleSettings& from, RuleSettings& to) {
  for (const SettingField& field : setting.fields) std::visit([&](auto at) { to.*at = from.*at; }, field.at);
}

}  // namespace zero
