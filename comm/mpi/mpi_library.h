#pragma once
#include <string>

namespace zero {

/// The loaded MPI library and its version, such as "Open MPI v4.1.4". Works before MPI is started.
std::string mpi_library();

}  // namespace zero
