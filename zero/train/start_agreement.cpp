#include "zero/train/start_agreement.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/lookup.h"
#include "base/fingerprint.h"
#include "base/log.h"
#include "comm/agreement/rank_list.h"
#include "comm/object_collectives.h"
#include "zero/config/read_paths.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t compared_bytes = 64 * 1024;  // at both ends of a file
constexpr std::size_t shown_facts = 4;
constexpr std::size_t shown_characters = 120;

std::string ends_of(const File& file) {
  std::string bytes(std::size_t(std::min(file.size(), 2 * compared_bytes)), '\0');
  const std::int64_t head = std::min<std::int64_t>(std::int64_t(bytes.size()), compared_bytes),
                     tail = std::int64_t(bytes.size()) - head;
  file.read_at(bytes.data(), head, 0);
  file.read_at(bytes.data() + head, tail, file.size() - tail);
  return bytes;
}

std::string described(const fs::path& path) {
  const FileFacts::Kind kind = facts_of(path).kind;
  if (kind != FileFacts::Kind::file) return kind == FileFacts::Kind::absent ? "is missing" : "is no file";
  const File file = File::open(path);
  return text(file.size(), " bytes, ", hex(fingerprint_of(ends_of(file)), 12));
}

void add_files(const ReadPath& read, std::vector<StartFact>& facts) {
  if (!is_folder(read.path)) {
    facts.push_back({text("the file ", read.path, " (", read.name, ")"), described(read.path)});
    return;
  }
  std::vector<fs::path> files;
  for (const std::string& name : names_in(read.path))
    if (const fs::path file = fs::path(read.path) / name; is_file(file)) files.push_back(file);
  for (const fs::path& file : files)
    facts.push_back({text("the file ", file.string(), " (", read.name, ")"), described(file)});
}

/// Lines "key = value" below "[section]" and "[[list]]".
void add_keys(const std::string& toml, std::vector<StartFact>& facts) {
  std::istringstream lines(toml);
  std::string section;
  int of_list = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("[[")) {
      section = text(line.substr(2, line.find(']') - 2), "[", of_list++, "]");
    } else if (line.starts_with("[")) {
      section = line.substr(1, line.find(']') - 1);
    } else if (const std::size_t equals = line.find(" = "); equals != std::string::npos) {
      const std::string name = section + "." + line.substr(0, equals);
      if (name != "offload.nvme_dir") facts.push_back({name, line.substr(equals + 3)});
    }
  }
}

std::string shortened(const std::string& value) {
  return value.size() <= shown_characters ? value : value.substr(0, shown_characters) + "...";
}

/// Returns, as JSON, the name and this rank's value of each fact that differs from rank 0's.
std::string differences(const std::vector<StartFact>& mine, const std::vector<StartFact>& first) {
  std::map<std::string, std::string> here, there;
  for (const StartFact& fact : mine) here[fact.name] = fact.value;
  for (const StartFact& fact : first) there[fact.name] = fact.value;
  nlohmann::json found = nlohmann::json::object();
  for (const auto& [name, value] : there) {
    const auto own = here.find(name);
    if (own == here.end() || own->second != value) found[name] = own == here.end() ? "absent" : own->second;
  }
  for (const auto& [name, value] : here)
    if (!there.contains(name)) found[name] = value;
  return found.empty() ? "" : found.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string written(const std::vector<StartFact>& facts) {
  nlohmann::json list = nlohmann::json::array();
  for (const StartFact& fact : facts) list.push_back({fact.name, fact.value});
  return list.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::vector<StartFact> read_again(const std::string& text) {
  std::vector<StartFact> facts;
  for (const auto& fact : nlohmann::json::parse(text)) facts.push_back({fact[0], fact[1]});
  return facts;
}

}  // namespace

std::vector<StartFact> start_facts(const Config& config, const std::vector<std::string>& arguments) {
  std::vector<StartFact> facts{{"the program", hex(fingerprint_of_file("/proc/self/exe"), 16)},
                               {"the command line", nlohmann::json(arguments).dump()}};
  add_keys(resolved_toml(config), facts);
  for (const ReadPath& read : read_paths_of(config))
    if (read.name != "the configuration") add_files(read, facts);
  return facts;
}

void check_same_start(const std::vector<StartFact>& facts, Communicator& ranks) {
  // File names may not be UTF-8, but those from the first rank were converted to UTF-8.
  const std::string told = written(facts);
  const std::vector<StartFact> mine = read_again(told), first = read_again(broadcast_text(ranks, told, 0));
  const std::vector<std::string> all = all_gather_texts(ranks, differences(mine, first));
  std::map<std::string, std::map<std::string, std::vector<int>>> others;  // ranks by fact and value
  for (int rank = 0; rank < ranks.size(); ++rank) {
    if (all[std::size_t(rank)].empty()) continue;
    const auto found = nlohmann::json::parse(all[std::size_t(rank)]);
    for (const auto& [name, value] : found.items()) others[name][value.get<std::string>()].push_back(rank);
  }
  if (others.empty()) return;
  std::string list;
  std::size_t shown = 0;
  for (const auto& [name, values] : others) {
    if (++shown > shown_facts) break;
    const auto at_first = std::ranges::find(first, name, &StartFact::name);
    list += text("\n  ", name, ": ", at_first == first.end() ? "absent" : shortened(at_first->value), " on rank 0");
    for (const auto& [value, where] : values) {
      list += text(", ", shortened(value), " on ", ranks_text(where));
    }
  }
  if (others.size() > shown_facts) list += text("\n  and ", others.size() - shown_facts, " more");
  throw InputError("the ranks do not begin alike; give all the same program, configuration and files:" + list);
}

}  // namespace zero
