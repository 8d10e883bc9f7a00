#include "zero/optim/kernels/stored_states.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"
#include "base/numbers/stored_fp32.h"
#include "base/philox.h"

namespace zero {
namespace {

constexpr std::int64_t block_elements = std::int64_t{1} << 15;  // the same division over threads as in updates

using U16x8 = std::uint16_t __attribute__((vector_size(16)));

U32x8 load(const float* from) {
  U32x8 bits;
  std::memcpy(&bits, from, sizeof bits);
  return bits;
}

void store(U32x8 bits, std::uint16_t* to) {
  const U16x8 low = __builtin_convertvector(bits, U16x8);
  std::memcpy(to, &low, sizeof low);
}

U32x8 widened(const std::uint16_t* from) {
  U16x8 low;
  std::memcpy(&low, from, sizeof low);
  return __builtin_convertvector(low, U32x8);
}

/// Rounds group `group` of a tensor's elements.
void round_group(const PhiloxKey& key, std::uint64_t group, const float* from, std::uint16_t* to) {
  const std::array<U32x8, 4> words = philox_group(key, group);
  for (int w = 0; w < 4; ++w) {
    store(stochastic_bf16(load(from + 16 * w), words[std::size_t(w)] & 0xFFFFu), to + 16 * w);
    store(stochastic_bf16(load(from + 16 * w + 8), words[std::size_t(w)] >> 16), to + 16 * w + 8);
  }
}

/// Rounds the group's elements that are in [begin, end); pointers refer to element `begin`.
void round_part(const PhiloxKey& key, std::int64_t group, std::int64_t begin, std::int64_t end, const float* from,
                std::uint16_t* to) {
  const std::int64_t first = group * drawn_elements, low = std::max(begin, first),
                     high = std::min(end, first + drawn_elements);
  if (high - low == drawn_elements) return round_group(key, std::uint64_t(group), from + low - begin, to + low - begin);
  float in[drawn_elements] = {};
  std::uint16_t out[drawn_elements];
  std::copy(from + low - begin, from + high - begin, in + low - first);
  round_group(key, std::uint64_t(group), in, out);
  std::copy(out + low - first, out + high - first, to + low - begin);
}

template <class T>
T* bits_of(const at::Tensor& tensor) {
  return static_cast<T*>(tensor.data_ptr());
}

void check(const at::Tensor& fp32, const at::Tensor& bf16) {
  ZERO_CHECK(fp32.scalar_type() == at::kFloat && bf16.scalar_type() == at::kBFloat16 && fp32.is_contiguous() &&
                 bf16.is_contiguous() && fp32.numel() == bf16.numel() && fp32.device() == bf16.device(),
             "fp32 numbers and as many in bf16, flat, on one device");
}

void check(const at::Tensor& fp32, const at::Tensor& bf16, const at::Tensor& remainder) {
  check(fp32, bf16);
  ZERO_CHECK(remainder.scalar_type() == at::kShort && remainder.is_contiguous() && remainder.numel() == fp32.numel() &&
                 remainder.device() == fp32.device(),
             "a remainder of 16 bits for each number, on its device");
}

struct SplitPointers {
  float* master;
  std::uint16_t *weights, *remainder;
};

SplitPointers pointers_of(const at::Tensor& master, const at::Tensor& weights, const at::Tensor& remainder) {
  return {master.data_ptr<float>(), bits_of<std::uint16_t>(weights), bits_of<std::uint16_t>(remainder)};
}

void split_eight(const SplitPointers& at, std::int64_t i) {
  const U32x8 bits = load(at.master + i);
  store(split_bf16(bits), at.weights + i);
  store(split_remainder(bits), at.remainder + i);
}

void join_eight(const SplitPointers& at, std::int64_t i) {
  const U32x8 bits = joined_fp32(widened(at.weights + i), widened(at.remainder + i));
  std::memcpy(at.master + i, &bits, sizeof bits);
}

/// Calls convert(pointers, i) for every eight numbers, and for the remaining ones on padded copies.
template <class Convert>
void for_each_eight(const SplitPointers& at, std::int64_t n, const Convert& convert) {
  at::parallel_for(0, n / 8, block_elements / 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) convert(at, 8 * i);
  });
  const std::int64_t done = n / 8 * 8;
  float master[8] = {};
  std::uint16_t weights[8] = {}, remainder[8] = {};
  std::copy(at.master + done, at.master + n, master);
  std::copy(at.weights + done, at.weights + n, weights);
  std::copy(at.remainder + done, at.remainder + n, remainder);
  convert({master, weights, remainder}, 0);
  std::copy_n(master, n - done, at.master + done);
  std::copy_n(weights, n - done, at.weights + done);
  std::copy_n(remainder, n - done, at.remainder + done);
}

}  // namespace

std::uint64_t rounding_stream(const std::string& tensor, const std::string& state) {
  return fnv1a(state, fnv1a("\n", fnv1a(tensor)));  // no name has a line feed
}

void round_stochastically(const at::Tensor& from, const at::Tensor& to, const RoundingDraws& draws,
                          std::int64_t first) {
  check(from, to);
  if (!from.is_cpu()) return device_round_stochastically(from, to, draws, first);
  const PhiloxKey key{rounding_key(draws.seed, std::uint64_t(draws.step)), draws.stream};
  const auto* in = from.const_data_ptr<float>();
  auto* out = bits_of<std::uint16_t>(to);
  const std::int64_t end = first + from.numel();
  at::parallel_for(first / drawn_elements, (end + drawn_elements - 1) / drawn_elements, block_elements / drawn_elements,
                   [&](std::int64_t begin_group, std::int64_t end_group) {
                     for (std::int64_t group = begin_group; group < end_group; ++group)
                       round_part(key, group, first, end, in, out);
                   });
}

void split_master(const at::Tensor& master, const at::Tensor& weights, const at::Tensor& remainder) {
  check(master, weights, remainder);
  if (!master.is_cpu()) return device_split_master(master, weights, remainder);
  for_each_eight(pointers_of(master, weights, remainder), master.numel(), split_eight);
}

void join_master(const at::Tensor& weights, const at::Tensor& remainder, const at::Tensor& master) {
  check(master, weights, remainder);
  if (!master.is_cpu()) return device_join_master(weights, remainder, master);
  for_each_eight(pointers_of(master, weights, remainder), master.numel(), join_eight);
}

}  // namespace zero
