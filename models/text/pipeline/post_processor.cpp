#include "models/text/pipeline/post_processor.h"

#include <algorithm>

#include "base/log.h"
#include "models/text/pipeline/component.h"
#include "models/text/pipeline/model/vocabulary.h"
#include "models/text/pipeline/unicode/unicode_text.h"
#include "models/text/word_character.h"

namespace zero {
namespace {

std::vector<std::int32_t> read_ids(Component& component, const char* key) {
  const nlohmann::json& list = component.value(key);
  if (!list.is_array()) component.refuse(key, "must be a list of ids");
  std::vector<std::int32_t> ids;
  for (const nlohmann::json& id : list)
    ids.push_back(static_cast<std::int32_t>(json_index(id, key, Vocabulary::most_ids, component.place())));
  return ids;
}

/// ["[SEP]", 102].
std::int32_t read_named_id(Component& component, const char* key) {
  const nlohmann::json& pair = component.value(key);
  if (!pair.is_array() || pair.size() != 2) component.refuse(key, "must be a pair of a token and its id");
  return static_cast<std::int32_t>(json_index(pair[1], key, Vocabulary::most_ids, component.place()));
}

bool is_space(char32_t code) { return code == U'\u0120' || is_white_space(code); }  // the space of the byte alphabet

/// The amount of white space before and after a token's text, in characters.
std::pair<std::size_t, std::size_t> spaces_of(std::string_view token) {
  std::size_t before = 0, behind = 0;
  bool begun = false;
  for_each_character(token, [&](std::string_view, char32_t code) {
    behind = is_space(code) ? behind + 1 : 0;
    begun = begun || behind == 0;
    if (!begun) ++before;
  });
  return {before, behind};
}

}  // namespace

PostProcessor::PostProcessor(Component component) { add(std::move(component)); }

void PostProcessor::add(Component component) {
  const std::string type = component.type();
  if (type == "Sequence") {
    for (Component& part : component.list("processors")) add(std::move(part));
  } else if (type == "TemplateProcessing" || type == "BertProcessing" || type == "RobertaProcessing") {
    // Hugging Face's library treats a template's output as several texts, and the next post-processor adds tokens
    // around each.
    if (steps_) component.refuse("type", "must be ByteLevel behind another that puts tokens around a text");
    type == "TemplateProcessing" ? add_template(component) : add_pair(component);
  } else if (type != "ByteLevel") {
    component.refuse_type("TemplateProcessing, ByteLevel, BertProcessing, RobertaProcessing, Sequence");
  }
  if (type == "ByteLevel" || type == "RobertaProcessing") {
    const bool prefix = component.get<bool>("add_prefix_space", true);
    if (component.get<bool>("trim_offsets", true)) trims_.push_back(prefix);
    component.pass_over("use_regex");
  }
  component.finish();
}

void PostProcessor::add_template(Component& component) {
  component.pass_over("pair");  // of two texts
  const nlohmann::json& tokens = component.value("special_tokens");
  std::vector<Step> steps;
  for (Component& piece : component.list("single")) {
    const bool text = piece.has("Sequence");
    const char* kind = text ? "Sequence" : "SpecialToken";
    Component named(piece.value(kind), component.path(), piece.name_of(kind));
    const auto id = named.get<std::string>("id");
    named.pass_over("type_id");
    named.finish();
    piece.finish();
    if (text) {
      if (id != "A") named.refuse("id", "must be A: there is one text");
      steps.push_back({true, {}});
      continue;
    }
    if (!tokens.is_object() || !tokens.contains(id))
      component.refuse("special_tokens", zero::text("must have ", nlohmann::json(id).dump(), ", which single names"));
    Component token(tokens[id], component.path(), component.name_of("special_tokens"));
    steps.push_back({false, read_ids(token, "ids")});
  }
  steps_ = std::move(steps);
}

void PostProcessor::add_pair(Component& component) {
  const std::int32_t begin = read_named_id(component, "cls"), end = read_named_id(component, "sep");
  steps_ = std::vector<Step>{{false, {begin}}, {true, {}}, {false, {end}}};
}

std::vector<std::int32_t> PostProcessor::apply(std::vector<std::int32_t> ids, bool special) const {
  if (!steps_) return ids;
  const auto texts = static_cast<std::size_t>(std::ranges::count_if(*steps_, &Step::text));
  Component::require_room(texts * ids.size() * sizeof(std::int32_t), "post_processor");
  std::vector<std::int32_t> whole;
  whole.reserve(ids.size() + steps_->size());
  for (const Step& step : *steps_) {
    const std::vector<std::int32_t>& part = step.text ? ids : step.ids;
    if (step.text || special) whole.insert(whole.end(), part.begin(), part.end());
  }
  return whole;
}

void PostProcessor::trim(const std::vector<std::string_view>& written, std::vector<TextSpan>& spans) const {
  for (const bool prefix : trims_)
    for (std::size_t i = 0; i < spans.size(); ++i) {
      auto [before, behind] = spaces_of(written[i]);
      TextSpan& span = spans[i];
      if (prefix && before == 1 && (i == 0 || span.begin == 0)) before = 0;  // more than one were in the text
      span.begin = std::min(span.begin + before, span.end);
      if (span.end >= behind) span.end = std::max(span.end - behind, span.begin);
    }
}

}  // namespace zero
