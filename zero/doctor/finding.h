#pragma once
// Finding: the result of examining one subject on this machine.
#include <string>
#include <vector>

namespace zero {

enum class Verdict {
  ok,
  warning,  // programs run, but more slowly or with fewer resources
  fault,    // programs do not run
  unknown,  // the system does not say, which does not mean that something is missing
};

struct Finding {
  std::string subject;  // one or two words, such as "shared memory"
  Verdict verdict = Verdict::ok;
  std::string words;   // the facts, in one line
  std::string remedy;  // an instruction to the user; empty if ok
};

/// "ok", "warning", "fault" or "unknown".
const char* name_of(Verdict verdict);

/// "warning  io_uring       the system forbids it" and, below, the remedy.
std::string text_of(const Finding& finding);

/// {"program": ..., "verdict": the worst, "findings": [{"subject", "verdict", "words", "remedy"}]}, indented.
std::string json_of(const std::vector<Finding>& findings, const std::string& program);

bool any_fault(const std::vector<Finding>& findings);

}  // namespace zero
