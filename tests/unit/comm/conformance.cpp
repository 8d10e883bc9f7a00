#include "tests/unit/comm/conformance.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

/// Element counts: odd ones, and for two types one that fills any backend's buffers several times.
std::vector<std::int64_t> sizes_of(at::ScalarType type) {
  if (type == at::kFloat || type == at::kBFloat16) return {0, 1, 17, 4096, 1000003};
  return {0, 1, 17, 20011};
}
const std::vector<at::ScalarType> sum_types = {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kInt, at::kLong};

at::ScalarType sum_type_of(at::ScalarType type) { return type == at::kDouble ? at::kDouble : at::kFloat; }

/// The sum over all ranks of sample(rank, ...), rounded to `out`.
at::Tensor expected_sum(int ranks, std::int64_t numel, at::ScalarType type, at::ScalarType out) {
  std::vector<at::Tensor> inputs;
  for (int r = 0; r < ranks; ++r) inputs.push_back(sample(r, numel, type));
  return reference_sum(inputs, sum_type_of(type)).to(out);
}

void gathers(Communicator& c) {
  for (at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kInt, at::kLong, at::kByte})
    for (std::int64_t n : sizes_of(type)) {
      std::vector<at::Tensor> all;
      for (int r = 0; r < c.size(); ++r) all.push_back(sample(r, n, type));
      const at::Tensor full = at::zeros({n * c.size()}, type), expected = at::cat(all);
      c.all_gather_into(full, all[c.rank()]);
      EXPECT_SAME(full, expected) << at::toString(type) << " of " << n;
      const at::Tensor in_place = at::zeros({n * c.size()}, type);
      const at::Tensor own = in_place.narrow(0, n * c.rank(), n);
      own.copy_(all[c.rank()]);
      c.all_gather_into(in_place, own);
      EXPECT_SAME(in_place, expected) << at::toString(type) << " of " << n << " in place";
    }
}

void reduces_and_scatters(Communicator& c) {
  for (at::ScalarType type : sum_types)
    for (std::int64_t n : sizes_of(type)) {
      const at::Tensor full = sample(c.rank(), n * c.size(), type);
      const at::Tensor before = full.clone(), shard = at::empty({n}, type);
      c.reduce_scatter(shard, full);
      const at::Tensor expected = expected_sum(c.size(), n * c.size(), type, type).narrow(0, n * c.rank(), n);
      EXPECT_SAME(shard, expected) << at::toString(type) << " of " << n;
      EXPECT_SAME(full, before);
      c.reduce_scatter(full.narrow(0, n * c.rank(), n), full);
      EXPECT_SAME(full.narrow(0, n * c.rank(), n), expected) << at::toString(type) << " of " << n << " in place";
    }
}

void accumulates(Communicator& c) {
  for (at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16, at::kLong})
    for (std::int64_t n : {17, 300001}) {
      const at::Tensor full = sample(c.rank(), n * c.size(), type), shard = sample(77, n, type);
      std::vector<at::Tensor> inputs;
      for (int r = 0; r < c.size(); ++r) inputs.push_back(sample(r, n * c.size(), type));
      const at::Tensor sum = reference_sum(inputs, sum_type_of(type)).narrow(0, n * c.rank(), n);
      const at::Tensor expected = (shard.to(sum.scalar_type()) + sum).to(type);
      c.reduce_scatter(shard, full, {.accumulate = true});
      EXPECT_SAME(shard, expected) << at::toString(type) << " of " << n;
    }
}

void rounds_once_into_another_type(Communicator& c) {
  const std::int64_t n = 5003;
  const std::vector<std::pair<at::ScalarType, at::ScalarType>> pairs = {{at::kBFloat16, at::kFloat},
                                                                        {at::kHalf, at::kFloat},
                                                                        {at::kFloat, at::kBFloat16},
                                                                        {at::kFloat, at::kHalf},
                                                                        {at::kBFloat16, at::kDouble}};
  for (auto [in, out] : pairs) {
    const at::Tensor full = sample(c.rank(), n * c.size(), in), shard = at::empty({n}, out);
    c.reduce_scatter(shard, full);
    EXPECT_SAME(shard, expected_sum(c.size(), n * c.size(), in, out).narrow(0, n * c.rank(), n).contiguous());
  }
}

