#include "zero/doctor/finding.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace zero {
namespace {

constexpr std::size_t verdict_columns = 9, subject_columns = 15;

std::string padded(std::string word, std::size_t columns) {
  word.resize(std::max(word.size() + 1, columns), ' ');
  return word;
}

Verdict worst_of(const std::vector<Finding>& findings) {
  for (const Verdict verdict : {Verdict::fault, Verdict::unknown, Verdict::warning})
    for (const Finding& finding : findings)
      if (finding.verdict == verdict) return verdict;
  return Verdict::ok;
}

}  // namespace

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok:
      return "ok";
    case Verdict::warning:
      return "warning";
    case Verdict::fault:
      return "fault";
    case Verdict::unknown:
      break;
  }
  return "unknown";
}

std::string text_of(const Finding& finding) {
  std::string text = padded(name_of(finding.verdict), verdict_columns) + padded(finding.subject, subject_columns);
  text += finding.words + "\n";
  if (!finding.remedy.empty()) text += std::string(verdict_columns + subject_columns, ' ') + finding.remedy + "\n";
  return text;
}

std::string json_of(const std::vector<Finding>& findings, const std::string& program) {
  nlohmann::ordered_json json{{"program", program}, {"verdict", name_of(worst_of(findings))}};
  json["findings"] = nlohmann::ordered_json::array();
  for (const Finding& one : findings)
    json["findings"].push_back(
        {{"subject", one.subject}, {"verdict", name_of(one.verdict)}, {"words", one.words}, {"remedy", one.remedy}});
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool any_fault(const std::vector<Finding>& findings) { return worst_of(findings) == Verdict::fault; }

}  // namespace zero
