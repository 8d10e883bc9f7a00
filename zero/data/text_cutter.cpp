#include "zero/data/text_cutter.h"

#include <algorithm>
#include <string_view>

#include "comm/error.h"
#include "comm/log.h"
#include "models/file.h"

namespace zero {
namespace {

// The ids of a text that goes on before a newline. A tokenizer may start each text with a mark of its own (SentencePiece's
// dummy space); it and the newline's ids are those of "\n" alone, so what "\n" + rest has beyond the mark is what the
// whole text would have had here.
std::vector<int> encode_rest(const TextEncoder& encoder, std::string_view rest) {
  const std::vector<int> newline = encoder.encode("\n"), two = encoder.encode("\n\n");
  std::vector<int> ids = encoder.encode(rest);
  const auto mark = static_cast<std::ptrdiff_t>(2 * newline.size() - two.size());  // |mark + nl| * 2 - |mark + nl + nl|
  ZERO_CHECK(mark >= 0 && mark <= static_cast<std::ptrdiff_t>(ids.size()) && std::equal(newline.begin(), newline.begin() + mark, ids.begin()),
             "the tokenizer's mark of a text's start depends on the text");
  ids.erase(ids.begin(), ids.begin() + mark);
  return ids;
}

}  // namespace

void encode_text_file(const std::string& path, const TextEncoder& encoder,
                      const std::function<void(const std::vector<int>&)>& emit, std::int64_t piece_bytes) {
  const File file = File::open(path);
  if (file.size() == 0) throw InputError(text(path, " is empty: there is no text to train on"));
  if (encoder.bos >= 0) emit({encoder.bos});
  bool first = true;
  const auto encode = [&](std::string_view piece) {
    emit(first ? encoder.encode(piece) : encode_rest(encoder, piece));
    first = false;
  };
  std::string held;  // read, not yet encoded
  for (std::int64_t offset = 0; offset < file.size();) {
    const std::int64_t count = std::min(piece_bytes, file.size() - offset);
    const std::size_t before = held.size();
    held.resize(before + static_cast<std::size_t>(count));
    file.read_at(held.data() + before, count, offset);
    offset += count;
    if (!encoder.newline_stands_alone) continue;
    const std::size_t cut = held.rfind('\n');
    if (cut == std::string::npos || cut == 0) continue;
    encode(std::string_view(held).substr(0, cut));
    held.erase(0, cut);
  }
  encode(held);
  if (encoder.eos >= 0) emit({encoder.eos});
}

}  // namespace zero
