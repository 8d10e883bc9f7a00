#include "base/json_text.h"
#include "base/files/lookup.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/new_file.h"
#include "base/log.h"
#include "base/utf8.h"

namespace zero {
namespace {

using nlohmann::json;

/// Watches the parser and rejects deep nesting and duplicate keys early.
class JsonGuard {
 public:
  JsonGuard(const std::string& path, int max_depth, std::size_t max_keys)
      : path_(path), max_depth_(max_depth), max_keys_(max_keys) {}

  void see(int depth, json::parse_event_t event, const json& parsed) {
    switch (event) {
      case json::parse_event_t::object_start:
      case json::parse_event_t::array_start:
        if (depth >= max_depth_) throw InputError(text(path_, ": JSON nested deeper than ", max_depth_, " levels"));
        keys_.emplace_back();
        break;
      case json::parse_event_t::object_end:
      case json::parse_event_t::array_end:
        keys_.pop_back();
        break;
      case json::parse_event_t::key: {
        const auto& key = parsed.get_ref<const std::string&>();
        if (!keys_.back().insert(key).second)
          throw InputError(text(path_, ": key \"", key, "\" comes twice in one JSON object"));
        if (keys_.back().size() > max_keys_)
          throw InputError(text(path_, ": an object of more than ", max_keys_, " keys"));
        break;
      }
      case json::parse_event_t::value:
        break;
    }
  }

 private:
  const std::string& path_;
  int max_depth_;
  std::size_t max_keys_;
  std::vector<std::unordered_set<std::string>> keys_;  // of every open object
};

/// The parser's reason, with its position in the text.
std::string reason_of(const json::parse_error& error, bool in_a_file) {
  std::string reason = error.what();
  if (const std::size_t end = reason.find("] "); reason.starts_with("[json.exception.") && end != reason.npos)
    reason.erase(0, end + 2);
  const std::size_t place = reason.find(": ");
  if (!in_a_file || !reason.starts_with("parse error at line ") || place == reason.npos) return reason;
  return text("parse error at byte ", error.byte, reason.substr(place));
}

/// Expects valid JSON. The parser itself would read integers that are too large as floating-point numbers.
void refuse_large_integers(std::string_view content, const std::string& path) {
  for (std::size_t at = 0; at < content.size();) {
    if (content[at] == '"') {
      for (++at; content[at] != '"'; ++at) at += content[at] == '\\';
      ++at;
    } else if (content[at] == '-' || (content[at] >= '0' && content[at] <= '9')) {
      const std::string_view number =
          content.substr(at, std::min(content.find_first_not_of("+-.0123456789eE", at), content.size()) - at);
      std::int64_t value = 0;
      if (number.find_first_of(".eE") == std::string_view::npos &&
          std::from_chars(number.data(), number.data() + number.size(), value).ec != std::errc())
        throw InputError(text(path, ": the integer ", number.substr(0, 60), " does not fit into 64 bits"));
      at += number.size();
    } else {
      ++at;
    }
  }
}

/// Objects that keep key order search linearly for each key.
constexpr std::size_t most_ordered_keys = 10'000;

json parse_guarded(std::string_view content, const std::string& path, const JsonLimits& limits, std::size_t max_keys) {
  if (static_cast<std::int64_t>(content.size()) > limits.bytes)
    throw InputError(text(path, ": JSON of ", content.size(), " bytes, at most ", limits.bytes, " are read"));
  // the parser stops at a zero byte and would ignore the rest
  if (content.find('\0') != std::string_view::npos) throw InputError(text(path, ": not valid JSON: has a zero byte"));
  JsonGuard guard(path, limits.depth, max_keys);
  try {
    return json::parse(content.begin(), content.end(), [&guard](int depth, json::parse_event_t event, json& parsed) {
      guard.see(depth, event, parsed);
      return true;
    });
  } catch (const json::parse_error& error) {
    require_utf8(content, path);  // names the byte, which the parser's message would repeat
    throw InputError(text(path, ": not valid JSON: ", reason_of(error, limits.in_a_file)));
  } catch (const json::exception& error) {
    throw InputError(text(path, ": not valid JSON: ", error.what()));
  }
}

}  // namespace

json parse_json(std::string_view content, const std::string& path, const JsonLimits& limits) {
  return parse_guarded(content, path, limits, std::numeric_limits<std::size_t>::max());
}

nlohmann::ordered_json parse_ordered_json(std::string_view content, const std::string& path, const JsonLimits& limits) {
  parse_guarded(content, path, limits, most_ordered_keys);
  refuse_large_integers(content, path);
  return nlohmann::ordered_json::parse(content.begin(), content.end());
}

json read_json_object(const std::string& path, const JsonLimits& limits) {
  if (!is_there(path)) return json::object();
  json file = parse_json(read_text_file(path, limits.bytes), path, limits);
  if (!file.is_object()) throw InputError(text(path, ": must be a JSON object"));
  return file;
}

void refuse_json(const std::string& path, std::string_view key, std::string_view rule, const json& value) {
  std::string shown = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (shown.size() > 100) shown = shown.substr(0, 100) + "...";
  throw InputError(text(path, ": \"", key.substr(0, 200), "\" must be ", rule, ", not ", shown));
}

std::int64_t json_index(const json& value, std::string_view key, std::int64_t largest, const std::string& path) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > static_cast<std::uint64_t>(largest))
    refuse_json(path, key, text("a whole number from 0 to ", largest), value);
  return value.get<std::int64_t>();
}

std::string read_text_file(const std::string& path, std::int64_t max_bytes) {
  const File file = File::open(path);
  if (file.size() > max_bytes)
    throw InputError(text(path, ": ", file.size(), " bytes, at most ", max_bytes, " are read"));
  std::string content(static_cast<std::size_t>(file.size()), '\0');
  file.read_at(content.data(), file.size(), 0);
  return content;
}

void write_text_file(const std::string& path, std::string_view content) {
  NewFile file(path);
  file.append(content.data(), static_cast<std::int64_t>(content.size()));
  file.publish();
}

}  // namespace zero
