// Requirements of an all_to_all for every backend.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "tests/unit/comm/conformance.h"

namespace zero {
namespace {

using Counts = std::vector<std::int64_t>;

/// How many elements go from one rank to another.
using CountOf = std::function<std::int64_t(int from, int to)>;

at::Tensor part(const Communicator& c, int from, int to, std::int64_t numel, at::ScalarType type) {
  return sample(from * c.size() + to, numel, type);
}

/// Carries out one exchange of made-up values and checks what came, and that what was sent stays.
void exchange(Communicator& c, at::ScalarType type, const CountOf& count_of, const std::string& what) {
  Counts in_counts, out_counts;
  std::vector<at::Tensor> in_parts, out_parts;
  for (int r = 0; r < c.size(); ++r) {
    in_counts.push_back(count_of(c.rank(), r));
    out_counts.push_back(count_of(r, c.rank()));
    in_parts.push_back(part(c, c.rank(), r, in_counts.back(), type));
    out_parts.push_back(part(c, r, c.rank(), out_counts.back(), type));
  }
  const at::Tensor in = at::cat(in_parts), expected = at::cat(out_parts), before = in.clone();
  const at::Tensor out = at::ones({expected.numel()}, type);
  c.all_to_all(out, out_counts, in, in_counts);
  EXPECT_SAME(out, expected) << what << " of " << at::toString(type) << " on rank " << c.rank();
  EXPECT_SAME(in, before) << what;
}

const std::vector<at::ScalarType> types = {at::kFloat, at::kBFloat16, at::kDouble, at::kLong, at::kByte};

void exchanges_equal_counts(Communicator& c) {
  for (at::ScalarType type : types)
    for (std::int64_t n : {0, 1, 17, 4096, 20011})
      exchange(
          c, type, [n](int, int) { return n; }, "equal counts");
}

/// Parts that fill any backend's buffers several times.
void exchanges_large_parts(Communicator& c) {
  for (at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    exchange(
        c, type, [](int, int) { return 1000003; }, "large parts");
    exchange(
        c, type, [](int from, int to) { return 1 + (from * 5 + to * 3) % 4 * 333333; }, "large ragged parts");
  }
}

/// With nothing between some pairs.
void exchanges_ragged_counts(Communicator& c) {
  for (at::ScalarType type : types)
    for (int seed = 0; seed < 4; ++seed)
      exchange(
          c, type,
          [seed](int from, int to) {
            return (from + 2 * to + seed) % 3 == 0 ? 0 : 1 + (from * 977 + to * 331 + seed * 101) % 7000;
          },
          "ragged counts");
}

void exchanges_without_some_ranks(Communicator& c) {
  const int last = c.size() - 1;
  exchange(
      c, at::kFloat, [last](int from, int to) { return from == last || to == last ? 0 : 40 + from + to; },
      "one rank left out");
  exchange(
      c, at::kFloat, [last](int from, int to) { return from == 0 && to == last ? 700001 : 0; }, "one pair only");
  exchange(
      c, at::kFloat, [](int from, int to) { return from == to ? 5 + from : 0; }, "to themselves only");
  exchange(
      c, at::kFloat, [last](int from, int) { return from == last ? 300007 : 0; }, "one rank sends");
  exchange(
      c, at::kFloat, [last](int, int to) { return to == last ? 300007 : 0; }, "one rank receives");
  exchange(
      c, at::kFloat, [](int, int) { return 0; }, "nobody sends");
}

/// Ranks stay in step with each other whatever each of them sends.
void exchanges_between_other_calls(Communicator& c) {
  for (int again = 0; again < 20; ++again) {
    const at::Tensor sum = at::ones({1 + again * 997});
    c.all_reduce(sum);
    exchange(
        c, at::kLong, [again](int from, int to) { return (from * 7 + to + again) % 5 * again * 211; }, "a round");
    EXPECT_EQ(sum.min().item<float>(), static_cast<float>(c.size()));
    if (again % 3 == 0) c.barrier();
  }
}

void exchanges_in_parts_of_the_group(Communicator& c) {
  std::vector<int> members;
  for (int r = c.size() - 1; r >= 0; --r)
    if (r % 2 == c.rank() % 2) members.push_back(r);
  const auto half = c.split(members), alone = c.split({c.rank()});
  exchange(
      *half, at::kFloat, [](int from, int to) { return 3 * from + to; }, "half of the ranks");
  exchange(
      *alone, at::kBFloat16, [](int, int) { return 1001; }, "a rank alone");
  exchange(
      *alone, at::kBFloat16, [](int, int) { return 0; }, "a rank alone, nothing");
}

/// Tensors that hold nothing lie wherever they like.
void takes_an_empty_part_of_what_it_sends(Communicator& c) {
  Counts none(c.size(), 0), in_counts = none;
  in_counts.back() = c.rank() == c.size() - 1 ? 0 : 10;
  const std::int64_t sent = in_counts.back();
  Counts out_counts = none;
  if (c.rank() == c.size() - 1) std::fill_n(out_counts.begin(), c.size() - 1, 10);
  const at::Tensor in = at::full({sent}, 2.0f);
  const at::Tensor out = sent ? in.narrow(0, 5, 0) : at::zeros({10 * (c.size() - 1)});
  c.all_to_all(out, out_counts, in, in_counts);
  EXPECT_SAME(out, at::full({out.numel()}, 2.0f));
}

void exchanges_out_of_autograds_sight(Communicator& c) {
  at::Tensor weights = at::ones({4});
  weights.set_requires_grad(true);
  const at::Tensor y = weights * weights, hidden = weights.detach();
  Counts own(c.size(), 0);
  own[c.rank()] = 4;
  c.all_to_all(hidden, own, at::full({4}, 3.0f), own);
  y.sum().backward();
  EXPECT_EQ(weights.grad()[3].item<float>(), 6.0f) << "by the values that came";
}

void records_exchanges(Communicator& c) {
  std::vector<CallRecord> calls;
  c.set_observer([&](const CallRecord& call) { calls.push_back(call); });
  Counts in_counts, out_counts;
  for (int r = 0; r < c.size(); ++r) {
    in_counts.push_back(c.rank() + 1);
    out_counts.push_back(r + 1);
  }
  const std::int64_t sent = std::int64_t{c.size()} * (c.rank() + 1), received = c.size() * (c.size() + 1) / 2;
  c.all_to_all(at::zeros({received}, at::kBFloat16), out_counts, at::zeros({sent}, at::kBFloat16), in_counts,
               {Phase::forward, 2, 1});
  c.barrier();
  c.set_observer({});
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].kind, CollectiveKind::all_to_all);
  EXPECT_EQ(calls[0].numel, sent);
  EXPECT_EQ(calls[0].type, at::kBFloat16);
  EXPECT_EQ(calls[0].peer, -1);
  EXPECT_EQ(calls[1].sequence, calls[0].sequence + 1);
  EXPECT_EQ(calls[0].describe(), "#" + std::to_string(calls[0].sequence) + " all_to_all of " + std::to_string(sent) +
                                     " bfloat16 (forward, unit 2, group 1)");
}

