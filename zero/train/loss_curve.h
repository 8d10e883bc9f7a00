#pragma once
// LossCurve: the losses of a run's logged steps, and whether they say that the run went wrong although every number was
// finite.
#include <cstdint>
#include <string>
#include <vector>

namespace zero {

/// The finite losses in a metrics.jsonl, in order, and in `unwritten` lines that belong behind them. Of a file beyond
/// 8 MiB its first and last 4 MiB are read. Lines that are no objects of a step are left out, and so is a missing file.
std::vector<double> logged_losses(const std::string& path, const std::string& unwritten = "");

/// What to tell a user about a run that ends worse than it began; empty where nothing is to be told. With n logged
/// losses and k = min(10, n / 4):
///   it rose, n >= 16: the mean of the last k logarithms is above that of the first k by ln 1.05 and by 6 standard
///     errors of such a difference. Or, as after a jump within the first steps, no loss comes within 5 % of the lowest of
///     the first k again, and the mean of the last k logarithms is above that one by ln 3 and by 4 standard deviations of
///     all that follow it.
///   it guesses, n >= 4: the mean of the last k losses is 98 % of ln(vocabulary) or more, the loss of guessing all tokens
///     alike, and some loss was below 90 % of it. Without that condition n >= 50.
/// `vocabulary`: the ids that the model knows. `rates`: the keys that set the rate, as in "optimizer.lr".
std::string doubt_about_losses(const std::vector<double>& losses, std::int64_t vocabulary, const std::string& rates);

}  // namespace zero
