#include "zero/data/text/token_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

// Widens ids in place: the stored ids are the last bytes of `out`, and each is read before it is overwritten.
template <class Id>
void widen(std::int64_t* out, std::int64_t count) {
  const unsigned char* from =
      reinterpret_cast<unsigned char*>(out + count) - count * static_cast<std::int64_t>(sizeof(Id));
  for (std::int64_t i = 0; i < count; ++i) {
    Id id;
    std::memcpy(&id, from + i * static_cast<std::int64_t>(sizeof(Id)), sizeof(Id));
    out[i] = id;
  }
}

// The first id that is not below `limit`, or -1. The common case, none, is one vectorised maximum.
template <class Id>
std::int64_t find(const std::vector<unsigned char>& bytes, std::int64_t count, std::int64_t limit) {
  const auto* ids = reinterpret_cast<const Id*>(bytes.data());
  if (static_cast<std::int64_t>(*std::max_element(ids, ids + count)) < limit) return -1;
  return std::find_if(ids, ids + count, [&](Id id) { return static_cast<std::int64_t>(id) >= limit; }) - ids;
}

}  // namespace

TokenWidth token_width_of(const std::string& name) {
  if (name == "uint16") return TokenWidth::uint16;
  if (name == "uint32") return TokenWidth::uint32;
  throw InputError(text("token type '", name, "' is not known: it is uint16 or uint32"));
}

TokenWidth narrowest_token_width(std::int64_t vocab_size) {
  return vocab_size <= 65536 ? TokenWidth::uint16 : TokenWidth::uint32;
}

TokenFile::TokenFile(const std::string& path, TokenWidth type, TokenSection section, std::string name)
    : file_(File::open(path)), name_(name.empty() ? path : std::move(name)), type_(type), begin_(section.begin) {
  const std::int64_t width = static_cast<int>(type);
  const std::int64_t bytes = section.tokens < 0 ? file_.size() - begin_ : section.tokens * width;
  if (bytes <= 0 && section.tokens < 0) throw InputError(text(name_, " is empty: it holds no token"));
  if (bytes % width != 0)
    throw InputError(text(path, " has ", bytes, " bytes, which is no multiple of ", width,
                          ": it is cut short, or its ids are of another type (data.token_dtype is uint16 or uint32)"));
  size_ = bytes / width;
}

void TokenFile::read_stored(std::int64_t first, std::int64_t count, void* bytes) const {
  const std::int64_t width = static_cast<int>(type_);
  file_.read_at(bytes, count * width, begin_ + first * width);
  if (!*told_ && file_.changed() && !told_->exchange(true))
    log_warning(file_.path(), ": was written to while the run reads it: changed ids are trained unchecked");
}

void TokenFile::read(std::int64_t first, std::int64_t count, std::int64_t* out) const {
  ZERO_CHECK(first >= 0 && count >= 0 && first + count <= size_,
             text(name_, ": tokens ", first, " + ", count, " of ", size_));
  read_stored(first, count, reinterpret_cast<unsigned char*>(out + count) - count * static_cast<int>(type_));
  type_ == TokenWidth::uint16 ? widen<std::uint16_t>(out, count) : widen<std::uint32_t>(out, count);
}

std::int64_t TokenFile::find_beyond(std::int64_t limit, std::int64_t begin, std::int64_t end) const {
  ZERO_CHECK(0 <= begin && end <= size_, text(name_, ": tokens ", begin, " to ", end, " of ", size_));
  constexpr std::int64_t block = 1 << 18;
  std::vector<unsigned char> bytes(
      static_cast<std::size_t>(std::min(block, std::max<std::int64_t>(0, end - begin)) * static_cast<int>(type_)));
  for (std::int64_t start = begin; start < end; start += block) {
    const std::int64_t count = std::min(block, end - start);
    read_stored(start, count, bytes.data());
    const std::int64_t found = type_ == TokenWidth::uint16 ? find<std::uint16_t>(bytes, count, limit)
                                                           : find<std::uint32_t>(bytes, count, limit);
    if (found >= 0) return start + found;
  }
  return -1;
}

std::string TokenFile::place_of(std::int64_t position) const {
  const std::string token = text(name_, ", token ", position);
  return begin_ > 0 ? token : text(token, " (byte ", position * static_cast<int>(type_), ")");
}

}  // namespace zero
