#include "models/text/added_token_finder.h"

#include <algorithm>

#include "base/utf8.h"
#include "models/text/word_character.h"

namespace zero {
namespace {

bool word_ends(std::string_view text) { return !text.empty() && is_word_character(code_point(last_character(text))); }
bool word_begins(std::string_view text) {
  return !text.empty() && is_word_character(code_point(first_character(text)));
}

std::size_t leading_space(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() && is_white_space(code_point(first_character(text.substr(length)))))
    length += first_character(text.substr(length)).size();
  return length;
}

std::size_t trailing_space(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size()) {
    const std::string_view last = last_character(text.substr(0, text.size() - length));
    if (!is_white_space(code_point(last))) break;
    length += last.size();
  }
  return length;
}

}  // namespace

void AddedTokenFinder::Pass::add(const AddedToken& token) {
  tokens_.push_back(token);
  first_[static_cast<unsigned char>(token.content.front())] = true;
}

void AddedTokenFinder::Pass::sort() {
  std::stable_sort(tokens_.begin(), tokens_.end(),
                   [](const AddedToken& a, const AddedToken& b) { return a.content < b.content; });
  tokens_.erase(std::unique(tokens_.begin(), tokens_.end(),
                            [](const AddedToken& a, const AddedToken& b) { return a.content == b.content; }),
                tokens_.end());
}

const AddedToken* AddedTokenFinder::Pass::longest_at(std::string_view rest) const {
  if (!first_[static_cast<unsigned char>(rest.front())]) return nullptr;
  const AddedToken* longest = nullptr;
  auto begin = tokens_.begin(), end = tokens_.end();  // tokens that begin as the text does, the shortest first
  for (std::size_t at = 0; at < rest.size() && begin != end; ++at) {
    const auto byte_of = [at](const AddedToken& token) {
      return at < token.content.size() ? static_cast<unsigned char>(token.content[at]) : -1;
    };
    const int byte = static_cast<unsigned char>(rest[at]);
    begin = std::partition_point(begin, end, [&](const AddedToken& token) { return byte_of(token) < byte; });
    end = std::partition_point(begin, end, [&](const AddedToken& token) { return byte_of(token) == byte; });
    if (begin != end && begin->content.size() == at + 1) longest = &*begin;
  }
  return longest;
}

void AddedTokenFinder::Pass::split(std::string_view whole, TextSpan where, std::vector<TextPart>& parts) const {
  const std::string_view text = whole.substr(where.begin, where.end - where.begin);
  const auto add = [&](std::int32_t id, std::size_t begin, std::size_t end) {
    if (begin < end) parts.push_back({id, {where.begin + begin, where.begin + end}});
  };
  std::size_t done = 0;
  for (std::size_t i = 0; i < text.size();) {
    const AddedToken* token = longest_at(text.substr(i));
    if (!token) {
      ++i;
      continue;
    }
    const std::size_t begin = i, end = i + token->content.size();
    i = end;
    if (token->single_word && (word_ends(text.substr(0, begin)) || word_begins(text.substr(end)))) continue;
    // White space that the previous token consumed is not consumed again. A token that consists only of such white
    // space, and has lstrip, is dropped. Without lstrip, it still counts as a token.
    const std::size_t from = token->lstrip ? std::max(done, begin - trailing_space(text.substr(0, begin))) : begin;
    const std::size_t to = end + (token->rstrip ? leading_space(text.substr(end)) : 0);
    if (from >= to) continue;
    add(-1, done, from);
    add(static_cast<std::int32_t>(token->id), begin, end);
    done = to;
    parts.back().taken = {where.begin + from, where.begin + to};
  }
  add(-1, done, text.size());
}

AddedTokenFinder::AddedTokenFinder(const std::vector<AddedToken>& tokens) {
  for (const AddedToken& token : tokens) (token.normalized ? normalized_ : as_written_).add(token);
  as_written_.sort();
  normalized_.sort();
}

std::vector<TextPart> AddedTokenFinder::split(std::string_view text) const {
  std::vector<TextPart> first, parts;
  as_written_.split(text, {0, text.size()}, first);
  for (const TextPart& part : first) {
    if (part.id >= 0)
      parts.push_back(part);
    else
      normalized_.split(text, part.span, parts);
  }
  return parts;
}

}  // namespace zero
