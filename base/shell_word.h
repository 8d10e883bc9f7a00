#pragma once
// Quotes a word for a shell, in commands that messages suggest.
#include <string>

namespace zero {

/// Returns `word` as one word of a POSIX shell: unchanged if no shell would read it otherwise. A word that begins with
/// a dash is quoted, too, so that it stands out.
std::string shell_word(const std::string& word);

}  // namespace zero
