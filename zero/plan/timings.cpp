#include "zero/plan/timings.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/files/make_folder.h"
#include "base/files/new_file.h"
#include "base/hash.h"
#include "base/json_text.h"

namespace zero {
namespace {

constexpr int version = 1;

std::map<std::string, double> read(const std::string& path) {
  std::map<std::string, double> known;
  try {
    const nlohmann::json file = read_json_object(path);
    if (file.value("version", 0) != version) return known;
    for (const auto& [name, seconds] : file.at("seconds").items())
      if (seconds.is_number() && seconds.get<double>() > 0) known[name] = seconds.get<double>();
  } catch (const std::exception&) {
    known.clear();  // a cache: everything in it can be measured again
  }
  return known;
}

}  // namespace

Timings::Timings(std::string path) : path_(std::move(path)) {
  if (!path_.empty()) known_ = read(path_);
}

double Timings::get(const std::string& name, const std::function<double()>& measure,
                    const std::function<double()>& guess) {
  if (const auto known = known_.find(name); known != known_.end()) return known->second;
  if (spent_ > budget_) {
    guesses_.insert(name);
    return guess();
  }
  const double seconds = timed(measure);
  put(name, seconds);
  unconfirmed_.emplace_back(name, measure);
  return seconds;
}

bool Timings::confirm() {
  bool changed = false;
  for (const auto& [name, measure] : std::exchange(unconfirmed_, {})) {
    if (spent_ > budget_) break;
    const double again = timed(measure);
    changed |= again < known_[name];
    known_[name] = std::min(known_[name], again);
  }
  return changed;
}

double Timings::timed(const std::function<double()>& measure) {
  const auto begin = std::chrono::steady_clock::now();
  const double seconds = measure();
  spent_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return seconds;
}

double Timings::find(const std::string& name) const {
  const auto known = known_.find(name);
  return known == known_.end() ? 0 : known->second;
}

void Timings::put(const std::string& name, double seconds) {
  known_[name] = seconds;
  ++measured_;
}

std::string Timings::save() {
  if (path_.empty()) return "neither XDG_CACHE_HOME nor HOME is set";
  if (measured_ == 0) return "";
  const std::string file = nlohmann::json{{"version", version}, {"seconds", known_}}.dump(1) + "\n";
  try {
    FileCalls calls;
    make_folder(calls, std::filesystem::path(path_).parent_path().string());
    NewFile out(path_);
    out.append(file.data(), std::int64_t(file.size()));
    out.publish();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string timings_path(const std::string& identity) {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::string folder;
  if (cache && *cache)
    folder = cache;
  else if (home && *home)
    folder = std::string(home) + "/.cache";
  else
    return "";
  std::ostringstream name;
  name << folder << "/zero/plan-" << std::hex << std::setw(16) << std::setfill('0') << fnv1a(identity) << ".json";
  return name.str();
}

}  // namespace zero
