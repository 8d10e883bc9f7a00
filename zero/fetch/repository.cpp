#include "zero/fetch/repository.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "base/error.h"
#include "base/log.h"
#include "base/quoted.h"

namespace zero {
namespace {

constexpr std::size_t longest_name = 96, longest_component = 255, longest_path = 1024;

bool is_plain(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.'; }

bool is_name(std::string_view name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) { return is_plain(c) || c == '/'; });
  return plain && !name.empty() && name.size() <= longest_name && std::count(name.begin(), name.end(), '/') <= 1 &&
         why_no_path(std::string(name)).empty() && name.find("..") == name.npos && name.find("--") == name.npos;
}

std::string hint_for(const std::string& words) {
  if (words.find("://") != words.npos) return "; give the part of the address after the host";
  if (words.starts_with("datasets/")) return "; a data set is OWNER/NAME with --dataset";
  return "";
}

std::string why_no_component(std::string_view name) {
  if (name.empty()) return "has an empty component";
  if (name == "." || name == "..") return "has \".\" or \"..\" in it";
  if (name == ".git") return "leads into a folder of git";
  return name.size() > longest_component ? "has a component that is too long" : "";
}

}  // namespace

Repository Repository::parse(const std::string& words, RepositoryKind kind) {
  Repository repository{kind, words};
  if (const std::size_t at = words.find('@'); at != words.npos) {
    repository.name = words.substr(0, at);
    repository.revision = words.substr(at + 1);
    if (const std::string why = why_no_path(repository.revision); !why.empty())
      throw InputError(text(json_quoted(words), ": the revision after @ ", why));
  }
  if (!is_name(repository.name))
    throw InputError(text(json_quoted(words),
                          ": must be OWNER/NAME or OWNER/NAME@REVISION, of letters, digits, \"-\", \"_\" and \".\"",
                          hint_for(words)));
  return repository;
}

std::string Repository::api_path() const {
  return (kind == RepositoryKind::model ? "/api/models/" : "/api/datasets/") + name;
}

std::string Repository::page_path() const { return (kind == RepositoryKind::model ? "/" : "/datasets/") + name; }

std::string Repository::file_path(const std::string& commit, const std::string& file) const {
  return page_path() + "/resolve/" + commit + "/" + percent_encoded(file, "/");
}

std::string Repository::cache_name() const {
  std::string folder = (kind == RepositoryKind::model ? "models--" : "datasets--") + name;
  if (const std::size_t slash = folder.find('/'); slash != folder.npos) folder.replace(slash, 1, "--");
  return folder;
}

std::string percent_encoded(const std::string& text, const std::string& kept) {
  static constexpr char digit[] = "0123456789ABCDEF";
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte < 0x80 && (is_plain(c) || c == '~');
    if (plain || kept.find(c) != kept.npos)
      result += c;
    else
      result += {'%', digit[byte >> 4], digit[byte & 15]};
  }
  return result;
}

bool is_commit(const std::string& revision) {
  return revision.size() == 40 && revision.find_first_not_of("0123456789abcdef") == revision.npos;
}

std::string why_no_path(const std::string& path) {
  if (path.empty()) return "is empty";
  if (path.front() == '/') return "is absolute";
  if (path.size() > longest_path) return "is too long";
  for (const char c : path)
    if (c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return "has a backslash or a control character";
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (std::string why = why_no_component(std::string_view(path).substr(begin, end - begin)); !why.empty()) return why;
    begin = end + 1;
  }
  return "";
}

}  // namespace zero
