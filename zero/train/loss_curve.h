#pragma once
// LoggedCurve: losses and norms of a run's logged steps, and whether they show that the run went wrong although every
// number was finite.
#include <cstdint>
#include <string>
#include <vector>

namespace zero {

struct LoggedCurve {
  std::vector<double> losses;  // of steps with a finite loss
  std::vector<double> norms;   // gradient norms of the same steps
};

/// Reads the curve of a metrics.jsonl in order, and then the `unwritten` lines. It reads the first and last 4 MiB of a
/// file above 8 MiB. It skips lines that are no objects of a step. A missing file counts as empty.
LoggedCurve logged_curve(const std::string& path, const std::string& unwritten = "");

/// Returns a warning about a run that ends worse than it began; empty if there is none. A run has n logged losses and k
/// = min(10, n / 4). "First" and "last" are the means of the first and the last k losses.
///
/// - Diverged beyond guessing, n >= 4: the last is 5 % above the very first loss and 20 % above ln(vocabulary).
/// - Rose, n >= 16: in logarithms, the last is above the first by ln 1.05 and by 6 standard errors of the difference.
/// - Jumped within the first k steps, n >= 16: no later loss comes within 5 % of the lowest of these. In logarithms,
///   the last is above that lowest loss by ln 3 and by 4 standard deviations of all losses after it.
/// - Guesses, n >= 4: the last is at least 98 % of ln(vocabulary), the loss of guessing all tokens alike. Some loss was
///   below 90 % of it, or n >= 50.
///
/// `vocabulary`: number of ids that the model knows. `rates`: the keys that set the rate, such as "optimizer.lr".
std::string doubt_about_losses(const std::vector<double>& losses, std::int64_t vocabulary, const std::string& rates);

/// Returns the same about a run whose last two or more logged steps had gradients of norm 0.
std::string doubt_about_norms(const std::vector<double>& norms, const std::string& rates);

}  // namespace zero
