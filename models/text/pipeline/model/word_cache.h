#pragma once
// WordCache: the tokens of earlier words. Each word has one slot, and a later word may replace it. Does not include
// LibTorch.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/pipeline/model/word_token.h"

namespace zero {

class WordCache {
 public:
  static constexpr std::size_t longest = 256;  // bytes of a cached word

  WordCache() : entries_(std::size_t{1} << place_bits) {}

  /// Appends the tokens of `word`. If they are not cached, `encode(word, tokens)` appends them.
  template <class Encode>
  void append(std::string_view word, WordTokens& tokens, const Encode& encode) {
    const std::uint64_t hash = std::hash<std::string_view>{}(word);
    Entry& entry = entries_[hash & (entries_.size() - 1)];
    if (entry.hash == hash && std::string_view(words_).substr(entry.word, entry.size) == word) {
      const auto known = std::span(tokens_).subspan(entry.tokens, entry.count);
      tokens.insert(tokens.end(), known.begin(), known.end());
      return;
    }
    const std::size_t begin = tokens.size();
    encode(word, tokens);
    if (word.size() > longest) return;
    if (words_.size() > most_bytes || tokens_.size() > most_bytes) clear();
    entry = {hash, static_cast<std::uint32_t>(words_.size()), static_cast<std::uint32_t>(word.size()),
             static_cast<std::uint32_t>(tokens_.size()), static_cast<std::uint32_t>(tokens.size() - begin)};
    words_ += word;
    tokens_.insert(tokens_.end(), tokens.begin() + static_cast<std::ptrdiff_t>(begin), tokens.end());
  }

 private:
  static constexpr int place_bits = 16;
  static constexpr std::size_t most_bytes = 4 << 20;

  struct Entry {
    std::uint64_t hash = 0;
    std::uint32_t word = 0, size = 0, tokens = 0, count = 0;
  };

  void clear() {
    entries_.assign(entries_.size(), {});
    words_.clear();
    tokens_.clear();
  }

  std::vector<Entry> entries_;
  std::string words_;
  WordTokens tokens_;
};

}  // namespace zero
