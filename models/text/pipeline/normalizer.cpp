#include "models/text/pipeline/normalizer.h"

#include <vector>

#include "models/text/pipeline/component.h"
#include "models/text/pipeline/unicode/byte_alphabet.h"
#include "models/text/pipeline/unicode/charsmap.h"
#include "models/text/pipeline/unicode/pattern.h"
#include "models/text/pipeline/unicode/unicode_text.h"
#include "models/text/word_character.h"

namespace zero {
namespace {

/// A normalizer whose work is a function.
template <class Work>
class Function : public Normalizer {
 public:
  explicit Function(Work work) : work_(std::move(work)) {}
  void apply(NormalizedText& text) const override { work_(text); }

 private:
  Work work_;
};

template <class Work>
std::unique_ptr<const Normalizer> function(Work work) {
  return std::make_unique<Function<Work>>(std::move(work));
}

std::unique_ptr<const Normalizer> form(NormalForm form) {
  return function([form](NormalizedText& text) { text.text = normalize(form, text.text); });
}

/// Leaves out the characters that `drops` names.
template <class Drops>
void filter(NormalizedText& text, const Drops& drops) {
  std::string kept;
  kept.reserve(text.text.size());
  bool begun = false;
  for_each_character(text.text, [&](std::string_view character, char32_t code) {
    const bool dropped = drops(code);
    if (dropped && !begun) text.first = false;
    begun = true;
    if (!dropped) kept += character;
  });
  text.text = std::move(kept);
}

/// Puts what `change` gives in place of every character.
template <class Change>
void map(NormalizedText& text, const Change& change) {
  std::string result;
  result.reserve(text.text.size());
  for_each_character(text.text, [&](std::string_view, char32_t code) { append_character(change(code), result); });
  text.text = std::move(result);
}

void strip(NormalizedText& text, bool left, bool right) {
  std::string_view rest = text.text;
  while (left && !rest.empty() && is_white_space(code_point(first_character(rest)))) {
    rest.remove_prefix(first_character(rest).size());
    text.first = false;
  }
  while (right && !rest.empty() && is_white_space(code_point(last_character(rest))))
    rest.remove_suffix(last_character(rest).size());
  text.text = std::string(rest);
}

/// The rules of sentencepiece's nmt_nfkc beside NFKC.
void nmt(NormalizedText& text) {
  filter(text, [](char32_t code) {
    return (code >= 0x1 && code <= 0x8) || code == 0xB || (code >= 0xE && code <= 0x1F) || code == 0x7F ||
           code == 0x8F || code == 0x9F;
  });
  map(text, [](char32_t code) {
    const bool space = code == 0x9 || code == 0xA || code == 0xC || code == 0xD || code == 0x1680 ||
                       (code >= 0x200B && code <= 0x200F) || code == 0x2028 || code == 0x2029 || code == 0x2581 ||
                       code == 0xFEFF || code == 0xFFFD;
    return space ? U' ' : code;
  });
}

std::unique_ptr<const Normalizer> replace(Component& component) {
  return function([pattern = std::shared_ptr(component.pattern("pattern")),
                   content = component.get<std::string>("content")](NormalizedText& text) {
    std::vector<TextSpan> matches;
    pattern->find_all(text.text, matches);
    if (matches.empty()) return;
    const TextSpan at_start = matches.front();
    if (at_start.begin == 0 && at_start.end > 0 &&
        (content.empty() || at_start.end > first_character(text.text).size()))
      text.first = false;
    std::string result;
    result.reserve(text.text.size() + matches.size() * content.size());
    std::size_t done = 0;
    for (const TextSpan& match : matches) {
      result.append(text.text, done, match.begin - done).append(content);
      done = match.end;
    }
    text.text = result.append(text.text, done);
  });
}

std::unique_ptr<const Normalizer> bert(Component& component) {
  const bool clean = component.get<bool>("clean_text"), chinese = component.get<bool>("handle_chinese_chars"),
             lower = component.get<bool>("lowercase"), strips = component.get<bool>("strip_accents", lower);
  return function([=](NormalizedText& text) {
    if (clean) {
      const auto space = [](char32_t code) { return code == '\t' || code == '\n' || code == '\r'; };
      filter(text, [&](char32_t code) { return code == 0 || code == 0xFFFD || (!space(code) && is_control(code)); });
      map(text, [&](char32_t code) { return space(code) || is_white_space(code) ? U' ' : code; });
    }
    if (chinese) {
      std::string apart;
      for_each_character(text.text, [&](std::string_view character, char32_t code) {
        const bool alone = is_chinese_character(code);
        apart.append(alone ? " " : "").append(character).append(alone ? " " : "");
      });
      text.text = std::move(apart);
    }
    if (strips) {
      text.text = normalize(NormalForm::nfd, text.text);
      filter(text, is_nonspacing_mark);
    }
    if (lower) text.text = lower_case(text.text);
  });
}

std::unique_ptr<const Normalizer> sequence(Component& component) {
  std::vector<std::shared_ptr<const Normalizer>> steps;
  for (Component& step : component.list("normalizers")) steps.push_back(make_normalizer(std::move(step)));
  return function([steps](NormalizedText& text) {
    for (const auto& step : steps) step->apply(text);
  });
}

std::unique_ptr<const Normalizer> make(const std::string& type, Component& component) {
  if (type == "NFC") return form(NormalForm::nfc);
  if (type == "NFD") return form(NormalForm::nfd);
  if (type == "NFKC") return form(NormalForm::nfkc);
  if (type == "NFKD") return form(NormalForm::nfkd);
  if (type == "Nmt") return function(nmt);
  if (type == "Lowercase") return function([](NormalizedText& text) { text.text = lower_case(text.text); });
  if (type == "StripAccents") return function([](NormalizedText& text) { filter(text, is_combining_mark); });
  if (type == "Strip")
    return function([left = component.get<bool>("strip_left"),
                     right = component.get<bool>("strip_right")](NormalizedText& text) { strip(text, left, right); });
  if (type == "Prepend")
    return function([front = component.get<std::string>("prepend")](NormalizedText& text) {
      if (!text.text.empty()) text.text.insert(0, front);
    });
  if (type == "ByteLevel")
    return function([](NormalizedText& text) {
      std::string result;
      append_byte_characters(text.text, result);
      text.text = std::move(result);
    });
  if (type == "Precompiled")
    return function(
        [map = std::make_shared<const Charsmap>(component.get<std::string>("precompiled_charsmap"), component.place())](
            NormalizedText& text) { text.text = map->apply(text.text); });
  if (type == "Replace") return replace(component);
  if (type == "BertNormalizer") return bert(component);
  if (type == "Sequence") return sequence(component);
  component.refuse_type(
      "NFC, NFD, NFKC, NFKD, Prepend, Replace, Lowercase, Strip, StripAccents, Nmt, Precompiled, BertNormalizer, "
      "ByteLevel, Sequence");
}

}  // namespace

std::unique_ptr<const Normalizer> make_normalizer(Component component) {
  auto normalizer = make(component.type(), component);
  component.finish();
  return normalizer;
}

}  // namespace zero
