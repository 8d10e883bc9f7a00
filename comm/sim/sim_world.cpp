#include "comm/sim/sim_world.h"

#include <ATen/Parallel.h>
#include <c10/core/AutogradState.h>

#include <numeric>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "comm/sim/sim_state.h"

namespace zero {
namespace {

/// Throws an exception of the same class with another message.
[[noreturn]] void rethrow_as(const std::exception_ptr& error, const std::string& message) {
  try {
    std::rethrow_exception(error);
  } catch (const InputError&) {
    throw InputError(message);
  } catch (const Error& e) {
    throw Error(message, e.code());
  } catch (const InternalError&) {
    throw InternalError(message);
  } catch (...) {
    throw Error(message);
  }
}

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

void run_rank(const std::shared_ptr<SimWorld::State>& world, const std::shared_ptr<SimGroup>& group, int rank,
              const std::function<void(Communicator&, int)>& body) {
  // Autograd then runs hooks in this thread, as in a process of its own.
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
  at::set_num_threads(world->options.threads_per_rank);
  const char* end = "has returned";
  std::exception_ptr error;
  try {
    auto communicator = make_sim_communicator(world, group, rank);
    body(*communicator, rank);
  } catch (const SimLeft&) {
    end = "has left";
  } catch (...) {
    end = "has failed";
    error = std::current_exception();
  }
  const std::string message = error ? message_of(error) : "";
  std::lock_guard lock(world->mutex);
  world->ranks[rank].gone = true;
  world->ranks[rank].end = end;
  if (error) world->fail(rank, error, message);
  world->changed.notify_all();
}

}  // namespace

void SimWorld::State::fail(int rank, std::exception_ptr error, const std::string& message) {
  if (failed) return;
  failed = true;
  first_rank = rank;
  first_error = std::move(error);
  first_message = message;
  changed.notify_all();
}

std::string SimWorld::State::positions() const {
  std::string all;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const SimRank& rank = ranks[r];
    const std::string last = rank.log.empty() ? "before its first call" : rank.log.back().call.describe();
    const char* where = rank.gone ? rank.end : rank.waiting ? "waits in" : "runs after";
    all += text("\n  rank ", r, " ", where, rank.gone && !rank.log.empty() ? " after " : " ", last);
  }
  return all;
}

SimWorld::SimWorld(SimOptions options) : state_(std::make_shared<State>()) {
  ZERO_CHECK(options.ranks > 0, "a world needs a rank");
  state_->options = std::move(options);
}

SimWorld::~SimWorld() = default;

void SimWorld::run(const std::function<void(Communicator&, int)>& body) {
  auto fresh = std::make_shared<State>();  // communicators of earlier runs keep the old one
  fresh->options = state_->options;
  state_ = fresh;
  const int n = state_->options.ranks;
  state_->ranks.resize(n);
  for (int r = 0; r < n; ++r) state_->ranks[r].random.seed(state_->options.seed * 1000003 + r);
  auto group = std::make_shared<SimGroup>();
  group->ranks.resize(n);
  std::iota(group->ranks.begin(), group->ranks.end(), 0);
  group->offers.resize(n);
  group->here.resize(n);
  std::vector<std::thread> threads;
  for (int r = 0; r < n; ++r) threads.emplace_back([&, r] { run_rank(state_, group, r, body); });
  for (std::thread& thread : threads) thread.join();
  if (state_->failed)
    rethrow_as(state_->first_error,
               text("rank ", state_->first_rank, ": ", state_->first_message, state_->positions()));
}

const std::vector<SimCall>& SimWorld::calls(int rank) const { return state_->ranks.at(rank).log; }

}  // namespace zero
