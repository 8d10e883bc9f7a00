#pragma once
// RunSettings: the configuration of a run as its config.toml states it, whichever version wrote the file.
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace zero {

/// "optimizer.lr" and its value as text; texts have no quotes.
using RunSettings = std::map<std::string, std::string>;

/// Throws InputError, with a reason in one line, if the text is not TOML.
RunSettings parse_settings(std::string_view toml);

/// The keys whose values differ among runs, in the order of their names. An absent key differs from any value. Runs
/// without any setting do not count. job.output_dir is omitted, because it names a run and is not a setting.
std::vector<std::string> differing_keys(const std::vector<const RunSettings*>& runs);

}  // namespace zero
