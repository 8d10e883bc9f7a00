#include "zero/data/examples/example_file.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/log.h"
#include "zero/data/examples/example_reader.h"

namespace zero {

void read_example_texts(const std::string& path,
                        const std::function<bool(std::string_view json, const std::string& place)>& take,
                        std::int64_t max_bytes) {
  const File file = File::open(path);
  bool wanted = true, found = false;
  ExampleReader reader(
      path, form_of(path),
      [&](std::string_view json, const std::string& place) {
        if (!wanted) return;
        found = true;
        wanted = take(json, place);
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

void read_examples(const std::string& path, const std::function<bool(const Example&)>& take, std::int64_t max_bytes) {
  read_example_texts(
      path, [&](std::string_view json, const std::string& place) { return take(parse_example(json, place)); },
      max_bytes);
}

std::vector<Example> one_sequence(std::string_view json, const std::string& place, std::set<std::string>* ignored) {
  return {parse_example(json, place, ignored)};
}

std::set<std::string> ignored_keys(const std::string& path, std::int64_t count, const ReadsKey& reads,
                                   const ParseSequences& parse) {
  static constexpr std::string_view of_messages = "[].";  // follows the name of their list
  std::set<std::string> all;
  read_example_texts(path, [&](std::string_view json, const std::string& place) {
    std::set<std::string> ignored;
    const std::vector<Example> sequences = parse(json, place, &ignored);
    for (const std::string& key : ignored) {
      if (all.contains(key)) continue;
      const std::size_t behind = key.find(of_messages);
      const auto needs = [&](const Example& one) { return reads(key.substr(behind + of_messages.size()), one); };
      if (behind == key.npos || std::ranges::none_of(sequences, needs)) all.insert(key);
    }
    return --count > 0;
  });
  return all;
}

}  // namespace zero
