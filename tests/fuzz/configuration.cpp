// A run's TOML: what is accepted is checked against numbers of ranks and a model, written with every key, and read to
// the same again.
#include "zero/config/config.h"

#include "base/error.h"
#include "models/model_config.h"
#include "tests/fuzz/fuzz_folder.h"
#include "zero/config/config_keys.h"

namespace zero {
namespace configuration_target {

void use(const FuzzFiles& files) {
  // what follows a line "---" is given by --set
  std::string toml = files.begin()->second;
  std::vector<std::string> overrides;
  if (const std::size_t end = toml.find("\n---\n"); end != toml.npos) {
    overrides.push_back(toml.substr(end + 5));
    toml.resize(end);
  }
  const Config config = parse_config(toml, "c.toml", overrides);
  const std::string written = resolved_toml(config);
  if (!(parse_config(written, "again") == config))
    throw InternalError("the written configuration is not what was read");
  for (const int ranks : {1, 2, 6}) try {
      validate_for(config, ranks);
    } catch (const InputError&) {
    }
  validate_for_model(config, preset_config("llama-tiny"));
}

std::vector<std::string> words() {
  std::vector<std::string> lines{"[[optimizer.group]]", "match = [\"*.weight\"]", "---", "[",
                                 "a.b.c = 1",           "hidden_size = 64"};
  for (const std::string& section : section_names()) {
    lines.push_back("[" + section + "]");
    for (const std::string& key : keys_of(section)) {
      lines.push_back(key + " = 1");
      lines.push_back(section + "." + key + " = \"a\"");
    }
  }
  return lines;
}

const FuzzTarget target("configuration", {{"c.toml", FileForm::toml, words()}}, use);

}  // namespace configuration_target
}  // namespace zero
