#include "comm/world/job.h"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/core_share.h"
#include "base/error.h"
#include "base/log.h"
#include "comm/mpi/point_to_point.h"
#include "comm/outcome.h"

namespace zero {
namespace {

void print_error(const std::string& message) {
  log_error(message);
  std::fflush(nullptr);
}

[[noreturn]] void abort_job(ExitCode code) {
  MPI_Abort(MPI_COMM_WORLD, static_cast<int>(code));
  _exit(static_cast<int>(code));
}

}  // namespace

struct Job::Impl {
  JobOptions options;
  bool owns_mpi = false;  // false: the program started MPI and ends it
  MPI_Comm ranks = MPI_COMM_NULL;
  std::string explanation;  // of failures
  int rank = 0, size = 1, local_rank = 0, local_size = 1, node = 0, nodes = 1, cores = 1;
  CoreSet node_cores;
  std::unique_ptr<Communicator> control;
  std::unique_ptr<Communicator> communicator;
  MPI_Comm end_group = MPI_COMM_NULL;  // for outcomes at the end: no other message can interfere

  ~Impl() {
    if (ends_with_uncaught == this) ends_with_uncaught = nullptr;
    close();
  }

  void close() {
    communicator.reset();
    control.reset();
    int over = 0;
    MPI_Finalized(&over);
    if (over) return;
    if (owns_mpi) {
      MPI_Finalize();
      return;
    }
    for (MPI_Comm* group : {&end_group, &ranks})
      if (*group != MPI_COMM_NULL) MPI_Comm_free(group);
  }

  void start_mpi();
  void join_mpi();
  [[noreturn]] void leave_program(int code);

  void locate() {
    MPI_Comm local = MPI_COMM_NULL;
    check_mpi(MPI_Comm_split_type(ranks, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local), "MPI_Comm_split_type");
    MPI_Comm_rank(local, &local_rank);
    MPI_Comm_size(local, &local_size);
    int first = rank;
    check_mpi(MPI_Bcast(&first, 1, MPI_INT, 0, local), "MPI_Bcast");
    std::vector<CoreSet> of_ranks(local_size);
    const CoreSet own = own_cores();
    check_mpi(MPI_Allgather(&own, sizeof own, MPI_BYTE, of_ranks.data(), sizeof own, MPI_BYTE, local), "MPI_Allgather");
    cores = core_share(of_ranks, local_rank);
    for (const CoreSet& of_rank : of_ranks) node_cores |= of_rank;
    MPI_Comm_free(&local);
    std::vector<int> firsts(size);
    check_mpi(MPI_Allgather(&first, 1, MPI_INT, firsts.data(), 1, MPI_INT, ranks), "MPI_Allgather");
    const std::set<int> distinct(firsts.begin(), firsts.end());
    nodes = static_cast<int>(distinct.size());
    node = static_cast<int>(std::distance(distinct.begin(), distinct.find(first)));
  }

  static inline Impl* ends_with_uncaught = nullptr;
  static inline std::terminate_handler before = nullptr;
  const std::thread::id thread = std::this_thread::get_id();
  [[noreturn]] static void terminate();
  [[gnu::constructor(101)]] static void watch_exit();  // runs before main()
  static void tell_of_exit();

