#pragma once
// Sends numbers and texts of the host from rank to rank (torch.distributed's object collectives). They travel in the
// backend's own memory, which on a GPU is the GPU's. Collective: every rank of the group calls these in the same order.
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

/// The texts of all ranks, by rank.
std::vector<std::string> all_gather_texts(Communicator& group, const std::string& mine, CallTag tag = {Phase::setup});

/// The numbers of all ranks, by rank. All pass equally many.
std::vector<std::int64_t> all_gather_numbers(Communicator& group, std::span<const std::int64_t> mine,
                                             CallTag tag = {Phase::setup});
std::vector<std::int64_t> all_gather_number(Communicator& group, std::int64_t mine, CallTag tag = {Phase::setup});

}  // namespace zero
