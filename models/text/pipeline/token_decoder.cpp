#include "models/text/pipeline/token_decoder.h"

#include <cctype>
#include <optional>

#include "base/error.h"
#include "base/utf8.h"
#include "models/text/pipeline/component.h"
#include "models/text/pipeline/metaspace.h"
#include "models/text/pipeline/unicode/byte_alphabet.h"
#include "models/text/pipeline/unicode/pattern.h"
#include "models/text/pipeline/unicode/unicode_text.h"

namespace zero {
namespace {

using Pieces = std::vector<std::string>;
constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

/// A decoder whose work is a function.
template <class Work>
class Function : public TokenDecoder {
 public:
  explicit Function(Work work) : work_(std::move(work)) {}
  void apply(Pieces& pieces) const override { work_(pieces); }

 private:
  Work work_;
};

template <class Work>
std::unique_ptr<const TokenDecoder> function(Work work) {
  return std::make_unique<Function<Work>>(std::move(work));
}

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  if (what.empty()) return;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

std::string joined(const Pieces& pieces) {
  std::string whole;
  for (const std::string& piece : pieces) whole += piece;
  return whole;
}

/// A piece that is not in the byte alphabet, such as an added token, stands for its own bytes.
void byte_level(Pieces& pieces) {
  std::string bytes;
  for (const std::string& piece : pieces) {
    const std::size_t begin = bytes.size();
    bool written = true;
    for_each_character(piece, [&](std::string_view, char32_t code) {
      const int byte = byte_of_character(code);
      written = written && byte >= 0;
      bytes += static_cast<char>(byte);
    });
    if (!written) bytes.replace(begin, std::string::npos, piece);
  }
  pieces = {to_utf8(bytes)};
}

/// The byte of "<0x0A>", by the rules of Rust's numbers, which may have a plus sign.
std::optional<char> byte_of(const std::string& piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece.back() != '>') return std::nullopt;
  const std::string digits = piece.substr(piece[3] == '+' ? 4 : 3, piece[3] == '+' ? 1 : 2);
  for (const char digit : digits)
    if (!std::isxdigit(static_cast<unsigned char>(digit))) return std::nullopt;
  return static_cast<char>(std::stoi(digits, nullptr, 16));
}

void byte_fallback(Pieces& pieces) {
  Pieces result;
  std::string bytes;
  const auto flush = [&] {
    const bool valid = to_utf8(bytes) == bytes;
    for (std::size_t i = 0; i < bytes.size() && !valid; ++i) result.emplace_back(replacement_character);
    if (valid && !bytes.empty()) result.push_back(bytes);
    bytes.clear();
  };
  for (std::string& piece : pieces) {
    if (const auto byte = byte_of(piece)) {
      bytes += *byte;
      continue;
    }
    flush();
    result.push_back(std::move(piece));
  }
  flush();
  pieces = std::move(result);
}

std::unique_ptr<const TokenDecoder> strip(Component& component) {
  const std::string content = component.character("content");
  const std::size_t start = component.count("start"), stop = component.count("stop");
  return function([=](Pieces& pieces) {
    for (std::string& piece : pieces) {
      std::string_view rest = piece;
      for (std::size_t i = 0; i < start && rest.starts_with(content); ++i) rest.remove_prefix(content.size());
      for (std::size_t i = 0; i < stop && rest.ends_with(content); ++i) rest.remove_suffix(content.size());
      piece = std::string(rest);
    }
  });
}

/// The space that encoding prepended is removed from the first piece, together with all other spaces in that piece.
std::unique_ptr<const TokenDecoder> metaspace(Component& component) {
  const Metaspace form = read_metaspace(component);
  return function([=](Pieces& pieces) {
    for (std::size_t i = 0; i < pieces.size(); ++i)
      replace_all(pieces[i], form.replacement, i == 0 && form.scheme != PrependScheme::never ? "" : " ");
  });
}

std::unique_ptr<const TokenDecoder> replace(Component& component) {
  return function([place = component.place(), pattern = std::shared_ptr(component.pattern("pattern")),
                   content = component.get<std::string>("content")](Pieces& pieces) {
    std::vector<TextSpan> matches;
    for (std::string& piece : pieces) {
      matches.clear();
      if (!piece.empty()) pattern->find_all(piece, matches);
      if (matches.empty()) continue;
      Component::require_room(piece.size() + matches.size() * content.size(), place);
      std::string result;
      std::size_t done = 0;
      for (const TextSpan& match : matches) {
        result.append(piece, done, match.begin - done).append(content);
        done = match.end;
      }
      piece = result.append(piece, done);
    }
  });
}

std::unique_ptr<const TokenDecoder> word_piece(Component& component) {
  const auto prefix = component.get<std::string>("prefix");
  const bool cleanup = component.get<bool>("cleanup");
  return function([=](Pieces& pieces) {
    constexpr std::pair<std::string_view, std::string_view> joins[] = {
        {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
        {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (i > 0 && pieces[i].starts_with(prefix))
        pieces[i].erase(0, prefix.size());
      else if (i > 0)
        pieces[i].insert(0, " ");
      if (!cleanup) continue;
      for (const auto& [what, by] : joins) replace_all(pieces[i], what, by);
    }
  });
}

std::unique_ptr<const TokenDecoder> bpe(Component& component) {
  return function([suffix = component.get<std::string>("suffix")](Pieces& pieces) {
    for (std::size_t i = 0; i < pieces.size(); ++i) replace_all(pieces[i], suffix, i + 1 == pieces.size() ? "" : " ");
  });
}

std::unique_ptr<const TokenDecoder> make(const std::string& type, Component& component) {
  if (type == "ByteLevel") {
    for (const char* key : {"add_prefix_space", "trim_offsets", "use_regex"}) component.pass_over(key);
    return function(byte_level);
  }
  if (type == "ByteFallback") return function(byte_fallback);
  if (type == "Fuse") return function([](Pieces& pieces) { pieces = {joined(pieces)}; });
  if (type == "Metaspace") return metaspace(component);
  if (type == "Replace") return replace(component);
  if (type == "Strip") return strip(component);
  if (type == "WordPiece") return word_piece(component);
  if (type == "BPEDecoder") return bpe(component);
  if (type == "Sequence") {
    std::vector<std::shared_ptr<const TokenDecoder>> steps;
    for (Component& step : component.list("decoders")) steps.push_back(make_token_decoder(std::move(step)));
    return function([steps](Pieces& pieces) {
      for (const auto& step : steps) step->apply(pieces);
    });
  }
  component.refuse_type("ByteLevel, ByteFallback, Fuse, Metaspace, Replace, Strip, WordPiece, BPEDecoder, Sequence");
}

}  // namespace

std::unique_ptr<const TokenDecoder> make_token_decoder(Component component) {
  auto decoder = make(component.type(), component);
  component.finish();
  return decoder;
}

std::string to_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (std::size_t at = 0; at < bytes.size();) {
    const auto first = static_cast<unsigned char>(bytes[at]);
    const std::size_t length = utf8_length(first);
    // longer forms than needed, surrogates, and what lies beyond U+10FFFF
    unsigned char low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    unsigned char high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    std::size_t size = 1;
    for (; size < length && at + size < bytes.size(); ++size) {
      const auto byte = static_cast<unsigned char>(bytes[at + size]);
      if (byte < low || byte > high) break;
      low = 0x80;
      high = 0xBF;
    }
    text += size == length ? bytes.substr(at, size) : replacement_character;
    at += size;
  }
  return text;
}

}  // namespace zero
