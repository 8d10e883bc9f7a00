#pragma once
// Proof: runs one configuration in all layouts and reports a verdict for each.
#include <iosfwd>
#include <string>
#include <vector>

#include "zero/prove/comparison.h"
#include "zero/prove/layout_runs.h"

namespace zero {

enum class Agreement : std::uint8_t { reference, bits, rounding, different, failed, refused };

struct LayoutVerdict {
  Layout layout;
  Agreement agreement = Agreement::different;
  std::string against;             // the layout it was compared with
  std::optional<Parting> parting;  // if different
  double most = 0;                 // share of a bound, if within rounding
  std::string most_of;             // the value with that share
  std::string words;               // why the run failed or was not allowed
  double seconds = 0;
  bool is_good() const { return agreement != Agreement::different && agreement != Agreement::failed; }
};

struct ProofOptions {
  std::string config;                  // path
  std::vector<std::string> overrides;  // "section.key=value"
  std::string program;                 // this program, which trains when it is started to record
  LayoutLimits limits;
  std::int64_t steps = 4;
  std::vector<std::string> only;
  bool list = false;
  bool first = false;  // stop after the first layout that differs
  bool keep = false;
  std::string scratch;
  std::string json;  // output file for the results; empty: none
  int cores = 1;
};

/// Prints the table as it grows. Returns exit code 1 if a layout differs or failed. Throws InputError if the user can
/// fix the cause, such as a reference layout that is not allowed.
int prove(const ProofOptions& options, std::ostream& out);

/// Checks a run, in this order: contradictions in its own record, its start, equality bit for bit with another run,
/// distances against the rounding bounds.
LayoutVerdict judge(const Layout& layout, const std::map<std::string, RunRecord>& records, const RoundingBounds& bounds,
                    const std::string& reference_precision);

}  // namespace zero
