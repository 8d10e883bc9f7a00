// A checkpoint: manifest.json and the files of two ranks. Their checksums are made good where the manifest's is zero,
// so that what lies behind them is reached.
#include <ATen/ATen.h>

#include <cstring>

#include "base/error.h"
#include "base/hash.h"
#include "tests/fuzz/fuzz_folder.h"
#include "zero/checkpoint/manifest.h"
#include "zero/checkpoint/saved_states.h"

namespace zero {
namespace checkpoint_target {

constexpr std::size_t sum_at = 13, sum_digits = 16;  // behind {"checksum":"
constexpr std::int64_t largest_tensor = 1 << 16;

std::string hex(std::uint64_t number) {
  char word[sum_digits + 1];
  std::snprintf(word, sizeof word, "%016llx", static_cast<unsigned long long>(number));
  return word;
}

std::string with_sum(std::string manifest) {
  manifest.replace(sum_at, sum_digits, sum_digits, '0');
  return manifest.replace(sum_at, sum_digits, hex(checksum_of(manifest + "\n" + std::to_string(manifest.size()))));
}

/// The shards' tables with the sums of its chunks, and the manifest with the tables'.
void make_good(FuzzFiles& files) {
  std::string& manifest = files["manifest.json"];
  manifest = with_sum(manifest);
  const Manifest read = parse_manifest(manifest, "manifest.json");
  for (const SavedFile& file : read.files) {
    const auto found = files.find(file.name);
    if (found == files.end() || found->first == "manifest.json") continue;
    std::string& states = found->second;
    const ShardFormat format(file.sections, read.states(), read.chunk_elements);
    if (format.bytes() != std::int64_t(states.size())) continue;
    std::vector<std::uint64_t> table(std::size_t(format.table_bytes() / 8));
    for (std::int64_t i = 0; i < format.chunks(); ++i)
      table[std::size_t(i)] = checksum(reinterpret_cast<const std::byte*>(states.data()) + format.chunk(i).offset,
                                       std::size_t(format.chunk(i).bytes));
    const auto* bytes = reinterpret_cast<const std::byte*>(table.data());
    std::copy_n(reinterpret_cast<const char*>(bytes), format.table_bytes(), states.begin() + format.table_offset());
    const std::string was = hex(file.mark.checksum), is = hex(checksum(bytes, std::size_t(format.table_bytes())));
    for (std::size_t at = sum_at + sum_digits; (at = manifest.find(was, at)) != manifest.npos; at += sum_digits)
      manifest.replace(at, sum_digits, is);
  }
  manifest = with_sum(manifest);
}

void use(const FuzzFiles& given) {
  FuzzFiles files = given;
  if (const std::string manifest = files["manifest.json"];
      manifest.substr(0, sum_at + sum_digits).ends_with(std::string(sum_digits, '0')))
    make_good(files);
  FileCalls calls;
  SavedStates saved(calls, FuzzFolder::with(files).path());
  for (const SavedFile& file : saved.manifest().files)
    if (file.name == ".." || file.name.find('/') != file.name.npos)
      throw InternalError("the manifest names a file outside its folder");
  const std::string again = format_manifest(saved.manifest());
  if (saved.manifest().version > 1 && format_manifest(parse_manifest(again, "again")) != again)
    throw InternalError("the manifest is not what was read");
  saved.manifest().bytes();
  for (const SavedGroup& group : saved.manifest().groups)
    for (const FlatTensor& tensor : group.tensors) {
      const std::int64_t count = tensor.spec.numel();
      if (count > largest_tensor || !saved.holds(tensor.spec.name)) continue;
      try {
        for (const StateSpec& state : saved.states_of(tensor.spec.name)) {
          std::string values(std::size_t(state.bytes(count)), '\0');
          saved.read(tensor.spec.name, 0, count, {{state, values.data()}});
        }
      } catch (const Error&) {  // the next tensor may do
      }
    }
  saved.verify();
}

const FuzzTarget target("checkpoint",
                        {{"manifest.json",
                          FileForm::json,
                          {R"({"name": "master", "type": "float32", "grain": 1})", R"("uint8")", R"("bfloat16")",
                           R"({"name": "w", "shape": [2, 3], "offset": 0})", "[0, 0, 35]", R"("rank-00000.states")",
                           "4096", R"("0000000000000000")", R"("../rank-00000.states")",
                           R"("sources": {"base/config.json": "00"})", R"({"numel": 8, "states": [], "tensors": []})",
                           R"("%41%")", "2"}},
                         {"rank-00000.states"},
                         {"rank-00001.states"}},
                        use);

}  // namespace checkpoint_target
}  // namespace zero
