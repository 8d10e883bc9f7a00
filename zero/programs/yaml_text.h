#pragma once
// YamlText: reads a YAML document as a JSON tree. Include this in .cpp files only.
#include <nlohmann/json.hpp>
#include <string>

namespace zero {

/// Plain words become null, booleans and numbers as in YAML 1.2's core schema; keys are strings. Throws InputError with
/// the line if the text is not YAML. Also throws for several documents, anchors, aliases, duplicate keys, and more than
/// 64 levels.
nlohmann::ordered_json parse_yaml(const std::string& text, const std::string& source);

}  // namespace zero
