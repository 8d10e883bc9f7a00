#include "zero/programs/foreign_config.h"

#include <fstream>

#include "base/error.h"
#include "base/files/lookup.h"

namespace zero {
namespace {

constexpr std::size_t most_bytes = 1 << 20;

}  // namespace

ForeignConfig read_foreign_config(const std::string& path, const std::vector<std::string>& given) {
  if (!is_file(path)) throw InputError("--from " + path + ": is no file here");
  std::ifstream file(path, std::ios::binary);
  std::string words(most_bytes + 1, '\0');
  file.read(words.data(), std::streamsize(words.size()));
  if (file.bad() || !file.is_open()) throw InputError("--from " + path + ": cannot be read");
  words.resize(std::size_t(file.gcount()));
  if (words.size() > most_bytes)
    throw InputError("--from " + path + ": has more than 1 MiB, so it is no configuration");
  if (words.starts_with("\xEF\xBB\xBF")) words.erase(0, 3);  // a byte order mark
  if (path.ends_with(".toml"))
    throw InputError("--from " + path + ": TOML is what zero_train reads, and needs no translation");
  const std::size_t first = words.find_first_not_of(" \t\r\n");
  const bool is_json = path.ends_with(".json") || (first != words.npos && words[first] == '{');
  return is_json ? translate_deepspeed(words, path, given) : translate_axolotl(words, path, given);
}

}  // namespace zero
