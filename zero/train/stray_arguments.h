#pragma once
// StrayArguments: words of a command line that no option took.
#include <string>
#include <vector>

namespace zero {

/// "--lr 1e-3: unknown; a key of the configuration is given as --set optimizer.lr=1e-3". The words in their order; for one that is
/// no key's name, here or in another tool, without the second half. Not for an empty list.
std::string stray_arguments_message(const std::vector<std::string>& words);

}  // namespace zero
