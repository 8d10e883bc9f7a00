#include "tests/fuzz/fuzz_target.h"

#include <algorithm>

#include "base/error.h"

namespace zero {
namespace {

constexpr std::string_view mark = "=== ";

std::map<std::string, const FuzzTarget*>& known() {
  static std::map<std::string, const FuzzTarget*> targets;
  return targets;
}

}  // namespace

FuzzTarget::FuzzTarget(std::string name, std::vector<Part> parts, void (*use)(const FuzzFiles&))
    : name_(std::move(name)), parts_(std::move(parts)), use_(use) {
  known()[name_] = this;
}

std::vector<const FuzzTarget*> FuzzTarget::all() {
  std::vector<const FuzzTarget*> targets;
  for (const auto& [name, target] : known()) targets.push_back(target);
  return targets;
}

std::string FuzzTarget::run(std::string_view input) const {
  try {
    use_(files_of(input));
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

FuzzFiles FuzzTarget::files_of(std::string_view input) const {
  if (parts_.size() == 1) return {{parts_.front().name, std::string(input)}};
  FuzzFiles files;
  const auto next_mark = [&](std::size_t from) {  // at a line's start
    std::size_t at = from;
    while ((at = input.find(mark, at)) != input.npos && at > 0 && input[at - 1] != '\n') ++at;
    return at;
  };
  for (std::size_t at = next_mark(0); at != input.npos;) {
    const std::size_t end = std::min(input.find('\n', at), input.size());
    const std::string name(input.substr(at + mark.size(), end - at - mark.size()));
    const std::size_t begin = std::min(end + 1, input.size()), next = next_mark(begin);
    const std::size_t stop = next == input.npos ? input.size() : next == begin ? begin : next - 1;  // its line's end
    if (std::any_of(parts_.begin(), parts_.end(), [&](const Part& part) { return part.name == name; }))
      files[name] = input.substr(begin, stop - begin);
    at = next;
  }
  return files;
}

std::string FuzzTarget::input_of(const FuzzFiles& files) const {
  if (parts_.size() == 1) return files.at(parts_.front().name);
  std::string input;
  for (const Part& part : parts_)
    if (const auto found = files.find(part.name); found != files.end())
      input += (input.empty() ? "" : "\n") + std::string(mark) + part.name + "\n" + found->second;
  return input;
}

}  // namespace zero
