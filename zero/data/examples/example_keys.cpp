#include "zero/data/examples/example_keys.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

using nlohmann::json;

struct Rule {
  std::vector<std::string_view> keys;
  const char* why;
  bool lists = false;  // values are lists or objects, which some data sets store as JSON text
};

const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = {
      {{"tools", "functions", "tool_choice", "function_call", "tool_calls", "tool_call_id"},
       "tools are read as \"tools\" next to \"messages\", and their calls as \"tool_calls\" in them: bring the example into "
       "that form, or leave it out",
       true},
      {{"image", "images", "video", "videos", "audio", "audios"}, "only text is trained; leave the example out", true},
      {{"reasoning", "reasoning_content", "thinking"},
       "thoughts are read in \"messages\" alone: bring the example into that form, or join them to the text"},
      {{"refusal"}, "is not read; join it to the content as it is to be trained"},
      {{"chat_template_kwargs"}, "is read only next to \"messages\"", true},
      {{"documents"}, "is not shown to chat templates; write it out as text", true},
      {{"system_prompt", "system_message"}, "is not read; call it \"system\""},
      {{"train_detail", "training_detail"},
       "parts of a message cannot be chosen; train the whole message or none of it (\"train\")"},
  };
  return all;
}

bool says_nothing(const json& value) {
  return value.is_null() || ((value.is_string() || value.is_structured()) && value.empty()) || value == "";
}

// True for "[]", " {} ", "null": an empty list or object as JSON text.
bool holds_nothing(const json& value) {
  if (!value.is_string()) return false;
  const json held = json::parse(value.get_ref<const std::string&>(), nullptr, /*allow_exceptions=*/false);
  return !held.is_discarded() && (held.is_null() || (held.is_structured() && held.empty()));
}

}  // namespace

void check_keys(const json& object, const std::vector<std::string_view>& known, const std::string& place,
                std::set<std::string>* ignored, std::string_view prefix) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end() || says_nothing(value)) continue;
    const auto rule = std::find_if(rules().begin(), rules().end(), [&key = key](const Rule& each) {
      return std::find(each.keys.begin(), each.keys.end(), key) != each.keys.end();
    });
    if (rule != rules().end()) {
      if (rule->lists && holds_nothing(value)) continue;
      throw InputError(text(place, ": \"", key, "\": ", rule->why));
    }
    if (ignored) ignored->insert(std::string(prefix) + key);
  }
}

std::optional<bool> trained_flag(const json& message, const std::string& place) {
  std::optional<bool> flag;
  for (const char* key : {"weight", "train", "training"}) {
    const auto found = message.find(key);
    if (found == message.end() || found->is_null()) continue;
    const bool number = std::string_view(key) == "weight";
    if (number ? *found != 0 && *found != 1 : !found->is_boolean())
      throw InputError(
          text(place, ": \"", key, "\" must be ", number ? "0 or 1" : "true or false", ", not ", found->dump()));
    const bool says = number ? *found == 1 : found->get<bool>();
    if (flag && *flag != says)
      throw InputError(text(place, ": \"weight\", \"train\" and \"training\" contradict each other"));
    flag = says;
  }
  return flag;
}

}  // namespace zero
