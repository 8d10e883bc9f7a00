#pragma once
// ForeignKeys: what other training tools call the settings of this one, for the messages that refuse unknown names.
#include <string>
#include <string_view>
#include <vector>

namespace zero {

struct ForeignKey {
  std::string name;   // in lower case, with underscores; "section.name" where the name alone says too little
  std::string tools;  // whose word it is
  std::string key;    // "section.key" here
  std::string note;   // how the value is to be put, where it is not the same; may be empty
};

const std::vector<ForeignKey>& foreign_keys();

/// "`learning_rate` (Hugging Face, ...) is `lr` in [optimizer]", with what becomes of the value; of a key without a
/// counterpart why there is none. Empty for a name that neither table has. `section` is where it was found, empty at the top of a file. Case and dashes do not count.
std::string foreign_key_hint(const std::string& section, const std::string& name);

/// A setting of other tools that has no counterpart here.
struct AbsentKey {
  std::string name;   // as ForeignKey's
  std::string tools;  // whose word it is
  std::string why;    // why there is none, or how to get the same
};

const std::vector<AbsentKey>& absent_keys();

/// "; float16 is called \"fp16\" here": the end of a message about a value that another tool's users give. `rule` lists
/// the values that the key takes. Empty for other values.
std::string foreign_value_hint(const std::string& value, const std::string& rule);

/// What a text that is no TOML looks like: JSON (DeepSpeed's by its keys) or YAML, with what its first keys are called
/// here. Empty for other texts.
std::string foreign_text_hint(std::string_view text);

}  // namespace zero
