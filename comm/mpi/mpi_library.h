#pragma once
#include <string>

namespace zero {

/// The loaded MPI library and its version, such as "Open MPI v4.1.4". MPI need not be started.
std::string mpi_library();

}  // namespace zero
