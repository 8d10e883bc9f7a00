#include "models/text/pipeline/pre_tokenizer.h"

#include <algorithm>

#include "models/text/pipeline/component.h"
#include "models/text/pipeline/metaspace.h"
#include "models/text/pipeline/splits.h"
#include "models/text/pipeline/unicode/byte_alphabet.h"
#include "models/text/pipeline/unicode/pattern.h"
#include "models/text/pipeline/unicode/unicode_text.h"
#include "models/text/word_character.h"

namespace zero {
namespace {

/// A pre-tokenizer whose work is a function.
template <class Work>
class Function : public PreTokenizer {
 public:
  explicit Function(Work work) : work_(std::move(work)) {}
  void apply(Splits& splits) const override { work_(splits); }

 private:
  Work work_;
};

template <class Work>
std::unique_ptr<const PreTokenizer> function(Work work) {
  return std::make_unique<Function<Work>>(std::move(work));
}

using SharedPattern = std::shared_ptr<const Pattern>;

std::unique_ptr<const PreTokenizer> divider(SharedPattern pattern, SplitBehavior behavior, bool invert = false) {
  return function([=](Splits& splits) { divide(splits, *pattern, behavior, invert); });
}

std::unique_ptr<const PreTokenizer> divider(bool (*holds)(char32_t), SplitBehavior behavior) {
  return divider(SharedPattern(class_pattern(holds)), behavior);
}

SplitBehavior behavior_of(Component& component, const std::string& name) {
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  component.refuse("behavior", "must be Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

/// Rewrites every part that is not an added token: `rewrite` appends the result.
template <class Rewrite>
void rewrite_all(Splits& splits, std::size_t room, const Rewrite& rewrite) {
  TextRewriter out(splits, room);
  for (Split& part : splits.parts) {
    const std::size_t begin = out.size();
    if (part.id < 0) rewrite(part, out);
    part.begin = begin;
    part.end = out.size();
  }
  out.finish();
}

std::unique_ptr<const PreTokenizer> byte_level(Component& component) {
  const bool prefix = component.get<bool>("add_prefix_space");
  component.pass_over("trim_offsets");
  SharedPattern words;  // of GPT-2
  if (component.get<bool>("use_regex", true))
    words = regex_pattern(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
                          component.place());
  return function([=](Splits& splits) {
    if (prefix)
      rewrite_all(splits, splits.text.size() + splits.parts.size(), [&](const Split& part, TextRewriter& out) {
        if (!splits.of(part).starts_with(' ')) out.put(" ", part.begin);
        out.keep(part.begin, part.end);
      });
    if (words) divide(splits, *words, SplitBehavior::isolated);
    rewrite_all(splits, splits.text.size() * 5 / 4, [](const Split& part, TextRewriter& out) {
      out.transcribe(part.begin, part.end, append_byte_characters);
    });
  });
}

std::unique_ptr<const PreTokenizer> metaspace(Component& component) {
  const Metaspace form = read_metaspace(component);
  const SharedPattern mark = string_pattern(form.replacement, component.place());
  return function([=](Splits& splits) {
    rewrite_all(splits, splits.text.size() * 3 / 2, [&](const Split& part, TextRewriter& out) {
      const std::string_view old = splits.of(part);
      const bool marked = old.starts_with(' ') || old.starts_with(form.replacement);
      const bool wanted = form.scheme == PrependScheme::always || (form.scheme == PrependScheme::first && part.first);
      if (wanted && !marked) out.put(form.replacement, part.begin);
      for (std::size_t at = part.begin; at < part.end; ++at)
        splits.text[at] == ' ' ? out.put(form.replacement, at) : out.keep(at, at + 1);
    });
    if (form.split) divide(splits, *mark, SplitBehavior::merged_with_next);
  });
}

/// Separates words from characters that are neither word nor white space.
std::unique_ptr<const PreTokenizer> whitespace() {
  enum Kind : std::uint8_t { space, word, other };
  return function([](Splits& splits) {
    std::vector<Split> parts;
    for (const Split& part : splits.parts) {
      if (part.id >= 0) {
        parts.push_back(part);
        continue;
      }
      std::size_t at = part.begin;
      Kind before = space;
      for_each_character(splits.of(part), [&](std::string_view character, char32_t code) {
        const Kind kind = is_word_character(code) ? word : is_white_space(code) ? space : other;
        if (kind != space && kind == before)
          parts.back().end += character.size();
        else if (kind != space)
          parts.push_back({at, at + character.size(), -1, part.first && at == part.begin});
        before = kind;
        at += character.size();
      });
    }
    splits.parts = std::move(parts);
  });
}

std::unique_ptr<const PreTokenizer> fixed_length(std::size_t length) {
  return function([length](Splits& splits) {
    std::vector<Split> parts;
    for (const Split& part : splits.parts) {
      if (part.id >= 0) {
        parts.push_back(part);
        continue;
      }
      std::size_t at = part.begin, number = 0;
      for_each_character(splits.of(part), [&](std::string_view character, char32_t) {
        if (number++ % length == 0) parts.push_back({at, at, -1, part.first && at == part.begin});
        parts.back().end = at += character.size();
      });
    }
    splits.parts = std::move(parts);
  });
}

std::unique_ptr<const PreTokenizer> sequence(std::vector<std::shared_ptr<const PreTokenizer>> steps) {
  return function([steps = std::move(steps)](Splits& splits) {
    for (const auto& step : steps) step->apply(splits);
  });
}

std::unique_ptr<const PreTokenizer> make(const std::string& type, Component& component) {
  if (type == "Split") {
    const SplitBehavior behavior = behavior_of(component, component.get<std::string>("behavior"));
    const SharedPattern pattern = component.pattern("pattern");
    return divider(pattern, behavior, component.get<bool>("invert"));
  }
  if (type == "ByteLevel") return byte_level(component);
  if (type == "Metaspace") return metaspace(component);
  if (type == "Digits") {
    const bool single = component.get<bool>("individual_digits");
    return divider(is_numeric, single ? SplitBehavior::isolated : SplitBehavior::contiguous);
  }
  if (type == "Punctuation")
    return divider(is_punctuation, behavior_of(component, component.get<std::string>("behavior", "Isolated")));
  if (type == "Whitespace") return whitespace();
  if (type == "WhitespaceSplit") return divider(is_white_space, SplitBehavior::removed);
  if (type == "CharDelimiterSplit")
    return divider(string_pattern(component.character("delimiter"), component.place()), SplitBehavior::removed);
  if (type == "FixedLength") {
    const std::size_t length = component.has("length") ? component.count("length") : 5;
    if (length == 0) component.refuse("length", "must be 1 or more");
    return fixed_length(length);
  }
  if (type == "BertPreTokenizer")
    return sequence(
        {divider(is_white_space, SplitBehavior::removed), divider(is_punctuation, SplitBehavior::isolated)});
  if (type == "Sequence") {
    std::vector<std::shared_ptr<const PreTokenizer>> steps;
    for (Component& step : component.list("pretokenizers")) steps.push_back(make_pre_tokenizer(std::move(step)));
    return sequence(std::move(steps));
  }
  component.refuse_type(
      "Split, ByteLevel, Metaspace, Digits, Punctuation, Whitespace, WhitespaceSplit, CharDelimiterSplit, FixedLength, "
      "BertPreTokenizer, Sequence");
}

}  // namespace

std::unique_ptr<const PreTokenizer> make_pre_tokenizer(Component component) {
  auto pre_tokenizer = make(component.type(), component);
  component.finish();
  return pre_tokenizer;
}

}  // namespace zero
