#include "cmake/version.h"

#include <torch/version.h>

#include "comm/mpi/mpi_library.h"

namespace zero {

std::string version_text(const std::string& program) {
  return program + " " + version() + "\nLibTorch " TORCH_VERSION ", " + mpi_library() +
         (ZERO_HAS_CUDA ? ", with CUDA" : ", without CUDA");
}

}  // namespace zero
