#include "zero/data/examples/example_reader.h"

#include <charconv>
#include <filesystem>
#include <utility>

#include "base/files/file.h"
#include "base/log.h"
#include "base/utf8.h"

namespace zero {
namespace {

std::variant<JsonLines, JsonList> examples_of(const std::string& path, ExampleForm form,
                                              std::function<void(std::string_view, const std::string&)> take,
                                              std::int64_t max_bytes, std::int64_t before) {
  const auto take_at = [path, form, take = std::move(take)](std::string_view json, std::int64_t number) {
    take(json, place_of(path, form, number));
  };
  if (form == ExampleForm::list) return JsonList(path, take_at, max_bytes, before);
  return JsonLines(path, take_at, max_bytes, before);
}

}  // namespace

std::string place_of(const std::string& path, ExampleForm form, std::int64_t number) {
  return text(path, form == ExampleForm::list ? ": row " : ":", number);
}

std::int64_t number_in_place(std::string_view place) {
  if (place.ends_with(")")) place = place.substr(0, place.rfind(" ("));
  std::size_t begin = place.size();
  while (begin > 0 && place[begin - 1] >= '0' && place[begin - 1] <= '9') --begin;
  std::int64_t number = 0;
  std::from_chars(place.data() + begin, place.data() + place.size(), number);
  return number;
}

std::string_view without_mark(std::string_view bytes) {
  if (bytes.starts_with(byte_order_mark)) bytes.remove_prefix(byte_order_mark.size());
  return bytes;
}

ExampleForm form_of(const std::string& path) {
  if (std::filesystem::path(path).extension() != ".json") return ExampleForm::lines;
  const File file = File::open(path);
  std::string start(4096, '\0');
  start.resize(std::size_t(file.read_up_to(start.data(), std::int64_t(start.size()), 0)));
  const std::string_view bytes = without_mark(start);
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  return first != bytes.npos && bytes[first] == '{' ? ExampleForm::lines : ExampleForm::list;
}

ExampleReader::ExampleReader(const std::string& path, ExampleForm form,
                             std::function<void(std::string_view json, const std::string& place)> take,
                             std::int64_t max_bytes, std::int64_t before)
    : examples_(examples_of(path, form, std::move(take), max_bytes, before)), at_start_(before == 0) {}

void ExampleReader::add(std::string_view bytes) {
  if (std::exchange(at_start_, false)) bytes = without_mark(bytes);
  std::visit([&](auto& examples) { examples.add(bytes); }, examples_);
}

void ExampleReader::finish() {
  std::visit([](auto& examples) { examples.finish(); }, examples_);
}

}  // namespace zero
