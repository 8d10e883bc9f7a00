#pragma once
// LoggedCurve: losses and norms of a run's logged steps, and whether they say that the run went wrong although every
// number was finite.
#include <cstdint>
#include <string>
#include <vector>

namespace zero {

struct LoggedCurve {
  std::vector<double> losses;  // of the steps whose loss is finite
  std::vector<double> norms;   // of the gradients, of the same steps
};

/// The curve of a metrics.jsonl, in order, and of `unwritten` lines that belong behind it. If a file exceeds 8 MiB, its
/// first and last 4 MiB are read. Lines that are no objects of a step are left out, and so is a missing file.
LoggedCurve logged_curve(const std::string& path, const std::string& unwritten = "");

/// A warning about a run that ends worse than it began; empty if there is none. With n logged losses and
/// k = min(10, n / 4):
///   it left all sense, n >= 4: the mean of the last k losses is above the first loss by 5 %, and above ln(vocabulary) by
///     20 %.
///   it rose, n >= 16: the mean of the last k logarithms is above that of the first k by ln 1.05 and by 6 standard
///     errors of such a difference. Or, as after a jump within the first steps, no loss comes within 5 % of the lowest of
///     the first k again, and the mean of the last k logarithms is above that one by ln 3 and by 4 standard deviations of
///     all that follow it.
///   it guesses, n >= 4: the mean of the last k losses is 98 % of ln(vocabulary) or more, the loss of guessing all tokens
///     alike, and some loss was below 90 % of it. Without that condition n >= 50.
/// `vocabulary`: the ids that the model knows. `rates`: the keys that set the rate, as in "optimizer.lr".
std::string doubt_about_losses(const std::vector<double>& losses, std::int64_t vocabulary, const std::string& rates);

/// The same about a run whose last two or more logged steps had gradients of norm 0.
std::string doubt_about_norms(const std::vector<double>& norms, const std::string& rates);

}  // namespace zero
