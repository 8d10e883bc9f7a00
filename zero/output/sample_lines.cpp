#include "zero/output/sample_lines.h"

#include <nlohmann/json.hpp>

#include "base/files/lookup.h"
#include "base/files/whole_lines.h"

namespace zero {
namespace {

using Json = nlohmann::ordered_json;

constexpr int depth_limit = 64;

std::string words_of(const Json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<std::string> text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

std::string conversation(const Json& messages) {
  std::string lines;
  for (const Json& message : messages) {
    if (!lines.empty()) lines += '\n';
    const bool plain = message.is_object() && message.contains("role") && message.contains("content");
    lines += plain ? words_of(message["role"]) + ": " + words_of(message["content"]) : words_of(message);
  }
  return lines;
}

Json parsed(std::string_view line) {
  const auto limit = [](int depth, Json::parse_event_t, Json&) { return depth <= depth_limit; };
  return Json::parse(line, limit, /*allow_exceptions=*/false);
}

}  // namespace

std::optional<SampleLine> sample_of_line(std::string_view line) {
  const Json object = parsed(line);
  if (!object.is_object() || !object.contains("step") || !object["step"].is_number_integer()) return std::nullopt;
  const auto prompt = text_at(object, "prompt"), made = text_at(object, "text");
  const auto messages = object.find("messages");
  const bool chat = messages != object.end() && messages->is_array();
  if (!made || (!prompt && !chat)) return std::nullopt;
  return SampleLine{object["step"].get<std::int64_t>(), {prompt ? *prompt : conversation(*messages), *made}};
}

void for_each_sample(const std::string& path, const std::function<void(SampleLine&&)>& each) {
  if (!is_there(path)) return;
  for_each_whole_line(File::open(path), [&](std::string_view line) {
    if (auto found = sample_of_line(line)) each(std::move(*found));
  });
}

SamplesByStep samples_after(const std::string& path, std::int64_t step) {
  SamplesByStep samples;
  for_each_sample(path, [&](SampleLine&& line) {
    if (line.step > step) samples[line.step].push_back(std::move(line.sample));
  });
  return samples;
}

}  // namespace zero
