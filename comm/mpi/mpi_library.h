#pragma once
#include <string>

namespace zero {

/// The loaded MPI library and its version, such as "Open MPI v4.1.4". Needs no start.
std::string mpi_library();

}  // namespace zero
