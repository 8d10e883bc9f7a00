#include "zero/programs/program.h"

#include "base/error.h"
#include "base/log.h"
#include "comm/outcome.h"

namespace zero {

int run_program(const std::function<int()>& body) {
  start_log(0, 1);
  int code = 0;
  const Outcome outcome = outcome_of([&] { code = body(); });
  if (!outcome.failed) return code;
  log_error(outcome.message);
  return static_cast<int>(outcome.code);
}

}  // namespace zero
