// A job that trains nothing. Ranks meet until one of them fails as KIND says. With KIND "where" they print
// their places.
// usage: failing_rank KIND RANK SHARED_MEMORY(on|off|auto)     uncaught-KIND: in a program without Job::run(),
// static-KIND: which holds the job in static storage, leaked-KIND: or never lets go of it
#include <ATen/Functions.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "comm/world/job.h"

namespace zero {
namespace {

void fail(const std::string& kind, Job& job) {
  if (kind == "kill") raise(SIGKILL);
  if (kind == "stop") raise(SIGSTOP);
  if (kind == "exit") _exit(0);
  if (kind == "leave") std::exit(0);
  if (kind.starts_with("throw")) throw InputError("the file vanished");
  if (kind == "check") ZERO_CHECK(false, "an invariant is broken");
}

/// Takes its time to go, after the communicators of the scope around.
struct Slow {
  bool is = false;
  ~Slow() {
    if (is) std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
};

int meet(Job& job, const std::string& kind, int failing, SharedMemory shared_memory) {
  if (kind == "where") {
    // One write: lines of several ranks must not mix.
    const std::string line =
        text("rank ", job.rank(), " is ", job.local_rank(), " of ", job.local_size(), " on node ", job.node(), " of ",
             job.nodes(), ", ", job.node_name(), ", with ", job.cores(), " cores\n");
    return ::write(1, line.data(), line.size()) == ssize_t(line.size()) ? 0 : 1;
  }
  job.configure({.deadline = std::chrono::seconds(2), .shared_memory = shared_memory});
  const Slow goes_last{kind == "throw-late" && job.rank() == failing};
  const std::unique_ptr<Communicator> group = kind == "throw-late" ? job.communicator().duplicate() : nullptr;
  Communicator& c = group ? *group : job.communicator();
  if (kind == "agree")
    all_or_none(job.control(), [&] {
      if (job.rank() == failing) throw InputError("the file vanished");
    });
  if (kind == "alike") throw InputError("no such key");
  const at::Tensor x = at::ones({100000});
  for (int step = 0; step < 50; ++step) {
    if (step == 20 && job.rank() == failing) {
      if (kind == "return") return 0;
      fail(kind, job);
    }
    c.all_reduce(x, {}, {Phase::backward, step, 0});
  }
  return kind == "code" && job.rank() == failing ? 75 : 0;
}

}  // namespace
}  // namespace zero

std::optional<zero::Job> in_static_storage;

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string shared(argv[3]);
  const zero::SharedMemory memory = shared == "on"    ? zero::SharedMemory::on
                                    : shared == "off" ? zero::SharedMemory::off
                                                      : zero::SharedMemory::automatic;
  std::string kind(argv[1]), holder;
  for (const char* known : {"uncaught-", "static-", "leaked-"})
    if (kind.starts_with(known)) kind = kind.substr((holder = known).size());
  const int failing = std::stoi(argv[2]);
  const auto meet = [&](zero::Job& job) {
    job.end_with_uncaught();
    return zero::meet(job, kind, failing, memory);
  };
  if (holder == "uncaught-") {
    zero::Job job = zero::Job::start();
    return meet(job);
  }
  if (holder == "static-") return meet(in_static_storage.emplace(zero::Job::start()));
  if (holder == "leaked-") return meet(*new zero::Job(zero::Job::start()));
  return zero::Job::run([&](zero::Job& job) { return zero::meet(job, kind, failing, memory); });
}
