#include "models/text/pipeline/model/merge_list.h"

#include "base/log.h"
#include "models/text/pipeline/component.h"

namespace zero {

std::vector<MergePair> read_merges(Component& model) {
  const nlohmann::json& list = model.value("merges");
  if (!list.is_array()) model.refuse("merges", "must be a list");
  std::vector<MergePair> merges;
  merges.reserve(list.size());
  for (const nlohmann::json& item : list) {
    if (item.is_array() && item.size() == 2 && item[0].is_string() && item[1].is_string()) {
      merges.emplace_back(item[0].get<std::string>(), item[1].get<std::string>());
      continue;
    }
    const std::string joined = item.is_string() ? item.get<std::string>() : "";
    if (item.is_string() && joined.starts_with("#version")) continue;
    const std::size_t space = joined.find(' ');
    if (space == std::string::npos || joined.find(' ', space + 1) != std::string::npos)
      model.refuse("merges", text("must hold pairs, \"a b\" or [\"a\", \"b\"], not ", item.dump()));
    merges.emplace_back(joined.substr(0, space), joined.substr(space + 1));
  }
  return merges;
}

}  // namespace zero
