#pragma once
// The golden models of families: the folders of tests/data/families, except those with adapters.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace zero::test {

inline std::vector<std::string> golden_families() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(ZERO_TEST_DATA "/families"))
    if (const std::string name = entry.path().filename().string(); !name.ends_with("-lora")) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace zero::test
