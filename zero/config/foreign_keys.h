#pragma once
// ForeignKeys: the names that other training tools give to these settings, for messages about unknown keys.
#include <string>
#include <string_view>
#include <vector>

namespace zero {

struct ForeignKey {
  std::string name;   // in lower case, with underscores; "section.name" if the name alone is ambiguous
  std::string tools;  // the tools that use it
  std::string key;    // "section.key" here
  std::string note;   // how to convert the value if it differs; may be empty
};

const std::vector<ForeignKey>& foreign_keys();

/// Returns for example "`learning_rate` (Hugging Face, ...) is `lr` in [optimizer]", with the conversion of the value.
/// For a key without a counterpart, returns the reason; for an unknown name, an empty string. `section`: where the key
/// was found, empty at the top of a file. Ignores case and dashes.
std::string foreign_key_hint(const std::string& section, const std::string& name);

/// A setting of other tools without a counterpart here.
struct AbsentKey {
  std::string name;   // see ForeignKey
  std::string tools;  // the tools that use it
  std::string why;    // the reason, or how to get the same effect
};

const std::vector<AbsentKey>& absent_keys();

/// Ends a message about another tool's value: "; float16 is called \"fp16\" here". `rule` lists the key's valid values.
/// Returns an empty string for other values.
std::string foreign_value_hint(const std::string& value, const std::string& rule);

/// Recognises JSON (DeepSpeed's by its keys) and YAML (axolotl's by base_model). Returns a hint with this project's
/// names for the text's first keys, which names the translator if there is one; an empty string for other texts.
std::string foreign_text_hint(std::string_view text);

}  // namespace zero