  int end(Outcome own);
  std::vector<OutcomeRecord> all_gather_outcomes(const Outcome& own);
};

/// All ranks receive every rank's outcome. A failing rank does not wait long: others may be in a collective that it
/// will never join.
int Job::Impl::end(Outcome own) {
  if (own.is_foreign) own.message += explanation;
  const std::vector<OutcomeRecord> records = all_gather_outcomes(own);
  if (const auto cause = cause_of(records)) {
    std::string message = own.message;
    message.resize(static_cast<std::size_t>(cause->message_bytes));
    MPI_Bcast(message.data(), static_cast<int>(cause->message_bytes), MPI_CHAR, cause->rank, end_group);
    if (rank == 0) print_error(cause->describe(message));
    return static_cast<int>(cause->code);
  }
  std::int64_t code = 0;
  for (const OutcomeRecord& record : records) code = std::max(code, record.code);
  return static_cast<int>(code);
}

/// Successful ranks wait without a deadline; failed ones abort the job after the grace period. Waiting ranks leave the
/// cores to those that work.
std::vector<OutcomeRecord> Job::Impl::all_gather_outcomes(const Outcome& own) {
  using Clock = std::chrono::steady_clock;
  const OutcomeRecord mine = OutcomeRecord::of(own);
  std::vector<OutcomeRecord> records(size);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallgather(&mine, OutcomeRecord::numbers, MPI_INT64_T, records.data(), OutcomeRecord::numbers, MPI_INT64_T,
                 end_group, &request);
  const auto start = Clock::now();
  for (int done = 0;;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done) return records;
    if (own.failed && Clock::now() - start > options.grace) {
      // The log labels other ranks itself, and rank 0's rejections hold for all.
      const bool names_rank = rank == 0 && own.code != ExitCode::bad_input;
      print_error(names_rank ? text("rank 0: ", own.message) : own.message);
      abort_job(own.code);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// The stack is as it was at the throw: no destructor has run.
void Job::Impl::terminate() {
  Impl* const job = std::exchange(ends_with_uncaught, nullptr);
  if (!job || !std::current_exception() || job->thread != std::this_thread::get_id()) {
    before();
    std::abort();
  }
  const Outcome outcome = outcome_of([] { std::rethrow_exception(std::current_exception()); });
  std::fflush(nullptr);
  job->leave_program(job->end(outcome));
}

// A program that started MPI does not reach its end. If the program has other ranks, they are ended too.
void Job::Impl::leave_program(int code) {
  int all = 0, over = 0;
  MPI_Finalized(&over);
  if (!over) MPI_Comm_size(MPI_COMM_WORLD, &all);
  const bool is_all = all == size;
  close();
  if (!over && !owns_mpi && !is_all) abort_job(static_cast<ExitCode>(code));
  if (!over && !owns_mpi) MPI_Finalize();
  _exit(code);
}

// Runs before any static object exists. The first registered handler runs last, when any job has ended.
void Job::Impl::watch_exit() { std::atexit(tell_of_exit); }

// The launcher kills all processes, and its message names no cause. The log is gone by now.
void Job::Impl::tell_of_exit() {
  if (!ends_with_uncaught || ends_with_uncaught->size == 1) return;
  const std::string line =
      text("error: rank ", ends_with_uncaught->rank,
           ": the program has ended in the middle of its job, and the launcher "
           "ends the other processes: exit() was called, or the World was never destroyed. Return from main() on all "
           "processes alike, or throw, which ends all of them with one exit code\n");
  std::fputs(line.c_str(), stderr);
}

void Job::explain_failures(const std::string& explanation) { impl_->explanation = explanation; }

void Job::end_with_uncaught() {
  const std::terminate_handler set = std::set_terminate(Impl::terminate);
  if (set != Impl::terminate) Impl::before = set;
  Impl::ends_with_uncaught = impl_.get();
}

Job::Job(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Job::Job(Job&&) noexcept = default;
Job& Job::operator=(Job&&) noexcept = default;
Job::~Job() = default;

namespace {

/// If MPI sees several tasks as jobs of one rank, each would train alone into the same directory.
void refuse_lone_task() {
  for (const char* name : {"SLURM_STEP_NUM_TASKS", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE"})
    if (const char* tasks = std::getenv(name); tasks && std::atol(tasks) > 1)
      throw InputError(text("the launcher started ", tasks, " tasks (", name,
                            "), but MPI sees only this process: launcher and MPI do not match. Start the job "
                            "with the mpirun of the Open MPI that the program is linked with, or with srun --mpi=pmix "
                            "(srun --mpi=list shows whether Slurm has it)"));
}

}  // namespace

void Job::Impl::start_mpi() {
  int provided = 0;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
  owns_mpi = true;
  ZERO_CHECK(provided >= MPI_THREAD_FUNNELED, "this MPI allows no threads except its own");
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  ranks = MPI_COMM_WORLD;
}

// One thread of a job calls MPI. On MPI's main thread any thread level suffices: LibTorch's other threads only compute.
void Job::Impl::join_mpi() {
  owns_mpi = false;
  int level = MPI_THREAD_SINGLE, is_main = 0;
  MPI_Query_thread(&level);
  MPI_Is_thread_main(&is_main);
  if (level < MPI_THREAD_SERIALIZED && !is_main)
    throw InputError(
        "this thread may not call MPI, which the program has started for its main thread alone: make the World on the "
        "thread that called MPI_Init(), or start MPI by MPI_Init_thread() with MPI_THREAD_SERIALIZED");
  const MPI_Comm given = options.communicator ? MPI_Comm_f2c(*options.communicator) : MPI_COMM_WORLD;
  if (given == MPI_COMM_NULL) throw InputError("World::from_communicator(): MPI_COMM_NULL has no processes");
  check_mpi(MPI_Comm_dup(given, &ranks), "MPI_Comm_dup");
  check_mpi(MPI_Comm_set_errhandler(ranks, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

Job Job::start(JobOptions options) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  int started = 0, over = 0;
  MPI_Initialized(&started);
  MPI_Finalized(&over);
  if (over)
    throw InputError("MPI has ended in this program, and cannot start again: make the World before MPI_Finalize()");
  if (options.communicator && !started)
    throw InputError(
        "World::from_communicator() before MPI has started: call MPI_Init_thread(), or from_environment()");
  started ? impl->join_mpi() : impl->start_mpi();
  MPI_Comm_rank(impl->ranks, &impl->rank);
  MPI_Comm_size(impl->ranks, &impl->size);
  impl->options.mpi.named_rank = impl->rank;
  start_log(impl->rank, impl->size);
  if (impl->size == 1 && !options.communicator) refuse_lone_task();
  impl->locate();
  check_mpi(MPI_Comm_dup(impl->ranks, &impl->end_group), "MPI_Comm_dup");
  impl->control = make_mpi_communicator(
      MPI_Comm_c2f(impl->ranks),
      {.deadline = options.control_deadline, .shared_memory = SharedMemory::off, .named_rank = impl->rank});
  return Job(std::move(impl));
}

int Job::run(const std::function<int(Job&)>& body, JobOptions options) {
  std::optional<Job> job;
  const Outcome started = outcome_of([&] { job.emplace(start(options)); });
  if (started.failed) {
    print_error(started.message);
    return static_cast<int>(started.code);
  }
  job->end_with_uncaught();
  int code = 0;
  Outcome outcome = outcome_of([&] { code = body(*job); });
  if (!outcome.failed) outcome.code = static_cast<ExitCode>(code);
  std::fflush(nullptr);
  if (!outcome.failed) job->impl_->communicator.reset();  // ranks that wait for this one learn that it has ended
  return job->impl_->end(outcome);
}

int Job::rank() const { return impl_->rank; }
int Job::size() const { return impl_->size; }
int Job::local_rank() const { return impl_->local_rank; }
int Job::local_size() const { return impl_->local_size; }
int Job::node() const { return impl_->node; }
int Job::nodes() const { return impl_->nodes; }
int Job::cores() const { return impl_->cores; }
const CoreSet& Job::node_cores() const { return impl_->node_cores; }

std::string Job::node_name() const {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

void Job::configure(const MpiOptions& options) {
  ZERO_CHECK(!impl_->communicator, "the options of the communicator come before its first use");
  impl_->options.mpi = options;
  impl_->options.mpi.named_rank = impl_->rank;
}

Communicator& Job::communicator() {
  if (!impl_->communicator) impl_->communicator = make_mpi_communicator(MPI_Comm_c2f(impl_->ranks), impl_->options.mpi);
  return *impl_->communicator;
}

Communicator& Job::control() { return *impl_->control; }

}  // namespace zero
