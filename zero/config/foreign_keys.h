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

/// "`learning_rate` (Hugging Face, ...) is `lr` in [optimizer]", with what becomes of the value; empty for a name that
/// no tool of the table has. `section` is where it was found, empty at the top of a file. Case and dashes do not count.
std::string foreign_key_hint(const std::string& section, const std::string& name);

/// What a text that is no TOML looks like: JSON (DeepSpeed's by its keys) or YAML, with what its first keys are called
/// here. Empty for other texts.
std::string foreign_text_hint(std::string_view text);

}  // namespace zero