void sums_fp32_in_fp64(Communicator& c) {
  const std::int64_t n = 5003;
  std::vector<at::Tensor> inputs;
  for (int r = 0; r < c.size(); ++r) inputs.push_back(sample(r, n * c.size(), at::kFloat));
  const at::Tensor shard = at::empty({n}, at::kFloat);
  c.reduce_scatter(shard, inputs[c.rank()], {.sum_type = at::kDouble});
  EXPECT_SAME(shard, reference_sum(inputs, at::kDouble).to(at::kFloat).narrow(0, n * c.rank(), n));
}

void all_reduces(Communicator& c) {
  for (at::ScalarType type : sum_types)
    for (std::int64_t n : sizes_of(type)) {
      const at::Tensor tensor = sample(c.rank(), n, type);
      c.all_reduce(tensor);
      EXPECT_SAME(tensor, expected_sum(c.size(), n, type, type)) << at::toString(type) << " of " << n;
    }
}

void broadcasts_from_each_root(Communicator& c) {
  for (int root = 0; root < c.size(); ++root)
    for (std::int64_t n : sizes_of(at::kBFloat16)) {
      const at::Tensor tensor = sample(c.rank(), n, at::kBFloat16);
      c.broadcast(tensor, root);
      EXPECT_SAME(tensor, sample(root, n, at::kBFloat16)) << "root " << root << ", " << n;
    }
}

void sends_and_receives(Communicator& c) {
  for (int from = 0; from < c.size(); ++from)
    for (int to = 0; to < c.size(); ++to) {
      if (from == to) continue;
      for (std::int64_t n : {0, 17, 1000003}) {
        const at::Tensor tensor = sample(c.rank(), n, at::kFloat);
        if (c.rank() == from) c.send(tensor, to);
        if (c.rank() == to) {
          c.recv(tensor, from);
          EXPECT_SAME(tensor, sample(from, n, at::kFloat));
        }
      }
    }
  c.settle();
}

// Large messages that cross: each rank sends to all others before it receives, twice. settle() frees the memory.
void sends_without_waiting(Communicator& c) {
  constexpr std::int64_t n = 1000003;
  if (!c.memory().allocate(1, at::kFloat).is_cpu()) return;  // a GPU's stream waits for the receiver
  for (int again = 0; again < 2; ++again) {
    std::vector<at::Tensor> sent;
    for (int to = 0; to < c.size(); ++to) {
      if (to == c.rank()) continue;
      for (int message = 0; message < 2; ++message) {
        sent.push_back(sample(c.rank() + 8 * message, n, at::kFloat));
        c.send(sent.back(), to);
      }
    }
    for (int from = 0; from < c.size(); ++from) {
      if (from == c.rank()) continue;
      for (int message = 0; message < 2; ++message) {
        const at::Tensor tensor = at::zeros({n}, at::kFloat);
        c.recv(tensor, from);
        EXPECT_SAME(tensor, sample(from + 8 * message, n, at::kFloat));
      }
    }
    c.settle();
    for (const at::Tensor& tensor : sent) tensor.zero_();
    c.barrier();
  }
}

void repeats_bit_for_bit(Communicator& c) {
  const std::int64_t n = 100003;
  at::Tensor first;
  for (int again = 0; again < 5; ++again) {
    const at::Tensor tensor = sample(c.rank(), n, at::kFloat);
    c.all_reduce(tensor);
    if (again == 0) first = tensor;
    EXPECT_SAME(tensor, first);
  }
}

