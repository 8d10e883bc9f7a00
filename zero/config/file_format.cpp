#include "zero/config/file_format.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/files/file.h"
#include "base/log.h"
#include "base/shell_word.h"

namespace zero {
namespace {

namespace fs = std::filesystem;
using namespace std::string_view_literals;

struct Format {
  const char* name;
  std::string_view first_bytes;      // empty: it has none
  std::vector<const char*> endings;  // of names
  const char* unpacked_by;           // writes the content to standard output; null: scripts/to_jsonl converts it
};

/// Sources of the first bytes: Parquet's and Arrow's format pages, RFC 1952 (gzip), RFC 8878 (zstd), the formats of xz
/// and bzip2, PKWARE's APPNOTE.
const std::vector<Format>& formats() {
  static const std::vector<Format> all{
      {"a Parquet file", "PAR1"sv, {".parquet"}, nullptr},
      {"an Arrow file", "ARROW1\0\0"sv, {".arrow", ".feather"}, nullptr},
      {"a stream of Arrow", "\xff\xff\xff\xff"sv, {}, nullptr},
      {"a CSV file", ""sv, {".csv", ".tsv"}, nullptr},
      {"packed by gzip", "\x1f\x8b\x08"sv, {".gz"}, "gzip -dc"},
      {"packed by zstd", "\x28\xb5\x2f\xfd"sv, {".zst"}, "zstd -dc"},
      {"packed by xz", "\xfd\x37\x7a\x58\x5a\0"sv, {".xz"}, "xz -dc"},
      {"packed by bzip2", "BZh91AY&"sv, {".bz2"}, "bzip2 -dc"},
      {"packed by zip", "PK\x03\x04"sv, {".zip"}, "unzip -p"},
  };
  return all;
}

/// The converted file's name, in the working directory. It is none that exists under a false name.
std::string result_of(const Format& format, const fs::path& path) {
  const bool has_ending =
      std::ranges::any_of(format.endings, [&](const char* ending) { return path.extension() == ending; });
  const std::string stem = (has_ending ? path.stem() : path.filename()).string();
  if (!format.unpacked_by) return (has_ending ? stem : "converted-" + path.stem().string()) + ".jsonl";
  return has_ending ? stem : "unpacked-" + stem;
}

std::string conversion(const Format& format, const std::string& path) {
  const std::string from = shell_word(path), to = shell_word(result_of(format, path));
  if (format.unpacked_by) return text("unpack it: ", format.unpacked_by, " ", from, " > ", to);
  return text("convert it: scripts/to_jsonl ", from, " --to ", to);
}

}  // namespace

std::string conversion_by_name(const std::string& path) {
  const std::string ending = fs::path(path).extension();
  for (const Format& format : formats())
    for (const char* one : format.endings)
      if (ending == one) return conversion(format, path);
  return "";
}

std::string conversion_by_content(const std::string& path) {
  char bytes[8];
  const File file = File::open(path);
  const std::string_view first(bytes, std::size_t(file.read_up_to(bytes, sizeof bytes, 0)));
  for (const Format& format : formats())
    if (!format.first_bytes.empty() && first.starts_with(format.first_bytes))
      return text("is ", format.name, ", whatever its name says; ", conversion(format, path));
  return "";
}

}  // namespace zero
