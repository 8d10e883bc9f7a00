#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/cuda/emulated/device.h"

namespace zero::emulated {
namespace {

/// Under the address sanitizer, which watches the ends of blocks of the heap, the device's memory lies there and is
/// always open.
#ifdef __SANITIZE_ADDRESS__
constexpr bool closes = false;
#else
constexpr bool closes = true;
#endif

/// Large blocks are whole huge pages: access to a few of them is changed quickly.
constexpr std::size_t page = 4096, huge_page = std::size_t{2} << 20;

std::size_t whole_pages(std::size_t bytes) {
  const std::size_t unit = bytes >= huge_page / 2 ? huge_page : page;
  return (std::max<std::size_t>(bytes, 1) + unit - 1) / unit * unit;
}

void* pages(std::size_t bytes) {
  const std::size_t size = whole_pages(bytes), unit = size % huge_page == 0 ? huge_page : page, spare = unit - page;
  void* map = ::mmap(nullptr, size + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(map) + (unit - reinterpret_cast<std::uintptr_t>(map) % unit) % unit;
  if (const std::size_t before = static_cast<std::size_t>(begin - static_cast<char*>(map))) ::munmap(map, before);
  if (const std::size_t after = spare - static_cast<std::size_t>(begin - static_cast<char*>(map)))
    ::munmap(begin + size, after);
  if (unit == huge_page) ::madvise(begin, size, MADV_HUGEPAGE);
  return begin;
}

struct sigaction previous_handler;

void say(const char* words) { [[maybe_unused]] const auto written = ::write(STDERR_FILENO, words, std::strlen(words)); }

/// Only calls that a handler may make, and a description on the stack.
void on_fault(int signal, siginfo_t* info, void*) {
  const std::size_t bytes = MemoryMap::get().device_range_around(info->si_addr);
  if (bytes == 0) {
    ::sigaction(signal, &previous_handler, nullptr);  // another fault: it comes again, to whoever was there before
    return;
  }
  char words[160];
  std::snprintf(
      words, sizeof words,
      "emulated GPU: the host touched device memory at %p, in a block of %zu bytes, while no work of the device ran\n",
      info->si_addr, bytes);
  say(words);
  void* frames[48];
  ::backtrace_symbols_fd(frames, ::backtrace(frames, 48), STDERR_FILENO);
  ::_exit(70);
}

/// When the library is loaded: before MPI, which leaves a handler that is there alone.
struct FaultHandler {
  FaultHandler() {
    if (!closes) return;
    void* frames[1];
    ::backtrace(frames, 1);  // loads what it needs now and not inside the handler
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGSEGV, &action, &previous_handler);
  }
} fault_handler;

}  // namespace

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
  const bool own_pages = closes && place == Place::device;
  void* begin = own_pages ? pages(bytes) : nullptr;
  if (own_pages ? !begin : posix_memalign(&begin, 512, std::max<std::size_t>(bytes, 1)) != 0) return nullptr;
  std::memset(begin, 0xff, bytes);
  if (own_pages && !open_) ::mprotect(begin, whole_pages(bytes), PROT_NONE);
  ranges_[static_cast<const char*>(begin)] = {bytes, place, true};
  if (place == Place::device) used_ += bytes;
  return begin;
}

void MemoryMap::release(void* begin) {
  std::lock_guard guard(lock_);
  const auto at = ranges_.find(static_cast<const char*>(begin));
  if (at == ranges_.end() || !at->second.own) not_emulated("memory is freed that was not allocated");
  const Range range = at->second;
  if (range.place == Place::device) used_ -= range.bytes;
  ranges_.erase(at);
  if (closes && range.place == Place::device)
    ::munmap(begin, whole_pages(range.bytes));
  else
    std::free(begin);
}

void MemoryMap::enrol(void* begin, std::size_t bytes) {
  std::lock_guard guard(lock_);
  ranges_[static_cast<const char*>(begin)] = {bytes, Place::pinned, false};
}

void MemoryMap::forget(void* begin) {
  std::lock_guard guard(lock_);
  if (ranges_.erase(static_cast<const char*>(begin)) == 0)
    not_emulated("memory is unregistered that was not registered");
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
  if (at == ranges_.end() || at->second.place == Place::pageable ||
      static_cast<const char*>(begin) + bytes > at->first + at->second.bytes)
    not_emulated((std::string(what) + " reaches beyond the device's memory").c_str());
}

void MemoryMap::set_access(bool open) {
  if (!closes) return;
  std::lock_guard guard(lock_);
  open_ = open;
  for (const auto& [begin, range] : ranges_)
    if (range.place == Place::device)
      ::mprotect(const_cast<char*>(begin), whole_pages(range.bytes), open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

std::size_t MemoryMap::device_range_around(const void* address) {
  const auto at = find(address);
  return at != ranges_.end() && at->second.place == Place::device ? at->second.bytes : 0;
}

namespace {
int accesses = 0;  // under the scheduler's lock
}

DeviceAccess::DeviceAccess() {
  if (accesses++ == 0) MemoryMap::get().set_access(true);
}

DeviceAccess::~DeviceAccess() {
  if (--accesses == 0) MemoryMap::get().set_access(false);
}

}  // namespace zero::emulated
