#include "zero/data/examples/example_pieces.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/log.h"
#include "base/utf8.h"
#include "zero/data/examples/json_list.h"

namespace zero {
namespace {

constexpr std::int64_t most_bytes = 16 << 20;  // of an example

bool is_list(const std::string& path) { return std::filesystem::path(path).extension() == ".json"; }
bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r\n") == std::string_view::npos; }

std::string_view without_mark(std::string_view bytes, bool first) {
  if (first && bytes.starts_with(byte_order_mark)) bytes.remove_prefix(byte_order_mark.size());
  return bytes;
}

JsonList list_from(const PieceStart& start, const std::string& path,
                   std::function<void(std::string_view, std::int64_t)> take) {
  return JsonList(path, std::move(take), most_bytes, start.first ? 0 : start.number - 1);
}

/// Behind the comma after the last whole object.
std::size_t last_comma(std::string_view held, const PieceStart& start, const std::string& path) {
  JsonList list = list_from(start, path, [](std::string_view, std::int64_t) {});
  const std::string_view bytes = without_mark(held, start.first);
  std::size_t place = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    list.add(bytes.substr(i, 1));
    if (bytes[i] == ',' && list.between()) place = i + 1 + (held.size() - bytes.size());
  }
  return place;
}

std::int64_t rows_in(const SourcePiece& piece, const std::string& path) {
  std::int64_t rows = 0;
  list_from(piece, path, [&](std::string_view, std::int64_t) { ++rows; }).add(without_mark(piece.bytes, piece.first));
  return rows;
}

}  // namespace

void cut_examples(CacheRecipe& recipe) {
  recipe.most_bytes = most_bytes;
  if (!is_list(recipe.source)) {
    recipe.cut = [](std::string_view held, const PieceStart&) {
      return held.rfind('\n') + 1;
    };  // 0 where there is none
    recipe.too_long = text("the line is longer than ", most_bytes, " bytes; an example is one line");
    return;
  }
  recipe.cut = [path = recipe.source](std::string_view held, const PieceStart& start) {
    return last_comma(held, start, path);
  };
  recipe.count = [path = recipe.source](const SourcePiece& piece) { return rows_in(piece, path); };
  recipe.too_long = text("the row is longer than ", most_bytes, " bytes");
}

void for_each_example(const SourcePiece& piece, const std::string& path,
                      const std::function<void(const Example&)>& take) {
  std::string_view bytes = without_mark(piece.bytes, piece.first);
  if (is_list(path)) {
    JsonList list = list_from(piece, path, [&](std::string_view object, std::int64_t row) {
      take(parse_example(object, text(path, ": row ", row)));
    });
    list.add(bytes);
    if (piece.last) list.finish();
    return;
  }
  for (std::int64_t number = piece.number; !bytes.empty(); ++number) {
    const std::size_t end = bytes.find('\n');
    const std::string_view line = bytes.substr(0, end);
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
    if (static_cast<std::int64_t>(line.size()) > most_bytes)
      throw InputError(
          text(path, ":", number, ": the line is longer than ", most_bytes, " bytes; an example is one line"));
    if (!is_blank(line)) take(parse_example(line, text(path, ":", number)));
  }
}

}  // namespace zero
