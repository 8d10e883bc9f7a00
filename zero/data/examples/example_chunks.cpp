#include "zero/data/examples/example_chunks.h"

#include <utility>

#include "base/log.h"

namespace zero {
namespace {

constexpr std::int64_t most_bytes = 16 << 20;  // of an example

/// The position after the comma that follows the last whole object.
std::size_t last_comma(std::string_view held, const ChunkStart& start, const std::string& path) {
  JsonList list(
      path, [](std::string_view, std::int64_t) {}, most_bytes, start.number - 1);
  const std::string_view bytes = start.first ? without_mark(held) : held;
  std::size_t place = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    list.add(bytes.substr(i, 1));
    if (bytes[i] == ',' && list.between()) place = i + 1 + (held.size() - bytes.size());
  }
  return place;
}

using TakeText = std::function<void(std::string_view json, const std::string& place)>;

ExampleReader reader_of(const SourceChunk& chunk, const std::string& path, ExampleForm form, TakeText take) {
  return {path, form, std::move(take), most_bytes, chunk.number - 1};
}

std::int64_t rows_in(const SourceChunk& chunk, const std::string& path) {
  std::int64_t rows = 0;
  reader_of(chunk, path, ExampleForm::list, [&](std::string_view, const std::string&) { ++rows; }).add(chunk.bytes);
  return rows;
}

}  // namespace

void cut_examples(CacheRecipe& recipe, ExampleForm form) {
  recipe.most_bytes = most_bytes;
  if (form == ExampleForm::lines) {
    recipe.cut = [](std::string_view held, const ChunkStart&) { return held.rfind('\n') + 1; };  // 0 if there is none
    recipe.too_long = text("the line is longer than ", most_bytes, " bytes; an example is one line");
    return;
  }
  recipe.cut = [path = recipe.source](std::string_view held, const ChunkStart& start) {
    return last_comma(held, start, path);
  };
  recipe.count = [path = recipe.source](const SourceChunk& chunk) { return rows_in(chunk, path); };
  recipe.too_long = text("the row is longer than ", most_bytes, " bytes");
}

void for_each_example(const SourceChunk& chunk, const std::string& path, ExampleForm form,
                      const std::function<void(std::string_view json, const std::string& place)>& take) {
  ExampleReader reader = reader_of(chunk, path, form, take);
  reader.add(chunk.bytes);
  if (chunk.last) reader.finish();
}

}  // namespace zero
