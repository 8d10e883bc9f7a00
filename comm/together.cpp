#include "comm/together.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>

#include <chrono>
#include <cstring>
#include <future>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/ledger.h"
#include "base/log.h"
#include "comm/agree.h"
#include "comm/communicator.h"

namespace zero {
namespace {

constexpr CallTag tag{Phase::setup, -1, -1};
constexpr auto beat_interval = std::chrono::milliseconds(500);  // well below every deadline that is worth setting

// Numbers travel in tensors of the backend's own memory, which on a GPU is the GPU's.
at::Tensor tensor_of(Communicator& comm, std::initializer_list<std::int64_t> values) {
  const at::Tensor tensor = comm.memory().allocate(static_cast<std::int64_t>(values.size()), at::kLong);
  tensor.copy_(at::tensor(at::IntArrayRef(values), at::kLong));
  return tensor;
}

std::string broadcast_text(Communicator& comm, const std::string& mine, std::int64_t bytes, int root) {
  if (bytes == 0) return {};
  const at::Tensor letters = at::zeros({bytes}, at::kByte);
  if (comm.rank() == root) std::memcpy(letters.data_ptr(), mine.data(), static_cast<std::size_t>(bytes));
  const at::Tensor sent = comm.memory().allocate(bytes, at::kByte);
  sent.copy_(letters);
  comm.broadcast(sent, root, tag);
  const at::Tensor received = sent.cpu();
  return {static_cast<const char*>(received.data_ptr()), static_cast<std::size_t>(bytes)};
}

/// What work on another thread must find as it is on this one.
class CallingThread {
 public:
  CallingThread() : threads_(at::get_num_threads()), category_(current_category()), ledger_(current_ledger()) {}

  /// Takes it over for the thread that it lives on.
  class Guard {
   public:
    explicit Guard(const CallingThread& caller) : state_(caller.state_), category_(caller.category_) {
      at::set_num_threads(caller.threads_);
      if (caller.ledger_) ledger_.emplace(*caller.ledger_);
    }

   private:
    at::ThreadLocalStateGuard state_;
    MemoryScope category_;
    std::optional<LedgerScope> ledger_;
  };

 private:
  at::ThreadLocalState state_;
  int threads_;
  MemoryCategory category_;
  Ledger* ledger_;
};

void throw_as(ExitCode code, const std::string& message) {
  if (code == ExitCode::bad_input) throw InputError(message);
  throw AgreedError(message, code);
}

}  // namespace

void run_together(Communicator& comm, const std::function<void()>& work) {
  const Outcome mine = outcome_of(work);
  const at::Tensor shard =
      tensor_of(comm, {mine.failed, static_cast<int>(mine.code), static_cast<std::int64_t>(mine.message.size())});
  const at::Tensor all = comm.memory().allocate(3 * comm.size(), at::kLong);
  comm.all_gather_into(all, shard, tag);
  const at::Tensor outcomes = all.cpu();
  const auto* entries = outcomes.const_data_ptr<std::int64_t>();
  for (int rank = 0; rank < comm.size(); ++rank) {
    const std::int64_t* entry = entries + 3 * rank;
    if (entry[0] == 0) continue;
    throw_as(static_cast<ExitCode>(entry[1]), broadcast_text(comm, mine.message, entry[2], rank));
  }
}

void run_on_first(Communicator& comm, const std::function<void()>& work) {
  constexpr std::int64_t working = 0, ended = 1;
  if (comm.rank() != 0) {
    const at::Tensor state = tensor_of(comm, {working});
    do comm.broadcast(state, 0, tag);
    while (state.cpu().item<std::int64_t>() == working);
    return run_together(comm, [] {});
  }
  std::future<Outcome> outcome = std::async(std::launch::async, [&work, here = CallingThread()] {
    const CallingThread::Guard as_caller(here);
    return outcome_of(work);
  });
  while (outcome.wait_for(beat_interval) != std::future_status::ready)
    comm.broadcast(tensor_of(comm, {working}), 0, tag);
  const Outcome found = outcome.get();
  comm.broadcast(tensor_of(comm, {ended}), 0, tag);
  run_together(comm, [&] {
    if (found.failed) throw_as(found.code, found.message);
  });
}

std::string told_by(Communicator& comm, int root, const std::string& mine) {
  return broadcast_text(comm, mine, told_by(comm, root, static_cast<std::int64_t>(mine.size())), root);
}

std::int64_t told_by(Communicator& comm, int root, std::int64_t mine) {
  const at::Tensor number = tensor_of(comm, {mine});
  comm.broadcast(number, root, tag);
  return number.cpu().item<std::int64_t>();
}

}  // namespace zero
