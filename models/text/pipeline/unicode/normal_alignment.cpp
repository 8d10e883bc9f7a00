#include "models/text/pipeline/unicode/normal_alignment.h"

#include <algorithm>
#include <optional>

namespace zero {
namespace {

/// In canonical order.
std::vector<NormalCharacter> decomposed(NormalForm form, std::string_view text) {
  std::vector<NormalCharacter> characters;
  for_each_character(text, [&](std::string_view character, char32_t) {
    int change = 0;
    for_each_character(normalize(form, character), [&](std::string_view, char32_t code) {
      characters.push_back({code, change, combining_class(code)});
      change = 1;
    });
  });
  for (auto begin = characters.begin(); begin != characters.end();) {
    const auto starts = [](const NormalCharacter& one) { return one.combining_class == 0; };
    const auto end = std::find_if(begin, characters.end(), starts);
    std::stable_sort(begin, end, [](const auto& a, const auto& b) { return a.combining_class < b.combining_class; });
    begin = std::find_if_not(end, characters.end(), starts);
  }
  return characters;
}

std::optional<char32_t> composed(char32_t first, char32_t second) {
  std::string pair;
  append_character(first, pair);
  append_character(second, pair);
  const std::string whole = normalize(NormalForm::nfc, pair);
  if (whole.empty() || first_character(whole).size() != whole.size()) return std::nullopt;
  return code_point(whole);
}

/// Composes characters with the preceding starter, unless a mark between them blocks that.
std::vector<NormalCharacter> recomposed(const std::vector<NormalCharacter>& characters) {
  std::vector<NormalCharacter> out;
  std::optional<std::size_t> starter;
  for (const NormalCharacter& next : characters) {
    const bool beside = starter && *starter + 1 == out.size();
    const bool blocked = !starter || (!beside && out.back().combining_class >= next.combining_class);
    if (!blocked) {
      NormalCharacter& base = out[*starter];
      if (const auto both = composed(base.code, next.code)) {
        base = {*both, base.change + next.change - 1, 0};
        continue;
      }
    }
    if (next.combining_class == 0) starter = out.size();
    out.push_back(next);
  }
  return out;
}

}  // namespace

std::vector<NormalCharacter> normal_characters(NormalForm form, std::string_view text) {
  const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  const bool composes = form == NormalForm::nfc || form == NormalForm::nfkc;
  auto characters = decomposed(compatible ? NormalForm::nfkd : NormalForm::nfd, text);
  return composes ? recomposed(characters) : characters;
}

}  // namespace zero
