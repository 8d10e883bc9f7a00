#include "zero/programs/printed_output.h"

#include <cstdio>
#include <iostream>

#include "base/error.h"

namespace zero {

void require_written_output() {
  std::cout.flush();
  if (!std::cout || std::fflush(stdout) != 0 || std::ferror(stdout))
    throw Error("standard output cannot be written: is the disk full, or did its reader end?");
}

}  // namespace zero
