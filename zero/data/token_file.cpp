#include "zero/data/token_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "comm/error.h"
#include "comm/log.h"

namespace zero {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

struct Descriptor {
  int fd;
  ~Descriptor() { if (fd >= 0) ::close(fd); }
};

template <class Id>
void widen(const unsigned char* from, std::int64_t count, std::int64_t* out) {
  for (std::int64_t i = 0; i < count; ++i) {
    Id id;
    std::memcpy(&id, from + i * static_cast<std::int64_t>(sizeof(Id)), sizeof(Id));
    out[i] = id;
  }
}

// Looks at blocks first, so that the common case (nothing found) is one maximum that vectorises.
template <class Id>
std::int64_t find(const unsigned char* tokens, std::int64_t limit, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t block = 4096;
  Id ids[block];
  for (std::int64_t start = begin; start < end; start += block) {
    const std::int64_t count = std::min(block, end - start);
    std::memcpy(ids, tokens + start * static_cast<std::int64_t>(sizeof(Id)), static_cast<std::size_t>(count) * sizeof(Id));
    Id largest = 0;
    for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, ids[i]);
    if (static_cast<std::int64_t>(largest) < limit) continue;
    for (std::int64_t i = 0; i < count; ++i)
      if (static_cast<std::int64_t>(ids[i]) >= limit) return start + i;
  }
  return -1;
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

TokenFile::TokenFile(const std::string& path, TokenWidth type, std::int64_t header_bytes, std::string name)
    : name_(name.empty() ? path : std::move(name)), type_(type), header_bytes_(header_bytes) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) throw InputError(text("cannot open ", path, ": ", std::strerror(errno)));
  struct stat info {};
  if (::fstat(file.fd, &info) != 0) throw InputError(text("cannot read ", path, ": ", std::strerror(errno)));
  if (!S_ISREG(info.st_mode)) throw InputError(text(path, " is not a file of tokens"));
  const std::int64_t bytes = info.st_size - header_bytes, width = static_cast<int>(type);
  if (bytes <= 0) throw InputError(text(path, " is empty: it holds no token"));
  if (bytes % width != 0)
    throw InputError(text(path, " has ", bytes, " bytes, which is no multiple of ", width,
                          ": it is cut short, or its ids are of another type (data.token_dtype is uint16 or uint32)"));
  mapped_bytes_ = static_cast<std::size_t>(info.st_size);
  mapping_ = ::mmap(nullptr, mapped_bytes_, PROT_READ, MAP_SHARED, file.fd, 0);
  if (mapping_ == MAP_FAILED) {
    mapping_ = nullptr;
    throw InputError(text("cannot map ", path, " into memory: ", std::strerror(errno)));
  }
  size_ = bytes / width;
}

TokenFile::~TokenFile() {
  if (mapping_) ::munmap(mapping_, mapped_bytes_);
}

TokenFile::TokenFile(TokenFile&& other) noexcept { *this = std::move(other); }

TokenFile& TokenFile::operator=(TokenFile&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(type_, other.type_);
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(header_bytes_, other.header_bytes_);
  std::swap(size_, other.size_);
  return *this;
}

void TokenFile::read(std::int64_t first, std::int64_t count, std::int64_t* out) const {
  ZERO_CHECK(first >= 0 && count >= 0 && first + count <= size_, text(name_, ": tokens ", first, " + ", count, " of ", size_));
  const unsigned char* from = tokens() + first * static_cast<int>(type_);
  type_ == TokenWidth::uint16 ? widen<std::uint16_t>(from, count, out) : widen<std::uint32_t>(from, count, out);
}

std::int64_t TokenFile::find_beyond(std::int64_t limit, std::int64_t begin, std::int64_t end) const {
  ZERO_CHECK(0 <= begin && end <= size_, text(name_, ": tokens ", begin, " to ", end, " of ", size_));
  return type_ == TokenWidth::uint16 ? find<std::uint16_t>(tokens(), limit, begin, end)
                                    : find<std::uint32_t>(tokens(), limit, begin, end);
}

std::string TokenFile::place_of(std::int64_t position) const {
  const std::string token = text(name_, ", token ", position);
  return header_bytes_ > 0 ? token : text(token, " (byte ", position * static_cast<int>(type_), ")");
}

}  // namespace zero
