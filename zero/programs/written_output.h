#pragma once
// Checks that a program's results can be written, and have reached standard output.
#include <string>

namespace zero {

/// Flushes standard output. Throws Error if any output was lost.
void require_written_output();

/// Throws InputError "--out PATH: ..." if the folder of a file that a program is to write is not there, or
/// takes no files of this user.
void require_folder_for(const std::string& option, const std::string& file);

}  // namespace zero
