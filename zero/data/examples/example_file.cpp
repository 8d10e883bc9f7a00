#include "zero/data/examples/example_file.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/log.h"
#include "zero/data/examples/example_reader.h"

namespace zero {
namespace {

void read_and_tell(const std::string& path, const std::function<bool(const Example&)>& take, std::int64_t max_bytes,
                   std::set<std::string>* ignored) {
  const File file = File::open(path);
  bool wanted = true, found = false;
  ExampleReader reader(
      path,
      [&](std::string_view json, const std::string& place) {
        if (!wanted) return;
        found = true;
        wanted = take(parse_example(json, place, ignored));
      },
      max_bytes);
  std::vector<char> block(1 << 20);
  for (std::int64_t offset = 0; offset < file.size() && wanted;) {
    const std::int64_t count = std::min<std::int64_t>(static_cast<std::int64_t>(block.size()), file.size() - offset);
    file.read_at(block.data(), count, offset);
    offset += count;
    reader.add({block.data(), static_cast<std::size_t>(count)});
  }
  if (wanted) reader.finish();
  if (!found) throw InputError(text(path, ": holds no example"));
}

}  // namespace

void read_examples(const std::string& path, const std::function<bool(const Example&)>& take, std::int64_t max_bytes) {
  read_and_tell(path, take, max_bytes, nullptr);
}

std::set<std::string> ignored_keys(const std::string& path, std::int64_t count) {
  std::set<std::string> ignored;
  read_and_tell(
      path, [&](const Example&) { return --count > 0; }, 16 << 20, &ignored);
  return ignored;
}

}  // namespace zero
