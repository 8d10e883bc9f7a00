#include "zero/data/examples/example_use.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "zero/data/examples/example_file.h"

namespace zero {

ExampleUse use_of_examples(const std::string& file) {
  if (!file.ends_with(".jsonl") && !file.ends_with(".json")) return ExampleUse::single;
  ExampleUse use = ExampleUse::single;
  read_example_texts(file, [&](std::string_view line, const std::string& place) {
    const nlohmann::json example = parse_json(line, place, {.bytes = std::int64_t{1} << 30, .in_a_file = true});
    const auto has = [&](const char* key) {
      return example.is_object() && example.contains(key) && !example[key].is_null();
    };
    if (has("chosen") && has("rejected"))
      use = ExampleUse::pair;
    else if (has("completion") && has("label"))
      use = ExampleUse::judged;
    return false;
  });
  return use;
}

}  // namespace zero
