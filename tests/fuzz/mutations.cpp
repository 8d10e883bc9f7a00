#include "tests/fuzz/mutations.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace zero {
namespace {

using Json = nlohmann::ordered_json;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// A template as tags, texts between them, and in tags words and single characters.
std::vector<std::string> pieces_of(const std::string& text) {
  std::vector<std::string> pieces;
  bool inside = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = std::string_view(text).substr(at);
    std::size_t length = 1;
    if (rest.starts_with("{%") || rest.starts_with("{{") || rest.starts_with("{#"))
      inside = true, length = 2;
    else if (rest.starts_with("%}") || rest.starts_with("}}") || rest.starts_with("#}"))
      inside = false, length = 2;
    else if (!inside)
      length = std::max<std::size_t>(1, std::min(rest.find('{', 1), rest.size()));
    else
      while (is_word(rest[0]) && length < rest.size() && is_word(rest[length])) ++length;
    pieces.emplace_back(rest.substr(0, length));
    at += length;
  }
  return pieces;
}

}  // namespace

std::string Mutations::of_bytes(std::string text, const std::vector<std::string>& sources,
                                const std::vector<std::string>& words) {
  for (std::size_t change = 1 + below(6); change > 0; --change) {
    const std::size_t at = below(text.size() + 1), count = 1 + below(below(4) == 0 ? 200 : 6);
    switch (below(7)) {
      case 0:
        text.erase(at, count);
        break;
      case 1:
        text.insert(at, one_of(words));
        break;
      case 2:
        if (at < text.size()) text[at] = static_cast<char>(random_());
        break;
      case 3:
        text.insert(at, text.substr(below(text.size() + 1), count));
        break;
      case 4: {
        const std::string& other = one_of(sources);
        text.insert(at, other.substr(below(other.size() + 1), count * 4));
        break;
      }
      case 5:
        if (below(20) == 0) text.resize(at);
        break;
      default:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
    }
  }
  return text;
}

std::string Mutations::wild_text(std::string text) {
  static const std::vector<std::string> texts{"",
                                              " ",
                                              "\n",
                                              "\u2581",
                                              "\u0120",
                                              "a",
                                              "\U0001F680",
                                              "e\u0301",
                                              "\u0345",
                                              "<unk>",
                                              "(a+)+$",
                                              "\\s+",
                                              "(?=",
                                              "[^\\s]",
                                              "(?<x>)",
                                              "(?:a|a)*b",
                                              "\\p{L}{1,99999}",
                                              "[[:alpha:",
                                              "(?i:\\X)",
                                              "a{1000}{1000}",
                                              "(((((((((",
                                              "$A:0 $B",
                                              "first",
                                              "always",
                                              "never",
                                              "Isolated",
                                              "MergedWithPrevious",
                                              "Removed",
                                              "0x110000",
                                              "\x7F"};
  switch (below(4)) {
    case 0:
      return one_of(texts);
    case 1:
      return of_bytes(std::move(text), {one_of(texts)}, texts);
    case 2:
      return text + one_of(texts);
    default:
      return std::string(below(3000), below(2) ? 'a' : ' ');
  }
}

Json Mutations::wild(const Json& old) {
  static const std::vector<Json> values{nullptr,
                                        true,
                                        false,
                                        0,
                                        1,
                                        -1,
                                        2,
                                        255,
                                        256,
                                        65536,
                                        2147483647,
                                        2147483648U,
                                        -2147483648LL,
                                        4294967295U,
                                        9223372036854775807LL,
                                        18446744073709551615ULL,
                                        1e308,
                                        0.5,
                                        -0.0,
                                        1e-320,
                                        Json::array(),
                                        Json::object(),
                                        "",
                                        "a",
                                        Json::array({nullptr}),
                                        Json::array({1, "a"})};
  if (old.is_string() && below(3) != 0) return wild_text(old.get<std::string>());
  constexpr std::int64_t far = 1LL << 40;
  if (old.is_number_integer() && below(2) == 0 && old.get<std::int64_t>() < far && old.get<std::int64_t>() > -far)
    return old.get<std::int64_t>() + static_cast<std::int64_t>(below(5)) - 2;
  if (below(40) != 0) return one_of(values);
  Json deep = 1;
  for (std::size_t level = below(80); level > 0; --level) deep = below(2) ? Json::array({deep}) : Json{{"type", deep}};
  return deep;
}

Json& Mutations::somewhere(Json& document) {
  Json* place = &document;
  while (place->is_structured() && !place->empty() && below(6) != 0) {
    auto child = place->begin();
    std::advance(child, static_cast<std::ptrdiff_t>(below(place->size())));
    place = &*child;
  }
  return *place;
}

Json Mutations::of_json(Json document, const std::vector<Json>& sources, const std::vector<Json>& parts) {
  for (std::size_t change = 1 + below(4); change > 0; --change) {
    Json& place = somewhere(document);
    switch (below(7)) {
      case 0:
      case 1:
        place = wild(place);
        break;
      case 2:
        place = one_of(parts);
        break;
      case 3: {
        Json other = one_of(sources);
        place = Json(somewhere(other));
        break;
      }
      case 4:
        if (!place.is_structured() || place.empty()) break;
        place.erase(std::next(place.begin(), static_cast<std::ptrdiff_t>(below(place.size()))));
        break;
      case 5:
        if (place.is_array() && !place.empty())
          place.insert(place.begin() + static_cast<std::ptrdiff_t>(below(place.size() + 1)),
                       Json(place[below(place.size())]));
        else if (place.is_object())
          place[wild_text("type")] = wild(nullptr);
        break;
      default:
        place = below(2) ? Json{{"type", "Sequence"},
                                {one_of<std::string>({"normalizers", "pretokenizers", "processors", "decoders"}),
                                 Json::array({Json(place), one_of(parts)})}}
                         : Json::array({Json(place)});
    }
  }
  return document;
}

std::string Mutations::of_template(const std::string& text, const std::vector<std::string>& sources,
                                   const std::vector<std::string>& words) {
  std::vector<std::string> pieces = pieces_of(text);
  const std::vector<std::string> others = pieces_of(one_of(sources));
  for (std::size_t change = 1 + below(5); change > 0 && !pieces.empty(); --change) {
    const std::size_t at = below(pieces.size()),
                      count = std::min(pieces.size() - at, 1 + below(below(3) == 0 ? 60 : 4));
    const auto begin = pieces.begin() + static_cast<std::ptrdiff_t>(at);
    switch (below(6)) {
      case 0:
        pieces.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
        break;
      case 1:
        pieces[at] = one_of(words);
        break;
      case 2:
        pieces.insert(begin, one_of(words));
        break;
      case 3: {
        const std::vector<std::string> copy(begin, begin + static_cast<std::ptrdiff_t>(count));
        pieces.insert(pieces.begin() + static_cast<std::ptrdiff_t>(below(pieces.size() + 1)), copy.begin(), copy.end());
        break;
      }
      case 4: {
        const std::size_t from = below(others.size()), length = std::min(others.size() - from, count * 3);
        pieces.insert(begin, others.begin() + static_cast<std::ptrdiff_t>(from),
                      others.begin() + static_cast<std::ptrdiff_t>(from + length));
        break;
      }
      default:
        pieces[at] = others.empty() ? "" : one_of(others);
    }
  }
  std::string made;
  for (const std::string& piece : pieces) made += piece;
  return made;
}

}  // namespace zero
