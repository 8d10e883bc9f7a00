#pragma once
// LoggedCurve: losses and norms of a run's logged steps. It detects a run that went wrong although every value was
// finite.
#include <cstdint>
#include <string>
#include <vector>

namespace zero {

struct LoggedCurve {
  std::vector<double> losses;  // of steps with a finite loss
  std::vector<double> norms;   // gradient norms of the same steps
};

/// Reads the curve from metrics.jsonl in order, and then from the `unwritten` lines. If the file is larger than 8 MiB,
/// reads only its first and last 4 MiB. Skips lines that are not a step's object. A missing file counts as empty.
LoggedCurve logged_curve(const std::string& path, const std::string& unwritten = "");

/// Returns a warning about a run that ends worse than it began; empty if there is none. A run has n logged losses and k
/// = min(10, n / 4). "First" and "last" are the means of the first and the last k losses.
///
/// - Diverged beyond guessing, n >= 4: the last mean is 5 % above the first logged loss and 20 % above ln(vocabulary).
/// - Rose, n >= 16: in logarithms, the last exceeds the first by ln 1.05 and by 6 standard errors of their
///   difference.
/// - Jumped within the first k steps, n >= 16: no later loss comes within 5 % of the lowest of these k. In logarithms,
///   the last exceeds that lowest loss by ln 3 and by 4 standard deviations of all losses after it.
/// - Guesses, n >= 4: the last is at least 98 % of ln(vocabulary), the loss of guessing uniformly. In addition, some
///   loss was below 90 % of it, or n >= 50.
///
/// `vocabulary`: the model's number of token ids. `rates`: the keys that set the learning rate, such as "optimizer.lr".
std::string doubt_about_losses(const std::vector<double>& losses, std::int64_t vocabulary, const std::string& rates);

/// Returns a warning about a run whose last two or more logged steps had gradients of norm 0; otherwise empty.
std::string doubt_about_norms(const std::vector<double>& norms, const std::string& rates);

}  // namespace zero
