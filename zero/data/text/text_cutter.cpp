#include "zero/data/text/text_cutter.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/utf8.h"

namespace zero {
namespace {

/// Formats ids as caches do: -1 stands for an empty list.
std::string listed(const std::vector<std::int32_t>& ids) {
  std::string list = ids.empty() ? "-1" : "";
  for (const std::int32_t id : ids) list += (list.empty() ? "" : " ") + std::to_string(id);
  return list;
}

}  // namespace

CacheRecipe text_recipe(const std::string& path, const TextEncoder& encoder) {
  CacheRecipe recipe;
  recipe.source = path;
  recipe.rule = fingerprint_of(text(text_rule, "; BOS ", listed(encoder.opening), ", EOS ", listed(encoder.closing),
                                    "; ", hex(encoder.fingerprint)));
  recipe.width = narrowest_token_width(encoder.vocab_size);
  recipe.cut = [next_cut = encoder.next_cut](std::string_view held, const ChunkStart& start) -> std::size_t {
    const std::size_t mark =
        start.first && held.starts_with(byte_order_mark) ? byte_order_mark.size() + 1 : 0;  // never a chunk by itself
    const std::size_t place = next_cut(held, std::max(held.size() / 2, mark));
    return place < held.size() ? place : 0;
  };
  recipe.too_long = text(
      "here begin ", recipe.most_bytes >> 20,
      " MiB without a place where the text could be cut and keep its ids, and to encode more at once would take "
      "too much memory: divide the text into smaller files, or write its ids to a .bin file by the tokenizer's own library");
  recipe.encode = [encoder, path](const SourceChunk& chunk) {
    std::string_view bytes = chunk.bytes;
    if (chunk.first && bytes.starts_with(byte_order_mark)) bytes.remove_prefix(byte_order_mark.size());
    if (chunk.first && chunk.last && bytes.empty())
      throw InputError(text(path, " is empty: there is no text to train on"));
    Utf8Check check(path, chunk.offset + static_cast<std::int64_t>(chunk.bytes.size() - bytes.size()));
    check.add(bytes);
    check.finish();
    const std::vector<int> ids = encoder.encode(bytes, !chunk.first);
    EncodedChunk encoded;
    encoded.ids.reserve(encoder.opening.size() + ids.size() + encoder.closing.size());
    if (chunk.first) encoded.ids.assign(encoder.opening.begin(), encoder.opening.end());
    for (const int id : ids) {
      ZERO_CHECK(id >= 0 && id < encoder.vocab_size, text("the tokenizer gave id ", id, " of ", encoder.vocab_size));
      encoded.ids.push_back(static_cast<std::uint32_t>(id));
    }
    if (chunk.last) encoded.ids.insert(encoded.ids.end(), encoder.closing.begin(), encoder.closing.end());
    return encoded;
  };
  return recipe;
}

}  // namespace zero
