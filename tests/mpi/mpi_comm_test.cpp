// The MPI backend under mpirun: the conformance suite through shared memory and through messages, and its own cases.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "comm/world/job.h"
#include "tests/mpi/mpi_world.h"
#include "tests/unit/comm/conformance.h"

namespace zero {
namespace {

using std::chrono::duration;
using ::testing::HasSubstr;

std::unique_ptr<Communicator> make(MpiOptions options) { return make_mpi_communicator(mpi_world_handle(), options); }

template <class Body>
std::string failure_of(Body body) {
  return outcome_of(body).message;
}

class MpiConformance : public ::testing::TestWithParam<std::tuple<ConformanceCase, SharedMemory>> {};

TEST_P(MpiConformance, holds) {
  const auto& [conformance, shared_memory] = GetParam();
  auto communicator = make({.shared_memory = shared_memory});
  conformance.body(*communicator);
}

INSTANTIATE_TEST_SUITE_P(mpi, MpiConformance,
                         ::testing::Combine(::testing::ValuesIn(conformance_cases()),
                                            ::testing::Values(SharedMemory::on, SharedMemory::off)),
                         [](const auto& info) {
                           return std::get<0>(info.param).name +
                                  (std::get<1>(info.param) == SharedMemory::on ? "_shared" : "_messages");
                         });

TEST(Mpi, tiny_slots_give_the_same_bits) {
  auto usual = make({}), tiny = make({.slots = 2, .slot_bytes = 4096});
  const std::int64_t n = 70001;
  const at::Tensor a = sample(usual->rank(), n, at::kFloat), b = a.clone();
  usual->all_reduce(a);
  tiny->all_reduce(b);
  EXPECT_TRUE(at::equal(a, b));
  const at::Tensor full = sample(usual->rank(), n * usual->size(), at::kBFloat16);
  const at::Tensor c = at::zeros({n}, at::kFloat), d = at::zeros({n}, at::kFloat),
                   back = at::zeros({n * usual->size()}, at::kFloat);
  usual->reduce_scatter(c, full);
  tiny->reduce_scatter(d, full);
  EXPECT_TRUE(at::equal(c, d));
  tiny->all_gather_into(back, d);
  EXPECT_TRUE(at::equal(back.narrow(0, n * usual->rank(), n), d));
  for (const auto& [name, body] : all_to_all_cases()) {
    SCOPED_TRACE(name);
    body(*tiny);
  }
}

TEST(Mpi, many_small_calls_stay_in_step) {
  auto c = make({});
  at::Tensor x = at::ones({3}, at::kLong);
  for (std::int64_t i = 0; i < 2000; ++i) {
    x.fill_(i);
    c->all_reduce(x);
    ASSERT_EQ(x[2].item<std::int64_t>(), i * c->size());
  }
}

TEST(Mpi, leaves_no_name_in_dev_shm) {
  auto c = make({.shared_memory = SharedMemory::on});
  c->barrier();
  for (const auto& file : std::filesystem::directory_iterator("/dev/shm"))
    EXPECT_THAT(file.path().filename().string(),
                ::testing::Not(::testing::StartsWith("zero-" + std::to_string(getpid()))));
}

TEST(Mpi, without_enough_shared_memory_takes_messages_or_refuses) {
  if (mpi_world().size() == 1) GTEST_SKIP() << "one rank needs none";
  const std::size_t too_much = std::size_t{1} << 46;
  auto c = make({.slot_bytes = too_much});
  const at::Tensor x = at::ones({5});
  c->all_reduce(x);
  EXPECT_EQ(x[0].item<float>(), static_cast<float>(c->size()));
  const std::string refusal = failure_of([&] { make({.shared_memory = SharedMemory::on, .slot_bytes = too_much}); });
  EXPECT_THAT(refusal, HasSubstr("comm.shared_memory = \"on\" cannot be honoured"));
  EXPECT_THAT(refusal, HasSubstr("--shm-size"));
}

class MpiFailures : public ::testing::TestWithParam<SharedMemory> {};

TEST_P(MpiFailures, the_deadline_names_call_and_rank) {
  if (mpi_world().size() == 1) GTEST_SKIP() << "nobody to wait for";
  auto c = make({.deadline = duration<double>(0.2), .shared_memory = GetParam()});
  c->barrier();
  const int last = c->size() - 1;
  std::string message;
  if (c->rank() != last)
    message = failure_of([&] {
      c->reduce_scatter(at::zeros({4}), at::zeros({4 * c->size()}), {}, {Phase::backward, 3, 0});
    });
  mpi_world().control().barrier();
  if (c->rank() == last) return;
  EXPECT_THAT(message, HasSubstr("deadline of 0.2 s passed in #1 reduce_scatter"));
  EXPECT_THAT(message, HasSubstr("(backward, unit 3, group 0)"));
  EXPECT_THAT(message, HasSubstr("rank " + std::to_string(last)));
  if (GetParam() == SharedMemory::on) {
    EXPECT_THAT(message, HasSubstr("waiting for rank " + std::to_string(last) + ", which has come to #0 barrier"));
  }
}

TEST_P(MpiFailures, the_deadline_of_an_exchange_names_call_and_rank) {
  if (mpi_world().size() == 1) GTEST_SKIP() << "nobody to wait for";
  auto c = make({.deadline = duration<double>(0.2), .shared_memory = GetParam()});
  const int last = c->size() - 1;
  const std::vector<std::int64_t> none(c->size(), 0);
  std::string message;
  if (c->rank() != last) message = failure_of([&] { c->all_to_all(at::zeros({0}), none, at::zeros({0}), none); });
  mpi_world().control().barrier();
  if (c->rank() == last) return;
  EXPECT_THAT(message, HasSubstr("deadline of 0.2 s passed in #0 all_to_all of 0 float"));
  EXPECT_THAT(message, HasSubstr("rank " + std::to_string(last)));
}

// Nothing where something is expected and the other way round, too.
TEST_P(MpiFailures, other_counts_of_a_pair_are_refused) {
  if (mpi_world().size() == 1) GTEST_SKIP() << "nobody to disagree with";
  for (const auto& [sent, expected] : {std::pair(4, 5), {5, 4}, {0, 5}, {5, 0}}) {
    auto c = make({.deadline = duration<double>(5), .shared_memory = GetParam()});
    const int last = c->size() - 1;
    std::vector<std::int64_t> in_counts(c->size(), 0), out_counts(c->size(), 0);
    if (c->rank() == 0) in_counts[last] = sent;
    if (c->rank() == last) out_counts[0] = expected;
    const at::Tensor in = at::zeros({c->rank() == 0 ? sent : 0}), out = at::zeros({c->rank() == last ? expected : 0});
    const std::string message = failure_of([&] { c->all_to_all(out, out_counts, in, in_counts); });
    mpi_world().control().barrier();
    if (c->rank() != last) continue;
    EXPECT_THAT(message, HasSubstr("all_to_all")) << sent << " sent, " << expected << " expected";
    EXPECT_THAT(message, ::testing::Not(HasSubstr("deadline"))) << sent << " sent, " << expected << " expected";
  }
}

// Alike in kind, number and type: what one rank gathers for a file is not what another one computes with.
TEST_P(MpiFailures, calls_for_another_purpose_are_refused) {
  if (mpi_world().size() == 1) GTEST_SKIP() << "nobody to disagree with";
  const CallTag computing{Phase::forward, 2, 1};
  for (const bool split : {false, true})
    for (const CallTag other :
         {CallTag{Phase::save, 2, 1}, CallTag{Phase::forward, 3, 1}, CallTag{Phase::forward, 2, 0},
          CallTag{Phase::forward, 3, 2}, CallTag{Phase::forward, 1, 2}}) {
      auto c = make({.deadline = duration<double>(1), .shared_memory = GetParam()});
      if (split) c = c->duplicate();
      const at::Tensor full = at::zeros({4 * c->size()}), own = at::zeros({4});
      const std::string message =
          failure_of([&] { c->all_gather_into(full, own, c->rank() == 0 ? other : computing); });
      mpi_world().control().barrier();
      if (c->rank() != 0) continue;
      SCOPED_TRACE(::testing::Message() << "unit " << other.unit << ", group " << other.group << ", split " << split);
      EXPECT_THAT(message, ::testing::StartsWith("mismatch of collectives: rank 0 called #0 all_gather"));
      EXPECT_THAT(message, HasSubstr(std::string("(") + name_of(other.phase)));
      EXPECT_THAT(message, ::testing::AnyOf(HasSubstr("called all_gather of float (forward)"),
                                            HasSubstr("(forward, unit 2, group 1)")));
      EXPECT_THAT(message, HasSubstr("all ranks make the same calls in the same order"));
    }
}

TEST_P(MpiFailures, calls_of_another_kind_are_refused) {
  if (mpi_world().size() == 1) GTEST_SKIP() << "nobody to disagree with";
  auto c = make({.deadline = duration<double>(2), .shared_memory = GetParam()});
  const at::Tensor one = at::zeros({1});
  const std::string message = failure_of([&] { c->rank() == 0 ? c->barrier({Phase::on_main}) : c->all_reduce(one); });
  mpi_world().control().barrier();
  if (c->rank() != 0) return;
  EXPECT_THAT(message, HasSubstr("rank 0 called #0 barrier (on_main), but rank"));
  EXPECT_THAT(message, HasSubstr("all_reduce of"));
}

// People know the ranks of the job, not those of a group.
TEST_P(MpiFailures, of_a_group_name_ranks_of_the_job) {
  if (mpi_world().size() == 1) GTEST_SKIP() << "nobody to name";
  const auto turned = [](double deadline) {
    auto c = make({.deadline = duration<double>(deadline), .shared_memory = GetParam()});
    std::vector<int> ranks(c->size());
    for (int r = 0; r < c->size(); ++r) ranks[r] = c->size() - 1 - r;
    return c->split(ranks);
  };
  const int own = mpi_world().rank(), last = mpi_world().size() - 1;
  auto c = turned(1);
  const at::Tensor full = at::zeros({4 * c->size()}), part = at::zeros({4});
  std::string message = failure_of([&] { c->all_gather_into(full, part, {own == 0 ? Phase::save : Phase::forward}); });
  mpi_world().control().barrier();
  if (own == 0) {
    EXPECT_THAT(message, ::testing::StartsWith("mismatch of collectives: rank 0 called #0 all_gather"));
    EXPECT_THAT(message,
                ::testing::AnyOf(HasSubstr("but rank 1 called"), HasSubstr(text("but rank ", last, " called"))));
  }
  c = turned(0.2);
  message = own == 0 ? "" : failure_of([&] { c->reduce_scatter(part, full); });
  mpi_world().control().barrier();
  if (own == 0) return;
  EXPECT_THAT(message, HasSubstr(text(" on rank ", own, " among ", last + 1, " ranks: ")));
  EXPECT_THAT(message, ::testing::AnyOf(HasSubstr("waiting for rank 0, which"), HasSubstr("no answer from rank 0")));
}

INSTANTIATE_TEST_SUITE_P(mpi, MpiFailures, ::testing::Values(SharedMemory::on, SharedMemory::off),
                         [](const auto& info) { return info.param == SharedMemory::on ? "shared" : "messages"; });

TEST(Mpi, a_mismatch_names_both_calls) {
  if (mpi_world().size() == 1) GTEST_SKIP() << "nobody to disagree with";
  auto c = make({.deadline = duration<double>(0.5), .shared_memory = SharedMemory::on});
  const std::string message = failure_of([&] { c->all_reduce(at::zeros({c->rank() == 0 ? 4 : 5})); });
  mpi_world().control().barrier();
  EXPECT_THAT(message, HasSubstr("mismatch of collectives"));
  EXPECT_THAT(message, HasSubstr("all_reduce of 4 float"));
  EXPECT_THAT(message, HasSubstr("all_reduce of 5 float"));
  EXPECT_THAT(message, HasSubstr("all ranks make the same calls in the same order"));
}

TEST(Mpi, a_rank_that_has_ended_is_told_of_at_once) {
  if (mpi_world().size() == 1) GTEST_SKIP() << "nobody to wait for";
  auto c = make({.deadline = duration<double>(3600), .shared_memory = SharedMemory::on});
  const int last = c->size() - 1;
  c->barrier({Phase::save});
  std::string message;
  if (c->rank() == last)
    c.reset();
  else
    message = failure_of([&] { c->barrier({Phase::validate}); });
  mpi_world().control().barrier();
  if (c) {
    EXPECT_THAT(message, HasSubstr("#1 barrier (validate) on rank"));
    EXPECT_THAT(message,
                HasSubstr("waits for rank " + std::to_string(last) + ", which has ended after #0 barrier (save)"));
  }
}

TEST(Job, agrees_on_a_failure) {
  Job& job = mpi_world();
  const int last = job.size() - 1;
  try {
    all_or_none(job.control(), [&] {
      if (job.rank() == last) throw InputError("no such file");
    });
    FAIL() << "no error";
  } catch (const InputError& e) {
    EXPECT_EQ(std::string(e.what()),
              job.size() == 1 ? "no such file" : "rank " + std::to_string(last) + ": no such file");
  }
  EXPECT_EQ(failure_of([&] { all_or_none(job.control(), [] { throw Error("all alike"); }); }), "all alike");
  EXPECT_NO_THROW(all_or_none(job.control(), [] {}));
}

TEST(Job, knows_its_place) {
  Job& job = mpi_world();
  EXPECT_EQ(job.nodes(), 1);
  EXPECT_EQ(job.node(), 0);
  EXPECT_EQ(job.local_size(), job.size());
  EXPECT_EQ(job.local_rank(), job.rank());
  EXPECT_EQ(job.communicator().size(), job.size());
}

}  // namespace
}  // namespace zero
