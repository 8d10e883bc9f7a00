#pragma once
// The version that programs print. Only programs link it: the commit changes more often than anything else.
#include <string>

namespace zero {

/// "0.1.0 (commit 44116d0)". Without a git repository the commit is left out. (Needs no LibTorch: zero_version_number.)
std::string version();

/// "PROGRAM 0.1.0 (commit 44116d0)", and a line with the libraries: LibTorch as compiled against, MPI as loaded, CUDA
/// or none.
std::string version_text(const std::string& program);

}  // namespace zero
