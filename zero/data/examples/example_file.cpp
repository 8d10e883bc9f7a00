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

using Take = std::function<bool(const Example&, const std::set<std::string>& ignored)>;

void read_each(const std::string& path, const Take& take, std::int64_t max_bytes) {
  const File file = File::open(path);
  bool wanted = true, found = false;
  ExampleReader reader(
      path,
      [&](std::string_view json, const std::string& place) {
        if (!wanted) return;
        found = true;
        std::set<std::string> ignored;
        const Example example = parse_example(json, place, &ignored);
        wanted = take(example, ignored);
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
  if (!found) throw InputError(text(path, ": holds no example: take it out, or name a file with examples"));
}

}  // namespace

void read_examples(const std::string& path, const std::function<bool(const Example&)>& take, std::int64_t max_bytes) {
  read_each(
      path, [&](const Example& example, const auto&) { return take(example); }, max_bytes);
}

std::set<std::string> ignored_keys(const std::string& path, std::int64_t count, const ReadsKey& reads) {
  static constexpr std::string_view of_messages = "[].";  // follows the name of their list
  std::set<std::string> all;
  const Take take = [&](const Example& example, const std::set<std::string>& ignored) {
    for (const std::string& key : ignored) {
      if (all.contains(key)) continue;
      const std::size_t behind = key.find(of_messages);
      if (behind == key.npos || !reads(key.substr(behind + of_messages.size()), example)) all.insert(key);
    }
    return --count > 0;
  };
  read_each(path, take, 16 << 20);
  return all;
}

}  // namespace zero
