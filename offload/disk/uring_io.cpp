#include <liburing.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "offload/disk/block_io.h"
#include "offload/memory/host_arena.h"

namespace zero {
namespace {

std::string why(int code) {
  if (code == EPERM || code == EACCES)
    return "the system forbids it: sysctl kernel.io_uring_disabled, or a container's seccomp profile";
  if (code == ENOSYS) return "the kernel has none";
  if (code == ENOMEM) return "the limit on locked memory is too low: ulimit -l";
  return std::strerror(code);
}

class UringIo final : public BlockIo {
 public:
  UringIo(const HostArena& arena, int depth) {
    if (const int code = ::io_uring_queue_init(static_cast<unsigned>(depth), &ring_, 0); code < 0)
      throw Error(why(-code));
    std::vector<iovec> blocks;
    for (int i = 0; i < arena.blocks(); ++i) blocks.push_back({arena.block(i), arena.block_bytes()});
    const int code = ::io_uring_register_buffers(&ring_, blocks.data(), static_cast<unsigned>(blocks.size()));
    registered_ = code == 0;
    if (!registered_)
      log_warning("io_uring runs without registered buffers (", why(-code), "), which costs some speed");
  }
  ~UringIo() override { ::io_uring_queue_exit(&ring_); }

  const char* name() const override { return registered_ ? "io_uring with registered buffers" : "io_uring"; }

  void submit(std::uint64_t tag, const Transfer& t) override {
    io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
    ZERO_CHECK(entry, "the submission queue is full");
    const auto bytes = static_cast<unsigned>(t.bytes);
    const auto offset = static_cast<std::uint64_t>(t.offset);
    if (t.write && registered_)
      ::io_uring_prep_write_fixed(entry, t.descriptor, t.data, bytes, offset, t.block);
    else if (t.write)
      ::io_uring_prep_write(entry, t.descriptor, t.data, bytes, offset);
    else if (registered_)
      ::io_uring_prep_read_fixed(entry, t.descriptor, t.data, bytes, offset, t.block);
    else
      ::io_uring_prep_read(entry, t.descriptor, t.data, bytes, offset);
    entry->user_data = tag;
    int code = 0;
    do code = ::io_uring_submit(&ring_);
    while (code == -EINTR || code == -EAGAIN);
    if (code != 1) throw Error(text("io_uring took no request: ", code < 0 ? why(-code) : "queue full"));
  }

  Completion wait_any() override {
    io_uring_cqe* entry = nullptr;
    int code = 0;
    do code = ::io_uring_wait_cqe(&ring_, &entry);
    while (code == -EINTR);
    if (code < 0) throw Error(text("io_uring gave no completion: ", why(-code)));
    const Completion done{entry->user_data, entry->res};
    ::io_uring_cqe_seen(&ring_, entry);
    return done;
  }

 private:
  io_uring ring_{};
  bool registered_ = false;
};

}  // namespace

std::unique_ptr<BlockIo> make_uring_io(const HostArena& arena, int depth, std::string* reason) {
  try {
    return std::make_unique<UringIo>(arena, depth);
  } catch (const Error& error) {
    *reason = error.what();
    return nullptr;
  }
}

}  // namespace zero
