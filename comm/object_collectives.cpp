#include "comm/object_collectives.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace zero {
namespace {

/// Copies the elements to the backend's memory.
template <class T>
at::Tensor to_backend(Communicator& group, std::span<const T> elements, at::ScalarType type) {
  const auto numel = static_cast<std::int64_t>(elements.size());
  const at::Tensor host = at::from_blob(const_cast<T*>(elements.data()), {numel}, type);  // read only
  return group.memory().allocate(numel, type).copy_(host);
}

}  // namespace

std::int64_t broadcast_number(Communicator& group, std::int64_t mine, int root, CallTag tag) {
  const at::Tensor number = to_backend<std::int64_t>(group, {&mine, 1}, at::kLong);
  group.broadcast(number, root, tag);
  return number.item<std::int64_t>();
}

std::string broadcast_text(Communicator& group, const std::string& mine, int root, CallTag tag) {
  std::string text = mine;
  text.resize(static_cast<std::size_t>(broadcast_number(group, static_cast<std::int64_t>(mine.size()), root, tag)));
  if (text.empty()) return text;
  const at::Tensor letters = to_backend<char>(group, text, at::kByte);
  group.broadcast(letters, root, tag);
  const at::Tensor received = letters.cpu();
  return {static_cast<const char*>(received.const_data_ptr()), text.size()};
}

std::vector<std::int64_t> all_gather_numbers(Communicator& group, std::span<const std::int64_t> mine, CallTag tag) {
  const at::Tensor all = group.memory().allocate(static_cast<std::int64_t>(mine.size()) * group.size(), at::kLong);
  group.all_gather_into(all, to_backend(group, mine, at::kLong), tag);
  const at::Tensor received = all.cpu();
  const auto* numbers = received.const_data_ptr<std::int64_t>();
  return {numbers, numbers + received.numel()};
}

std::vector<std::string> all_gather_texts(Communicator& group, const std::string& mine, CallTag tag) {
  const std::vector<std::int64_t> bytes = all_gather_number(group, static_cast<std::int64_t>(mine.size()), tag);
  const std::int64_t longest = *std::max_element(bytes.begin(), bytes.end());
  std::string padded = mine;
  padded.resize(static_cast<std::size_t>(longest));
  const at::Tensor all = group.memory().allocate(longest * group.size(), at::kByte);
  group.all_gather_into(all, to_backend<char>(group, padded, at::kByte), tag);
  const at::Tensor received = all.cpu();
  const char* letters = static_cast<const char*>(received.const_data_ptr());
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < bytes.size(); ++r)
    texts.emplace_back(letters + static_cast<std::int64_t>(r) * longest, static_cast<std::size_t>(bytes[r]));
  return texts;
}

std::vector<std::int64_t> all_gather_number(Communicator& group, std::int64_t mine, CallTag tag) {
  return all_gather_numbers(group, {&mine, 1}, tag);
}

}  // namespace zero
