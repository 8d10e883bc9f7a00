#include <sstream>

#include "base/error.h"
#include "base/log.h"
#include "comm/agreement/same_lines.h"
#include "zero/library/sharded_impl.h"

namespace zero {
namespace {

// One line per option. Adding a field to the struct is a compile error here.
std::string lines_of(const ShardOptions& options) {
  const auto& [stage, precision, units, open_groups, buffers, shard_degree, state_dtype, master_dtype, seed] = options;
  std::ostringstream lines;
  lines << "stage " << stage << '\n';
  if (precision) lines << "precision " << *precision << '\n';
  for (const std::string& unit : units) lines << "units " << unit << '\n';
  lines << "open_groups " << open_groups << '\n'
        << "buffers " << (buffers == Buffers::local ? "local" : "of_main") << '\n'
        << "shard_degree " << shard_degree << '\n'
        << "state_dtype " << state_dtype << '\n'
        << "master_dtype " << (master_dtype == Masters::split ? "split" : "fp32") << '\n'
        << "seed " << seed << '\n';
  return lines.str();
}

}  // namespace

void ShardedModel::Impl::check_same_settings(at::ScalarType parameters) {
  const std::string mine =
      text("parameters ", parameters, '\n') + lines_of(options) + (trains ? lines_of(optimizer) : "no optimizer\n");
  if (const auto found = difference_of_lines(mesh.host(), mine))
    throw InputError(text("the model is sharded otherwise on process ", found->rank, " (", found->other,
                          ") than on process 0 (", found->first,
                          "): all processes take the same options and optimizer, and parameters of one type"));
}

}  // namespace zero