/// Before anything travels, so that no other rank waits.
void refuses_wrong_counts(Communicator& c) {
  const std::int64_t n = 10 * c.size();
  const at::Tensor in = at::zeros({n}), out = at::zeros({n});
  const Counts tens(c.size(), 10);
  Counts more = tens, other = tens, negative = tens, longer = tens, shorter(c.size() - 1, 10);
  ++more[0];
  ++other[c.rank()];
  negative[0] = -1;
  longer.push_back(0);
  EXPECT_THROW(c.all_to_all(out, more, in, tens), InternalError);
  EXPECT_THROW(c.all_to_all(out, tens, in, more), InternalError);
  EXPECT_THROW(c.all_to_all(out, tens, in, longer), InternalError);
  EXPECT_THROW(c.all_to_all(out, shorter, in, tens), InternalError);
  EXPECT_THROW(c.all_to_all(out, negative, in, tens), InternalError);
  EXPECT_THROW(c.all_to_all(at::zeros({n + 1}), other, in, tens), InternalError) << "the own part";
  EXPECT_THROW(c.all_to_all(out.narrow(0, 1, n - 1), tens, in, tens), InternalError);
  EXPECT_THROW(c.all_to_all(at::zeros({n}, at::kBFloat16), tens, in, tens), InternalError);
  EXPECT_THROW(c.all_to_all(at::zeros({4, 4}).t(), tens, in, tens), InternalError);
  EXPECT_THROW(c.all_to_all(in, tens, in, tens), InternalError) << "in place";
  const at::Tensor both = at::zeros({2 * n - 1});
  EXPECT_THROW(c.all_to_all(both.narrow(0, 0, n), tens, both.narrow(0, n - 1, n), tens), InternalError) << "overlap";
  EXPECT_THROW(c.all_to_all(at::Tensor(), tens, in, tens), InternalError);
}

}  // namespace

const std::vector<ConformanceCase>& all_to_all_cases() {
  static const std::vector<ConformanceCase> cases = {
      {"exchanges_equal_counts", exchanges_equal_counts},
      {"exchanges_large_parts", exchanges_large_parts},
      {"exchanges_ragged_counts", exchanges_ragged_counts},
      {"exchanges_without_some_ranks", exchanges_without_some_ranks},
      {"exchanges_between_other_calls", exchanges_between_other_calls},
      {"exchanges_in_parts_of_the_group", exchanges_in_parts_of_the_group},
      {"takes_an_empty_part_of_what_it_sends", takes_an_empty_part_of_what_it_sends},
      {"exchanges_out_of_autograds_sight", exchanges_out_of_autograds_sight},
      {"records_exchanges", records_exchanges},
      {"refuses_wrong_counts", refuses_wrong_counts},
  };
  return cases;
}

}  // namespace zero
