#pragma once
// BatchRows: counts the rows of a batch and selects a range of them, to split the batch over processes. It supports
// tensors, torch::data's examples, and pairs, tuples and maps of these. The first dimension of every tensor must be the
// rows. It also supports std::vector<T>, a list of samples. Specialize it for other types:
//
//   template <>
//   struct zero::BatchRows<Pairs> {
//     static std::int64_t count(const Pairs& batch) { return zero::row_count(batch.left); }
//     static Pairs take(const Pairs& batch, zero::RowRange rows, torch::Device device) {
//       return {zero::take_rows(batch.left, rows, device), zero::take_rows(batch.right, rows, device)};
//     }
//   };
#include <torch/data/example.h>
#include <torch/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace zero {

struct RowRange {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

/// Returns the contiguous rows of process `rank` of `size` processes. If the rows do not divide evenly, the first
/// processes get one row more (torch.tensor_split).
RowRange rows_of_process(std::int64_t rows, int rank, int size);

template <typename T>
struct BatchRows {
  static_assert(!std::is_same_v<T, T>,
                "the rows of this type of batch are not known: specialize zero::BatchRows for it");
};

/// Returns the number of rows of a batch. Throws InputError if its tensors disagree or have no dimensions.
template <typename T>
std::int64_t row_count(const T& batch) {
  return BatchRows<T>::count(batch);
}

/// Returns only these rows, with tensors on the device. If there are no rows, the other dimensions stay the same.
template <typename T>
T take_rows(const T& batch, RowRange rows, torch::Device device) {
  return BatchRows<T>::take(batch, rows, device);
}

namespace detail {
/// Returns the number of rows that two parts of a batch have in common; throws InputError if they differ.
std::int64_t same_rows(std::int64_t first, std::int64_t second);

template <typename Map>
struct MapRows {
  static std::int64_t count(const Map& batch) {
    std::int64_t rows = 0;
    bool first = true;
    for (const auto& [name, part] : batch) {
      rows = first ? row_count(part) : same_rows(rows, row_count(part));
      first = false;
    }
    return rows;
  }
  static Map take(const Map& batch, RowRange rows, torch::Device device) {
    Map taken;
    for (const auto& [name, part] : batch) taken.emplace(name, take_rows(part, rows, device));
    return taken;
  }
};
}  // namespace detail

template <>
struct BatchRows<torch::Tensor> {
  static std::int64_t count(const torch::Tensor& batch);
  static torch::Tensor take(const torch::Tensor& batch, RowRange rows, torch::Device device);
};

template <typename Data, typename Target>
struct BatchRows<torch::data::Example<Data, Target>> {
  using Batch = torch::data::Example<Data, Target>;
  static std::int64_t count(const Batch& batch) {
    return detail::same_rows(row_count(batch.data), row_count(batch.target));
  }
  static Batch take(const Batch& batch, RowRange rows, torch::Device device) {
    return {take_rows(batch.data, rows, device), take_rows(batch.target, rows, device)};
  }
};

template <typename Data>
struct BatchRows<torch::data::Example<Data, void>> {
  using Batch = torch::data::Example<Data, void>;
  static std::int64_t count(const Batch& batch) { return row_count(batch.data); }
  static Batch take(const Batch& batch, RowRange rows, torch::Device device) {
    return {take_rows(batch.data, rows, device)};
  }
};

/// A list of samples, which stay on their devices.
template <typename T>
struct BatchRows<std::vector<T>> {
  static std::int64_t count(const std::vector<T>& batch) { return std::int64_t(batch.size()); }
  static std::vector<T> take(const std::vector<T>& batch, RowRange rows, torch::Device) {
    return {batch.begin() + rows.begin, batch.begin() + rows.begin + rows.count};
  }
};

template <typename First, typename Second>
struct BatchRows<std::pair<First, Second>> {
  using Batch = std::pair<First, Second>;
  static std::int64_t count(const Batch& batch) {
    return detail::same_rows(row_count(batch.first), row_count(batch.second));
  }
  static Batch take(const Batch& batch, RowRange rows, torch::Device device) {
    return {take_rows(batch.first, rows, device), take_rows(batch.second, rows, device)};
  }
};

template <typename First, typename... Rest>
struct BatchRows<std::tuple<First, Rest...>> {
  using Batch = std::tuple<First, Rest...>;
  static std::int64_t count(const Batch& batch) {
    return std::apply(
        [](const First& first, const Rest&... rest) {
          std::int64_t rows = row_count(first);
          ((rows = detail::same_rows(rows, row_count(rest))), ...);
          return rows;
        },
        batch);
  }
  static Batch take(const Batch& batch, RowRange rows, torch::Device device) {
    return std::apply([&](const auto&... parts) { return Batch(take_rows(parts, rows, device)...); }, batch);
  }
};

template <typename Key, typename T>
struct BatchRows<std::map<Key, T>> : detail::MapRows<std::map<Key, T>> {};
template <typename Key, typename T>
struct BatchRows<std::unordered_map<Key, T>> : detail::MapRows<std::unordered_map<Key, T>> {};

}  // namespace zero
