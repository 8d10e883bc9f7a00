#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/cuda/emulated/device.h"

namespace zero::emulated {

MemoryMap& MemoryMap::get() {
  static auto* map = new MemoryMap;
  return *map;
}

std::size_t MemoryMap::total_bytes() { return std::size_t(16) << 30; }

std::size_t MemoryMap::free_bytes() {
  std::lock_guard guard(lock_);
  return total_bytes() - used_;
}

void* MemoryMap::allocate(std::size_t bytes, Place place) {
  std::lock_guard guard(lock_);
  if (place == Place::device && used_ + bytes > total_bytes()) return nullptr;
  void* begin = nullptr;
  if (posix_memalign(&begin, 512, std::max<std::size_t>(bytes, 1)) != 0) return nullptr;
  std::memset(begin, 0xff, bytes);
  ranges_[static_cast<const char*>(begin)] = {bytes, place, true};
  if (place == Place::device) used_ += bytes;
  return begin;
}

void MemoryMap::release(void* begin) {
  std::lock_guard guard(lock_);
  const auto at = ranges_.find(static_cast<const char*>(begin));
  if (at == ranges_.end() || !at->second.own) not_emulated("memory is freed that was not allocated");
  if (at->second.place == Place::device) used_ -= at->second.bytes;
  ranges_.erase(at);
  std::free(begin);
}

void MemoryMap::enrol(void* begin, std::size_t bytes) {
  std::lock_guard guard(lock_);
  ranges_[static_cast<const char*>(begin)] = {bytes, Place::pinned, false};
}

void MemoryMap::forget(void* begin) {
  std::lock_guard guard(lock_);
  if (ranges_.erase(static_cast<const char*>(begin)) == 0) not_emulated("memory is unregistered that was not registered");
}

std::map<const char*, MemoryMap::Range>::iterator MemoryMap::find(const void* address) {
  auto at = ranges_.upper_bound(static_cast<const char*>(address));
  if (at == ranges_.begin()) return ranges_.end();
  --at;
  return static_cast<const char*>(address) < at->first + at->second.bytes ? at : ranges_.end();
}

Place MemoryMap::place_of(const void* address) {
  std::lock_guard guard(lock_);
  const auto at = find(address);
  return at == ranges_.end() ? Place::pageable : at->second.place;
}

void MemoryMap::check_device(const void* begin, std::size_t bytes, const char* what) {
  if (bytes == 0) return;
  std::lock_guard guard(lock_);
  const auto at = find(begin);
  if (at == ranges_.end() || at->second.place == Place::pageable || static_cast<const char*>(begin) + bytes > at->first + at->second.bytes)
    not_emulated((std::string(what) + " reaches beyond the device's memory").c_str());
}

}  // namespace zero::emulated