/// A value's bits do not depend on the message it travels in, nor on the collective that sums it.
void sums_alike_in_every_message(Communicator& c) {
  const std::int64_t n = 20000 * c.size();
  const at::Tensor whole = sample(c.rank(), n, at::kFloat), parts = whole.clone();
  c.all_reduce(whole);
  for (std::int64_t at = 0; at < n; at += 1777) c.all_reduce(parts.narrow(0, at, std::min<std::int64_t>(1777, n - at)));
  EXPECT_SAME(whole, parts);
  const at::Tensor shard = at::empty({n / c.size()}, at::kFloat);
  c.reduce_scatter(shard, sample(c.rank(), n, at::kFloat));
  EXPECT_SAME(shard, whole.narrow(0, shard.numel() * c.rank(), shard.numel()));
}

/// Weights come and go while a graph holds them: what a collective writes is no write of the program.
void is_invisible_to_autograd(Communicator& c) {
  const std::int64_t n = 257;
  at::Tensor weights = at::zeros({n * c.size()}), bias = at::zeros({n});
  weights.set_requires_grad(true);
  const at::Tensor y = (weights * weights).narrow(0, 0, n) + bias * bias.detach();
  const at::Tensor all = weights.detach(), shard = at::full({n}, 2.0f);
  c.all_gather_into(all, shard);
  c.all_reduce(bias);
  c.broadcast(bias, 0);
  c.reduce_scatter(bias, all);
  y.sum().backward();
  EXPECT_EQ(weights.grad()[0].item<float>(), 4.0f) << "by the weights that were gathered";
}

void splits(Communicator& c) {
  const int color = c.rank() % 2;
  std::vector<int> members;
  for (int r = c.size() - 1; r >= 0; --r)
    if (r % 2 == color) members.push_back(r);
  auto part = c.split(members);  // in turned order
  ASSERT_EQ(part->size(), static_cast<int>(members.size()));
  ASSERT_EQ(members[part->rank()], c.rank());
  const std::int64_t n = 5003;
  std::vector<at::Tensor> inputs;
  for (int r : members) inputs.push_back(sample(r, n, at::kFloat));
  const at::Tensor tensor = sample(c.rank(), n, at::kFloat);
  part->all_reduce(tensor);
  EXPECT_SAME(tensor, reference_sum(inputs, at::kFloat));
  c.barrier();
  auto alone = part->split({part->rank()});
  EXPECT_EQ(alone->size(), 1);
  const at::Tensor one = sample(3, 17, at::kFloat);
  alone->all_reduce(one);
  EXPECT_SAME(one, sample(3, 17, at::kFloat));
}

void interleaves_groups(Communicator& c) {
  std::vector<int> pair{c.rank() / 2 * 2};
  if (pair.front() + 1 < c.size()) pair.push_back(pair.front() + 1);
  auto part = c.split(pair);
  for (int again = 0; again < 20; ++again) {
    const at::Tensor a = at::full({1 + again * 997}, 1.0f), b = at::full({1 + again * 1009}, 1.0f);
    part->all_reduce(a);
    c.all_reduce(b);
    EXPECT_EQ(a.min().item<float>(), static_cast<float>(part->size()));
    EXPECT_EQ(b.max().item<float>(), static_cast<float>(c.size()));
  }
}

void records_calls(Communicator& c) {
  std::vector<CallRecord> calls;
  c.set_observer([&](const CallRecord& call) { calls.push_back(call); });
  const at::Tensor full = at::zeros({10 * c.size()}, at::kBFloat16), shard = at::zeros({10}, at::kBFloat16);
  c.reduce_scatter(shard, full, {}, {Phase::backward, 3, 1});
  c.barrier();
  c.set_observer({});
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].numel, full.numel());
  EXPECT_EQ(calls[0].kind, CollectiveKind::reduce_scatter);
  EXPECT_EQ(calls[1].sequence, calls[0].sequence + 1);
  EXPECT_NE(calls[0].describe().find("reduce_scatter of " + std::to_string(full.numel()) +
                                     " bfloat16 (backward, unit 3, group 1)"),
            std::string::npos)
      << calls[0].describe();
}

