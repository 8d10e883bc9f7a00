#include "zero/train/loss_curve.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iomanip>
#include <numeric>
#include <optional>
#include <span>
#include <sstream>

#include "base/error.h"
#include "base/log.h"
#include "zero/train/metrics.h"

namespace zero {
namespace {

constexpr std::int64_t part_bytes = 4 << 20;  // read at the beginning and at the end of a large file
constexpr std::size_t most_averaged = 10, least_to_rise = 16, least_to_guess = 4, least_to_learn = 50;
constexpr double rise = 0.05, standard_errors = 6, jump = 3, deviations = 4, guess = 0.98, knowledge = 0.9,
                 nonsense = 1.2;
constexpr double least_loss = 1e-6;  // smaller losses count as this one in logarithms

void add_steps(std::istream& lines, LoggedCurve& curve) {
  for (std::string line; std::getline(lines, line);) {
    try {
      const StepMetrics metrics = parse_metrics(line);
      if (metrics.step <= 0 || !std::isfinite(metrics.loss)) continue;
      curve.losses.push_back(metrics.loss);
      curve.norms.push_back(metrics.grad_norm);
    } catch (const Error&) {  // an incomplete or foreign line
    }
  }
}

/// Returns the beginning and the end of a file, or all of a small file.
std::string ends_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string begin(std::size_t(2 * part_bytes), '\0');
  file.read(begin.data(), std::int64_t(begin.size()));
  begin.resize(std::size_t(file.gcount()));
  if (!file) return begin;
  file.seekg(0, std::ios::end);
  const std::int64_t from = std::max(std::int64_t(begin.size()), std::int64_t(file.tellg()) - part_bytes);
  file.seekg(from);
  std::ostringstream end;
  end << file.rdbuf();
  begin.resize(std::size_t(part_bytes));
  return begin + "\n" + end.str();
}

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
}

/// The sample variance.
double variance(std::span<const double> values) {
  const double middle = mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - middle) * (value - middle);
  return sum / double(values.size() - 1);
}

/// Returns the standard deviation of values around a smooth curve, assuming normal noise. The median of |x - y| of two
/// such values is 0.6745 sqrt(2) of it.
double noise_of(std::span<const double> values) {
  std::vector<double> changes;
  for (std::size_t i = 1; i < values.size(); ++i) changes.push_back(std::abs(values[i] - values[i - 1]));
  const auto middle = changes.begin() + std::ptrdiff_t(changes.size() / 2);
  std::nth_element(changes.begin(), middle, changes.end());
  return *middle / 0.954;
}

/// Returns the loss with which a run began, if the run ends above it.
std::optional<double> risen_above(const std::vector<double>& losses, std::size_t k) {
  std::vector<double> logs;
  for (const double loss : losses) logs.push_back(std::log(std::max(loss, least_loss)));
  const std::span<const double> all(logs), begin = all.first(k);
  const double last = mean(all.last(k)), least_rise = std::log(1 + rise);
  const double error = std::max(std::sqrt((variance(begin) + variance(all.last(k))) / double(k)),
                                noise_of(all) * std::sqrt(2.0 / double(k)));
  if (last - mean(begin) > std::max(least_rise, standard_errors * error)) return std::exp(mean(begin));
  const auto lowest = std::min_element(begin.begin(), begin.end());
  const std::span<const double> after = all.subspan(std::size_t(lowest - begin.begin()) + 1);
  const bool never_again = *std::min_element(after.begin(), after.end()) > *lowest + least_rise;
  if (never_again && last - *lowest > std::max(std::log(jump), deviations * std::sqrt(variance(after))))
    return std::exp(*lowest);
  return std::nullopt;
}

std::string number(double loss) { return text(std::fixed, std::setprecision(4), loss); }

}  // namespace

LoggedCurve logged_curve(const std::string& path, const std::string& unwritten) {
  LoggedCurve curve;
  for (const std::string& part : {ends_of(path), unwritten}) {
    std::istringstream lines(part);
    add_steps(lines, curve);
  }
  return curve;
}

std::string doubt_about_losses(const std::vector<double>& losses, std::int64_t vocabulary, const std::string& rates) {
  const std::size_t n = losses.size(), k = std::min(most_averaged, n / 4);
  if (n < least_to_guess) return "";
  const double last = mean(std::span(losses).last(k)), lowest = *std::min_element(losses.begin(), losses.end()),
               uniform = std::log(double(vocabulary));
  const bool guesses = last >= guess * uniform;
  const std::string ends = text("the loss ends at ", number(last)),
                    uniform_words = text(last > uniform / guess ? ", above" : ",", " what guessing among ", vocabulary,
                                         " tokens gives (ln ", vocabulary, " = ", number(uniform), ")"),
                    remedy = text(": lower ", rates, ", warm up longer, or start again from an earlier model");
  const std::optional<double> begun = n >= least_to_rise ? risen_above(losses, k) : std::nullopt;
  if (guesses && lowest < knowledge * uniform)
    return text(ends, last > uniform / guess ? "" : uniform_words, ", and was ", number(lowest),
                " before; the run has lost what the model knew", remedy);
  if (last > nonsense * uniform && last > (1 + rise) * losses.front())
    return text(ends, ", above the ", number(losses.front()), " that it began with and above guessing (ln ", vocabulary,
                " = ", number(uniform), "); the run has diverged", remedy);
  if (begun) return text(ends, ", above the ", number(*begun), " that it began with; the run has diverged", remedy);
  if (n >= least_to_learn && guesses)
    return text(ends, uniform_words, "; the run has learned nothing: look at ", rates,
                ", and at the data by --preview");
  return "";
}

std::string doubt_about_norms(const std::vector<double>& norms, const std::string& rates) {
  std::size_t still = 0;
  while (still < norms.size() && norms[norms.size() - 1 - still] == 0) ++still;
  if (still < 2) return "";
  return text("the gradients' norm was 0 in the last ", still, " logged steps; nothing was learned in them: lower ",
              rates, ", or look at the data by --preview");
}

}  // namespace zero
