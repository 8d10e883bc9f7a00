#include "zero/programs/yaml_text.h"

#include <yaml.h>

#include <cstdlib>
#include <regex>
#include <set>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

using Json = nlohmann::ordered_json;

constexpr int most_levels = 64;

/// One event of the parser, freed at the end.
class YamlEvent {
 public:
  YamlEvent(yaml_parser_t& parser, const std::string& source) {
    if (!yaml_parser_parse(&parser, &event_))
      throw InputError(text(source, ":", parser.problem_mark.line + 1,
                            ": is no YAML: ", parser.problem ? parser.problem : "it cannot be read"));
  }
  ~YamlEvent() { yaml_event_delete(&event_); }
  YamlEvent(const YamlEvent&) = delete;
  YamlEvent& operator=(const YamlEvent&) = delete;

  yaml_event_type_t type() const { return event_.type; }
  std::size_t line() const { return event_.start_mark.line + 1; }
  bool is_anchored() const {
    return type() == YAML_ALIAS_EVENT || (type() == YAML_SCALAR_EVENT && event_.data.scalar.anchor) ||
           (type() == YAML_MAPPING_START_EVENT && event_.data.mapping_start.anchor) ||
           (type() == YAML_SEQUENCE_START_EVENT && event_.data.sequence_start.anchor);
  }
  std::string words() const {
    return {reinterpret_cast<const char*>(event_.data.scalar.value), event_.data.scalar.length};
  }
  bool is_plain() const { return event_.data.scalar.style == YAML_PLAIN_SCALAR_STYLE; }

 private:
  yaml_event_t event_{};
};

Json plain_value(const std::string& words) {
  static const std::regex whole("[-+]?[0-9]{1,18}"), number("[-+]?(\\.[0-9]+|[0-9]+(\\.[0-9]*)?)([eE][-+]?[0-9]+)?");
  if (words.empty() || words == "~" || words == "null" || words == "Null" || words == "NULL") return nullptr;
  // PyYAML, which axolotl uses, reads YAML 1.1.
  static const std::set<std::string> yes{"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"},
      no{"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"};
  if (yes.contains(words)) return true;
  if (no.contains(words)) return false;
  if (std::regex_match(words, whole)) return std::strtoll(words.c_str(), nullptr, 10);
  if (words.size() < 64 && std::regex_match(words, number)) return std::strtod(words.c_str(), nullptr);
  return words;
}

class YamlReader {
 public:
  YamlReader(const std::string& text, const std::string& source) : source_(source) {
    if (!yaml_parser_initialize(&parser_)) throw Error(source + ": there is no memory for a YAML parser");
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  }
  ~YamlReader() { yaml_parser_delete(&parser_); }
  YamlReader(const YamlReader&) = delete;
  YamlReader& operator=(const YamlReader&) = delete;

  Json document() {
    Json found = Json::object();
    for (int documents = 0;;) {
      const YamlEvent event(parser_, source_);
      if (event.type() == YAML_STREAM_END_EVENT) return found;
      if (event.type() != YAML_DOCUMENT_START_EVENT) continue;
      if (++documents > 1) refuse(event, "begins a second document; keep one");
      found = value(YamlEvent(parser_, source_), 0);
    }
  }

 private:
  [[noreturn]] void refuse(const YamlEvent& event, const std::string& what) const {
    throw InputError(text(source_, ":", event.line(), ": ", what));
  }

  Json value(const YamlEvent& event, int level) {
    if (event.is_anchored()) refuse(event, "has an anchor or an alias; write the value out");
    if (level > most_levels) refuse(event, "has more than 64 levels");
    if (event.type() == YAML_SCALAR_EVENT) return event.is_plain() ? plain_value(event.words()) : Json(event.words());
    Json found = event.type() == YAML_MAPPING_START_EVENT ? Json::object() : Json::array();
    for (;;) {
      const YamlEvent next(parser_, source_);
      if (next.type() == YAML_MAPPING_END_EVENT || next.type() == YAML_SEQUENCE_END_EVENT) return found;
      if (found.is_array()) {
        found.push_back(value(next, level + 1));
        continue;
      }
      if (next.type() != YAML_SCALAR_EVENT || next.is_anchored()) refuse(next, "has a key that is no word");
      const std::string key = next.words();
      if (found.contains(key)) refuse(next, key + ": is given twice; keep one");
      found[key] = value(YamlEvent(parser_, source_), level + 1);
    }
  }

  std::string source_;
  yaml_parser_t parser_{};
};

}  // namespace

Json parse_yaml(const std::string& text, const std::string& source) { return YamlReader(text, source).document(); }

}  // namespace zero
