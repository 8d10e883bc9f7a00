#include "zero/fetch/listing.h"

#include <set>

#include "base/error.h"
#include "base/files/past_refusal.h"
#include "base/json_text.h"
#include "base/log.h"
#include "base/quoted.h"
#include "zero/fetch/repository.h"

namespace zero {
namespace {

using nlohmann::json;

bool is_hash(const std::string& words, std::size_t digits) {
  return words.size() == digits && words.find_first_not_of("0123456789abcdef") == words.npos;
}

HubFile file_of(const json& entry, const std::string& place) {
  HubFile file;
  file.path = json_value<std::string>(entry, "path", "", place);
  if (const std::string why = why_no_path(file.path); !why.empty())
    throw Error(text(place, ": lists the file ", json_quoted(file.path), ", a path that ", why,
                     ": nothing of this repository is fetched"));
  file.bytes = json_value<std::int64_t>(entry, "size", -1, place);
  file.hash = json_value<std::string>(entry, "oid", "", place);
  std::size_t digits = 40;
  if (const auto lfs = entry.find("lfs"); lfs != entry.end() && lfs->is_object()) {
    file.bytes = json_value<std::int64_t>(*lfs, "size", file.bytes, place);
    file.hash = json_value<std::string>(*lfs, "oid", "", place);
    digits = 64;
  }
  if (file.bytes < 0 || !is_hash(file.hash, digits))
    throw Error(
        text(place, ": lists ", json_quoted(file.path), " without its size or hash; is it a Hugging Face hub?"));
  return file;
}

/// An answer that is not understood is a failure of the hub, not the user's mistake.
json parse(const std::string& words, const std::string& place) {
  return past_refusal([&] { return parse_json(words, place); });
}

}  // namespace

std::string parse_commit(const std::string& words, const std::string& place) {
  const json answer = parse(words, place);
  const std::string commit =
      answer.is_object() ? past_refusal([&] { return json_value<std::string>(answer, "sha", "", place); }) : "";
  if (!is_commit(commit)) throw Error(text(place, ": names no commit; is it a Hugging Face hub?"));
  return commit;
}

std::vector<HubFile> parse_tree(const std::string& words, const std::string& place) {
  const json answer = parse(words, place);
  if (!answer.is_array()) throw Error(text(place, ": is no list of files; is it a Hugging Face hub?"));
  std::vector<HubFile> files;
  past_refusal([&] {
    for (const json& entry : answer) {
      if (!entry.is_object()) throw Error(text(place, ": lists an entry that is no object"));
      if (json_value<std::string>(entry, "type", "", place) == "file") files.push_back(file_of(entry, place));
    }
  });
  return files;
}

void require_distinct(const std::vector<HubFile>& files, const std::string& place) {
  std::set<std::string> paths;
  for (const HubFile& file : files)
    if (!paths.insert(file.path).second) throw Error(text(place, ": lists ", json_quoted(file.path), " twice"));
}

std::string next_page_of(const std::string& link) {
  for (std::size_t begin = link.find('<'); begin != link.npos; begin = link.find('<', begin + 1)) {
    const std::size_t end = link.find('>', begin);
    if (end == link.npos) break;
    const std::string rest = link.substr(end + 1, link.find('<', end) - end - 1);
    if (rest.find("rel=\"next\"") != rest.npos || rest.find("rel=next") != rest.npos)
      return link.substr(begin + 1, end - begin - 1);
  }
  return "";
}

}  // namespace zero
