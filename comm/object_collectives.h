#pragma once
// Collectives of host numbers and texts, like torch.distributed's object collectives. Data travel in the backend's own
// memory, which is GPU memory for a GPU backend. Every rank of the group calls these functions in the same order.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace zero {

/// Returns root's number on all ranks.
std::int64_t broadcast_number(Communicator& group, std::int64_t mine, int root, CallTag tag = {Phase::setup});

/// Returns root's text, of any length, on all ranks.
std::string broadcast_text(Communicator& group, const std::string& mine, int root, CallTag tag = {Phase::setup});

/// Returns the texts of all ranks, in rank order.
std::vector<std::string> all_gather_texts(Communicator& group, const std::string& mine, CallTag tag = {Phase::setup});

/// Returns the numbers of all ranks, in rank order. All ranks must pass the same count.
std::vector<std::int64_t> all_gather_numbers(Communicator& group, std::span<const std::int64_t> mine,
                                             CallTag tag = {Phase::setup});
std::vector<std::int64_t> all_gather_number(Communicator& group, std::int64_t mine, CallTag tag = {Phase::setup});

}  // namespace zero
