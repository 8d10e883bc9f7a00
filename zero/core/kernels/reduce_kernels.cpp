#include "zero/core/kernels/reduce_kernels.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <array>
#include <cmath>
#include <cstring>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/numbers/number_types.h"
#include "zero/core/kernels/reduce_lanes.h"

namespace zero {
namespace {

constexpr std::int64_t block_elements = std::int64_t{1} << 15;

/// Calls f(begin, end) for ranges of whole blocks, on one or several threads.
template <class F>
void for_blocks(std::int64_t n, const F& f) {
  const std::int64_t blocks = (n + block_elements - 1) / block_elements;
  at::parallel_for(0, blocks, 4, [&](std::int64_t first, std::int64_t last) {
    f(first * block_elements, std::min(last * block_elements, n));
  });
}

/// Sums values[0, count) pairwise, in place, adjacent values first.
double fold(double* values, std::int64_t count) {
  for (; count > 1; count = (count + 1) / 2) {
    for (std::int64_t i = 0; i < count / 2; ++i) values[i] = values[2 * i] + values[2 * i + 1];
    if (count % 2) values[count / 2] = values[count - 1];
  }
  return count ? values[0] : 0.0;
}

}  // namespace

NormPart sum_of_squares(const at::Tensor& flat) {
  if (!flat.defined() || flat.numel() == 0) return {};
  ZERO_CHECK(flat.is_contiguous() && flat.device().is_cpu(), "the norm is taken of contiguous host tensors");
  const SquaresLoop squares = squares_loop(number_of(flat.scalar_type()));
  const auto* data = static_cast<const char*>(flat.const_data_ptr());
  const auto bytes = static_cast<std::int64_t>(flat.element_size());
  std::vector<double> sums(static_cast<std::size_t>((flat.numel() + block_elements - 1) / block_elements));
  for_blocks(flat.numel(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; at += block_elements) {
      std::array<double, norm_sums> lanes{};
      squares(data + at * bytes, std::min(block_elements, end - at), lanes.data());
      sums[static_cast<std::size_t>(at / block_elements)] = fold(lanes.data(), norm_sums);
    }
  });
  const double sum = fold(sums.data(), static_cast<std::int64_t>(sums.size()));
  return {sum, std::isfinite(sum)};  // squares of fp32 cannot overflow fp64
}

void add_squares(ExactSum& sum, const at::Tensor& flat) {
  if (!flat.defined() || flat.numel() == 0) return;
  ZERO_CHECK(flat.is_contiguous() && flat.device().is_cpu(), "the norm is taken of contiguous host tensors");
  static_assert(exact_block == norm_sums, "each element of a block has a lane of its own");
  const SquaresLoop squares = squares_loop(number_of(flat.scalar_type()));
  const auto* data = static_cast<const char*>(flat.const_data_ptr());
  const auto bytes = static_cast<std::int64_t>(flat.element_size());
  std::mutex adding;
  for_blocks(flat.numel(), [&](std::int64_t begin, std::int64_t end) {
    ExactSum part;
    for (std::int64_t at = begin; at < end; at += exact_block) {
      std::array<double, norm_sums> lanes{};
      squares(data + at * bytes, std::min<std::int64_t>(exact_block, end - at), lanes.data());
      part.add(fold(lanes.data(), norm_sums));
    }
    const std::lock_guard lock(adding);
    sum.add(part);
  });
}

void pack(const at::Tensor& destination_flat, const at::Tensor& source, bool accumulate) {
  ZERO_CHECK(destination_flat.numel() == source.numel(),
             text("cannot pack ", source.numel(), " elements into ", destination_flat.numel()));
  ZERO_CHECK(destination_flat.is_contiguous() && destination_flat.device().is_cpu() && source.device().is_cpu(),
             "packing is for host tensors with a contiguous destination");
  if (source.numel() == 0) return;
  const at::Tensor from = source.is_contiguous() ? source : source.detach().contiguous();
  const auto to_bytes = static_cast<std::int64_t>(destination_flat.element_size());
  const auto from_bytes = static_cast<std::int64_t>(from.element_size());
  auto* to_data = static_cast<char*>(destination_flat.data_ptr());
  const auto* from_data = static_cast<const char*>(from.const_data_ptr());
  const bool copy = !accumulate && destination_flat.scalar_type() == from.scalar_type();
  const PackLoop run = pack_loop(number_of(destination_flat.scalar_type()), number_of(from.scalar_type()), accumulate);
  ZERO_CHECK(run, text("cannot pack ", c10::toString(from.scalar_type()), " into ",
                       c10::toString(destination_flat.scalar_type())));
  for_blocks(from.numel(), [&](std::int64_t begin, std::int64_t end) {
    if (copy) {
      std::memcpy(to_data + begin * to_bytes, from_data + begin * from_bytes,
                  static_cast<std::size_t>((end - begin) * to_bytes));
    } else {
      run(to_data + begin * to_bytes, from_data + begin * from_bytes, end - begin);
    }
  });
}

}  // namespace zero
