// A job that trains nothing: ranks meet until one of them fails as told. usage: failing_rank KIND RANK SHARED_MEMORY(on|off)
#include <ATen/Functions.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <thread>

#include "comm/error.h"
#include "comm/log.h"
#include "comm/world.h"

namespace zero {
namespace {

void fail(const std::string& kind, World& world) {
  if (kind == "kill") raise(SIGKILL);
  if (kind == "stop") raise(SIGSTOP);
  if (kind == "exit") _exit(0);
  if (kind == "leave") std::exit(0);
  if (kind == "throw") throw InputError("the file vanished");
  if (kind == "check") ZERO_CHECK(false, "an invariant is broken");
}

int meet(World& world, const std::string& kind, int failing, bool shared_memory) {
  world.configure({.deadline = std::chrono::seconds(2), .shared_memory = shared_memory ? SharedMemory::on : SharedMemory::off});
  Communicator& c = world.communicator();
  if (kind == "agree") world.agree([&] { if (world.rank() == failing) throw InputError("the file vanished"); });
  if (kind == "alike") throw InputError("no such key");
  const at::Tensor x = at::ones({100000});
  for (int step = 0; step < 50; ++step) {
    if (step == 20 && world.rank() == failing) fail(kind, world);
    c.all_reduce(x, {}, {Phase::backward, step, 0});
  }
  return kind == "code" && world.rank() == failing ? 75 : 0;
}

}  // namespace
}  // namespace zero

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  return zero::World::run([&](zero::World& world) { return zero::meet(world, argv[1], std::stoi(argv[2]), std::string(argv[3]) == "on"); });
}
