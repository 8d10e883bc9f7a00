#include "zero/train/nearest_fit.h"

#include <vector>

#include "comm/error.h"

namespace zero {
namespace {

/// A change of one key: the ways to make it, mildest first.
struct Change {
  std::string key;
  std::vector<std::string> values;    // as TOML
  std::function<void(Config&, std::size_t)> apply;
};

std::string directory_note(const Config& config) {
  return config.offload.nvme_dir.empty() ? ", offload.nvme_dir = \"a folder on a local disk\"" : "";
}

std::vector<Change> changes_of(const Config& config, bool on_device) {
  std::vector<Change> changes;
  Change stage{"zero.stage", {}, [first = config.zero.stage + 1](Config& c, std::size_t i) { c.zero.stage = first + std::int64_t(i); }};
  for (std::int64_t s = config.zero.stage + 1; s <= 3; ++s) stage.values.push_back(std::to_string(s));
  changes.push_back(stage);
  Change recompute{"activation_checkpoint.mode", {}, [](Config& c, std::size_t) { c.activation_checkpoint.mode = "full"; }};
  if (config.activation_checkpoint.mode != "full") recompute.values = {"\"full\""};
  changes.push_back(recompute);
  Change gradients{"zero.gradient_dtype", {}, [](Config& c, std::size_t) { c.zero.gradient_dtype = "bf16"; }};
  if (config.training.precision == "bf16" && config.zero.gradient_dtype != "bf16") gradients.values = {"\"bf16\""};
  changes.push_back(gradients);
  // On the CPU the host is where everything lives.
  const std::vector<std::string> homes = on_device ? std::vector<std::string>{"cpu", "nvme"} : std::vector<std::string>{"nvme"};
  const auto tried = [&](const std::string& now) { return now == "nvme" ? homes.size() : now == "cpu" && on_device ? 1u : 0u; };
  const std::size_t first_optimizer = tried(config.offload.optimizer), first_parameters = tried(config.offload.parameters);
  Change optimizer{"offload.optimizer", {}, [=](Config& c, std::size_t i) { c.offload.optimizer = homes[first_optimizer + i]; }};
  for (std::size_t i = first_optimizer; i < homes.size(); ++i)
    optimizer.values.push_back("\"" + homes[i] + "\"" + (homes[i] == "nvme" ? directory_note(config) : ""));
  changes.push_back(optimizer);
  Change parameters{"offload.parameters", {}, [=](Config& c, std::size_t i) { c.offload.parameters = homes[first_parameters + i]; }};
  for (std::size_t i = first_parameters; i < homes.size(); ++i) parameters.values.push_back("\"" + homes[i] + "\"");
  changes.push_back(parameters);
  Change batch{"training.local_batch_size", {}, {}};
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = config.training.local_batch_size / 2; size >= 1; size /= 2) {
    sizes.push_back(size);
    batch.values.push_back(std::to_string(size));
  }
  batch.apply = [sizes](Config& c, std::size_t i) { c.training.local_batch_size = sizes[i]; };
  changes.push_back(batch);
  return changes;
}

struct Search {
  std::vector<Change> changes;
  int ranks;
  bool on_device;
  FitTest fits;
};

/// Goes through the ways of the changes chosen by `mask`, from the last change on.
std::string try_ways(const Config& config, const Search& search, unsigned mask) {
  const std::vector<Change>& changes = search.changes;
  int last = int(changes.size()) - 1;
  while (last >= 0 && !(mask >> last & 1u)) --last;
  if (last < 0) {
    const bool away = config.offload.parameters != "none";
    if (away && (config.zero.stage != 3 || (search.on_device && config.offload.optimizer == "none"))) return "";
    try {
      return search.fits(config, BatchArithmetic::of(config, search.ranks)) ? " " : "";
    } catch (const InputError&) {
      return "";  // the batch does not divide
    }
  }
  const Change& change = changes[last];
  for (std::size_t i = 0; i < change.values.size(); ++i) {
    Config other = config;
    change.apply(other, i);
    const std::string rest = try_ways(other, search, mask & ~(1u << last));
    if (rest.empty()) continue;
    return (rest == " " ? "" : rest + ", ") + change.key + " = " + change.values[i];
  }
  return "";
}

}  // namespace

std::string nearest_fit(const Config& config, const BatchArithmetic& batch, bool on_device, const FitTest& fits) {
  Config start = config;
  start.training.global_batch_size = batch.global_batch_size;  // a smaller micro-batch changes memory, not the training
  const Search search{changes_of(config, on_device), batch.ranks, on_device, fits};
  for (unsigned mask = 1; mask < 1u << search.changes.size(); ++mask)
    if (const std::string found = try_ways(start, search, mask); !found.empty()) return found;
  return "";
}

}  // namespace zero
