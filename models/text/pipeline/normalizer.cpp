#include "models/text/pipeline/normalizer.h"

#include <algorithm>
#include <vector>

#include "models/text/pipeline/component.h"
#include "models/text/pipeline/unicode/byte_alphabet.h"
#include "models/text/pipeline/unicode/charsmap.h"
#include "models/text/pipeline/unicode/normal_alignment.h"
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

/// Writes the bytes of `old` from `begin` on, normalised by themselves.
void put_normalized(NormalForm form, std::string_view old, std::size_t begin, TextRewriter& out) {
  std::vector<std::size_t> places;
  std::size_t at = begin, next = 0;
  for_each_character(old, [&](std::string_view character, char32_t) {
    places.push_back(at);
    at += character.size();
  });
  for (const NormalCharacter& character : normal_characters(form, old)) {
    const std::size_t place = character.change > 0 && next > 0 ? next - 1 : next;
    std::string bytes;
    append_character(character.code, bytes);
    out.put(bytes, places[std::min(place, places.size() - 1)]);
    if (character.change <= 0) next += 1 + static_cast<std::size_t>(-character.change);
  }
}

void normalize(NormalForm form, NormalizedText& text) {
  if (!text.aligned) {
    text.text = normalize(form, std::string_view(text.text));
    return;
  }
  TextRewriter out(text, text.text.size());
  for (const TextSpan& span : normal_segments(form, text.text)) {
    const std::string_view old = std::string_view(text.text).substr(span.begin, span.end - span.begin);
    normalize(form, old) == old ? out.keep(span.begin, span.end) : put_normalized(form, old, span.begin, out);
  }
  out.finish();
}

std::unique_ptr<const Normalizer> form(NormalForm form) {
  return function([form](NormalizedText& text) { normalize(form, text); });
}

/// Removes the characters for which `drops` is true.
template <class Drops>
void filter(NormalizedText& text, const Drops& drops) {
  TextRewriter kept(text, text.text.size());
  std::size_t at = 0;
  for_each_character(text.text, [&](std::string_view character, char32_t code) {
    const bool dropped = drops(code);
    if (dropped && at == 0) text.first = false;
    if (!dropped) kept.keep(at, at + character.size());
    at += character.size();
  });
  kept.finish();
}

/// Replaces every character with the text that `change` returns.
template <class Change>
void map(NormalizedText& text, const Change& change) {
  TextRewriter result(text, text.text.size());
  std::size_t at = 0;
  for_each_character(text.text, [&](std::string_view character, char32_t code) {
    result.put(change(character, code), at);
    at += character.size();
  });
  result.finish();
}

void strip(NormalizedText& text, bool left, bool right) {
  const std::string_view whole = text.text;
  std::string_view rest = whole;
  while (left && !rest.empty() && is_white_space(code_point(first_character(rest)))) {
    rest.remove_prefix(first_character(rest).size());
    text.first = false;
  }
  while (right && !rest.empty() && is_white_space(code_point(last_character(rest))))
    rest.remove_suffix(last_character(rest).size());
  TextRewriter kept(text, rest.size());
  const auto begin = static_cast<std::size_t>(rest.data() - whole.data());
  kept.keep(begin, begin + rest.size());
  kept.finish();
}

/// The rules of sentencepiece's nmt_nfkc in addition to NFKC.
void nmt(NormalizedText& text) {
  filter(text, [](char32_t code) {
    return (code >= 0x1 && code <= 0x8) || code == 0xB || (code >= 0xE && code <= 0x1F) || code == 0x7F ||
           code == 0x8F || code == 0x9F;
  });
  map(text, [](std::string_view character, char32_t code) {
    const bool space = code == 0x9 || code == 0xA || code == 0xC || code == 0xD || code == 0x1680 ||
                       (code >= 0x200B && code <= 0x200F) || code == 0x2028 || code == 0x2029 || code == 0x2581 ||
                       code == 0xFEFF || code == 0xFFFD;
    return space ? " " : character;
  });
}

std::unique_ptr<const Normalizer> replace(Component& component) {
  return function([place = component.place(), pattern = std::shared_ptr(component.pattern("pattern")),
                   content = component.get<std::string>("content")](NormalizedText& text) {
    std::vector<TextSpan> matches;
    pattern->find_all(text.text, matches);
    if (matches.empty()) return;
    Component::require_room(text.text.size() + matches.size() * content.size(), place);
    const TextSpan at_start = matches.front();
    if (at_start.begin == 0 && at_start.end > 0 &&
        (content.empty() || at_start.end > first_character(text.text).size()))
      text.first = false;
    TextRewriter result(text, text.text.size() + matches.size() * content.size());
    std::size_t done = 0;
    for (const TextSpan& match : matches) {
      result.keep(done, match.begin);
      result.put(content, match.end - 1);
      done = match.end;
    }
    result.keep(done, text.text.size());
    result.finish();
  });
}

void lowercase(NormalizedText& text) {
  map(text, [](std::string_view character, char32_t) { return lower_case(character); });
}

std::unique_ptr<const Normalizer> bert(Component& component) {
  const bool clean = component.get<bool>("clean_text"), chinese = component.get<bool>("handle_chinese_chars"),
             lower = component.get<bool>("lowercase"), strips = component.get<bool>("strip_accents", lower);
  return function([=](NormalizedText& text) {
    if (clean) {
      const auto space = [](char32_t code) { return code == '\t' || code == '\n' || code == '\r'; };
      filter(text, [&](char32_t code) { return code == 0 || code == 0xFFFD || (!space(code) && is_control(code)); });
      map(text, [&](std::string_view character, char32_t code) {
        return space(code) || is_white_space(code) ? " " : character;
      });
    }
    if (chinese)
      map(text, [](std::string_view character, char32_t code) {
        return is_chinese_character(code) ? " " + std::string(character) + " " : std::string(character);
      });
    if (strips) {
      normalize(NormalForm::nfd, text);
      filter(text, is_nonspacing_mark);
    }
    if (lower) lowercase(text);
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
  if (type == "Lowercase") return function(lowercase);
  if (type == "StripAccents") return function([](NormalizedText& text) { filter(text, is_combining_mark); });
  if (type == "Strip")
    return function([left = component.get<bool>("strip_left"),
                     right = component.get<bool>("strip_right")](NormalizedText& text) { strip(text, left, right); });
  if (type == "Prepend")
    return function([front = component.get<std::string>("prepend")](NormalizedText& text) {
      if (text.text.empty() || text.continued) return;
      TextRewriter out(text, text.text.size() + front.size());
      out.put(front, 0);
      out.keep(0, text.text.size());
      out.finish();
    });
  if (type == "ByteLevel")
    return function([](NormalizedText& text) {
      TextRewriter out(text, text.text.size() * 5 / 4);
      out.transcribe(0, text.text.size(), append_byte_characters);
      out.finish();
    });
  if (type == "Precompiled")
    return function(
        [map = std::make_shared<const Charsmap>(component.get<std::string>("precompiled_charsmap"), component.place())](
            NormalizedText& text) { map->apply(text); });
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