void refuses_wrong_arguments(Communicator& c) {
  const at::Tensor ten = at::zeros({10}), eleven = at::zeros({11 * c.size()});
  EXPECT_THROW(c.all_gather_into(eleven, ten), InternalError);
  EXPECT_THROW(c.reduce_scatter(ten, eleven), InternalError);
  EXPECT_THROW(c.all_gather_into(at::zeros({10 * c.size()}, at::kBFloat16), ten), InternalError);
  EXPECT_THROW(c.all_reduce(at::zeros({4, 4}).t()), InternalError);
  EXPECT_THROW(c.all_reduce(at::zeros({4}, at::kByte)), InternalError);
  EXPECT_THROW(c.all_reduce(ten, {.sum_type = at::kBFloat16}), InternalError);
  EXPECT_THROW(c.broadcast(ten, c.size()), InternalError);
  EXPECT_THROW(c.send(ten, c.rank()), InternalError);
}

/// Partial sums over inputs [low, high), the tree written down as its definition.
at::Tensor tree(const std::vector<at::Tensor>& inputs, std::size_t low, std::size_t high) {
  if (high - low == 1) return inputs[low];
  std::size_t half = 1;
  while (half * 2 < high - low) half *= 2;
  return tree(inputs, low, low + half) + tree(inputs, low + half, high);
}

}  // namespace

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.numel() == b.numel() &&
         (a.nbytes() == 0 || std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0);
}

at::Tensor sample(int rank, std::int64_t numel, at::ScalarType type) {
  const at::Tensor values = at::empty({numel}, at::kFloat);
  float* out = values.data_ptr<float>();
  const float scale = c10::isIntegralType(type, false) ? 1.0f : rank % 3 == 1 ? 1.2870013f : 0.0012870013f;
  std::uint32_t state = 0x9e3779b9u * static_cast<std::uint32_t>(rank + 1);
  for (std::int64_t i = 0; i < numel; ++i) {
    state = state * 1664525u + 1013904223u;
    out[i] = static_cast<float>(static_cast<int>((state >> 8) % 20011) - (type == at::kByte ? 0 : 10005)) * scale;
  }
  return type == at::kByte ? values.to(at::kInt).to(type) : values.to(type);
}

at::Tensor reference_sum(const std::vector<at::Tensor>& inputs, at::ScalarType sum_type) {
  std::vector<at::Tensor> wide;
  for (const at::Tensor& input : inputs)
    wide.push_back(c10::isIntegralType(input.scalar_type(), false) ? input : input.to(sum_type));
  return tree(wide, 0, wide.size());
}

const std::vector<ConformanceCase>& conformance_cases() {
  static const std::vector<ConformanceCase> own = {
      {"gathers", gathers},
      {"reduces_and_scatters", reduces_and_scatters},
      {"accumulates", accumulates},
      {"rounds_once_into_another_type", rounds_once_into_another_type},
      {"sums_fp32_in_fp64", sums_fp32_in_fp64},
      {"all_reduces", all_reduces},
      {"broadcasts_from_each_root", broadcasts_from_each_root},
      {"sends_and_receives", sends_and_receives},
      {"sends_without_waiting", sends_without_waiting},
      {"repeats_bit_for_bit", repeats_bit_for_bit},
      {"sums_alike_in_every_message", sums_alike_in_every_message},
      {"is_invisible_to_autograd", is_invisible_to_autograd},
      {"splits", splits},
      {"interleaves_groups", interleaves_groups},
      {"records_calls", records_calls},
      {"refuses_wrong_arguments", refuses_wrong_arguments},
  };
  static const std::vector<ConformanceCase> all = [] {
    std::vector<ConformanceCase> cases = own;
    cases.insert(cases.end(), all_to_all_cases().begin(), all_to_all_cases().end());
    return cases;
  }();
  return all;
}

}  // namespace zero
