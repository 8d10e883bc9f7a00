#pragma once
// Timings: seconds of measured operations by name, kept in a file of the user's cache between calls.
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace zero {

/// A name may be any text, such as "product bf16 512x768x2304 forward". The file belongs to one machine, one number of
/// ranks and one build. Its name encodes them.
class Timings {
 public:
  /// `path`: empty for none. A file that cannot be read or parsed counts as empty, and is replaced by save().
  explicit Timings(std::string path);

  /// Returns the known seconds, or measures them. After `budget` seconds of measuring, calls `guess` instead, and does
  /// not keep its results. confirm() calls `measure` again, so what it refers to must live until then.
  double get(const std::string& name, const std::function<double()>& measure, const std::function<double()>& guess);
  /// Measures all that get() has measured a second time, within the budget, and keeps the smaller seconds. Seconds may
  /// pass between the two, so a disturbance of one does not count. Returns true if a number changed.
  bool confirm();
  /// Returns the known seconds; 0 for an unknown name.
  double find(const std::string& name) const;
  void put(const std::string& name, double seconds);
  /// Writes the file if something was measured. Returns an empty string, or why the file was not written.
  std::string save();

  const std::string& path() const { return path_; }
  /// The number of names whose seconds were guessed.
  int guesses() const { return int(guesses_.size()); }
  int measured() const { return measured_; }
  /// True if a number of this or an earlier call is known.
  bool knows_any() const { return !known_.empty(); }
  double spent() const { return spent_; }
  void set_budget(double seconds) { budget_ = seconds; }
  /// False if the budget allows no measurement at all.
  bool measures() const { return budget_ > 0; }

 private:
  /// Calls `measure`, and counts its time.
  double timed(const std::function<double()>& measure);

  std::string path_;
  std::map<std::string, double> known_;
  double spent_ = 0, budget_ = 45;
  std::set<std::string> guesses_;
  std::vector<std::pair<std::string, std::function<double()>>> unconfirmed_;
  int measured_ = 0;
};

/// Returns the file for a machine that `identity` describes: XDG_CACHE_HOME/zero/plan-HASH.json, or below HOME/.cache;
/// empty if neither variable is set.
std::string timings_path(const std::string& identity);

}  // namespace zero
