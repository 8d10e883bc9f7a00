#pragma once
// Proof: one configuration in all layouts, and a verdict for each.
#include <iosfwd>
#include <string>
#include <vector>

#include "zero/prove/comparison.h"
#include "zero/prove/layout_runs.h"
#include "zero/prove/proof_folder.h"

namespace zero {

enum class Agreement : std::uint8_t { reference, bits, rounding, different, failed, refused };

struct LayoutVerdict {
  Layout layout;
  Agreement agreement = Agreement::different;
  std::string against;             // the layout that it was held to
  std::optional<Parting> parting;  // of a different one
  double most = 0;                 // of a bound, within rounding
  std::string most_of;             // what that was
  std::string words;               // why it failed or was refused
  double seconds = 0;
  bool is_good() const { return agreement != Agreement::different && agreement != Agreement::failed; }
};

struct ProofOptions {
  std::string config;                  // path
  std::vector<std::string> overrides;  // "section.key=value"
  std::string program;                 // this one, which trains when it is told to record
  LayoutLimits limits;
  std::int64_t steps = 4;
  std::vector<std::string> only;
  bool list = false;
  bool first = false;  // nothing is run after the first layout that differs
  bool keep = false;
  std::string scratch;
  std::string json;  // a file for the results; empty: none
  int cores = 1;
};

/// Prints the table while it grows. The exit code: 1 where a layout differs or failed. Throws InputError for what the
/// user can mend, a reference that is refused among it.
int prove(const ProofOptions& options, std::ostream& out);

/// Of a run against those that it leans on: its own contradictions, its start, the bits that it must have, rounding.
LayoutVerdict judge(const Layout& layout, const std::map<std::string, RunRecord>& records, const RoundingBounds& bounds,
                    const std::string& reference_precision);

}  // namespace zero
