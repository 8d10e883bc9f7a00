#include "zero/train/records/step_trace.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/files/make_folder.h"
#include "base/log.h"
#include "comm/object_collectives.h"
#include "zero/output/record_names.h"
#include "zero/train/records/trace_text.h"

namespace zero {
namespace {

constexpr std::size_t piece_bytes = 256 << 10;
constexpr CallTag trace_tag{Phase::other};

void send_number(Communicator& ranks, std::int64_t number, int to) {
  ranks.send(at::full({1}, number, at::kLong), to, trace_tag);
  ranks.settle(trace_tag);
}

std::int64_t receive_number(Communicator& ranks, int from) {
  const at::Tensor number = at::empty({1}, at::kLong);
  ranks.recv(number, from, trace_tag);
  return number.item<std::int64_t>();
}

void send_text(Communicator& ranks, const std::string& words) {
  send_number(ranks, std::int64_t(words.size()), 0);
  if (words.empty()) return;
  const at::Tensor bytes = at::empty({std::int64_t(words.size())}, at::kByte);
  std::memcpy(bytes.data_ptr(), words.data(), words.size());
  ranks.send(bytes, 0, trace_tag);
  ranks.settle(trace_tag);
}

std::string receive_text(Communicator& ranks, int from) {
  std::string words(std::size_t(receive_number(ranks, from)), '\0');
  if (words.empty()) return words;
  const at::Tensor bytes = at::empty({std::int64_t(words.size())}, at::kByte);
  ranks.recv(bytes, from, trace_tag);
  std::memcpy(words.data(), bytes.const_data_ptr(), words.size());
  return words;
}

/// Calls `take` with the events of a step in pieces.
template <class Take>
void in_pieces(int rank, std::int64_t step, const ActivityClock& clock, std::int64_t shift, const Take& take) {
  const std::vector<TimeSlice>& slices = clock.slices();
  if (slices.empty()) return;
  std::string piece = step_event(rank, step, {slices.front().begin, slices.back().end, {}}, shift);
  for (const TimeSlice& slice : slices) {
    piece += (piece.empty() ? "" : ",\n") + slice_event(rank, slice, shift);
    if (piece.size() < piece_bytes) continue;
    take(piece);
    piece.clear();
  }
  if (!piece.empty()) take(piece);
}

}  // namespace

// A message's way there and back bounds the error, so clocks that differ by less count as one.
std::int64_t clock_shift(Communicator& ranks) {
  constexpr int rounds = 5;
  std::int64_t shift = 0, shortest = INT64_MAX;
  for (int r = 1; r < ranks.size(); ++r)
    for (int round = 0; round < rounds; ++round) {
      if (ranks.rank() == 0) {
        receive_number(ranks, r);
        send_number(ranks, monotonic_nanoseconds(), r);
      }
      if (ranks.rank() != r) continue;
      const std::int64_t begin = monotonic_nanoseconds();
      send_number(ranks, 0, 0);
      const std::int64_t there = receive_number(ranks, 0), end = monotonic_nanoseconds();
      if (end - begin >= shortest) continue;
      shortest = end - begin;
      shift = there - (begin + (end - begin) / 2);
    }
  return std::abs(shift) <= shortest / 2 ? 0 : shift;
}

StepTrace::StepTrace(std::string folder, Communicator& ranks, std::shared_ptr<FileCalls> calls)
    : folder_(std::move(folder)), ranks_(ranks), calls_(std::move(calls)) {}

StepTrace::~StepTrace() { close(); }

template <class Work>
void StepTrace::attempt(const Work& work) {
  if (ranks_.rank() != 0 || failed_) return;
  try {
    work();
  } catch (const Error& error) {
    failed_ = true;
    file_.reset();
    log_warning("the trace of steps cannot be written: ", error.what(), "; training goes on without it");
  }
}

void StepTrace::begin(std::int64_t step, std::int64_t origin) {
  begun_ = true;
  const std::vector<std::int64_t> begins = all_gather_number(ranks_, origin, trace_tag);
  origin_ = *std::min_element(begins.begin(), begins.end());
  attempt([&] {
    make_folder(*calls_, folder_);
    path_ = folder_ + "/" + trace_file_name(step);
    file_ = std::make_unique<NewFile>(path_, 0644, calls_);
    file_->append(trace_begin, std::int64_t(std::strlen(trace_begin)));
    for (int r = 0; r < ranks_.size(); ++r) write(track_names(r));
  });
}

void StepTrace::add(std::int64_t step, const ActivityClock& clock) {
  if (clock.slices().empty()) return;
  const std::int64_t shift = clock_shift(ranks_);
  if (!begun_) begin(step, clock.slices().front().begin + shift);
  const std::int64_t left_out = [&] {
    const std::vector<std::int64_t> all = all_gather_number(ranks_, clock.left_out(), trace_tag);
    return *std::max_element(all.begin(), all.end());
  }();
  if (left_out > 0 && ranks_.rank() == 0)
    log_warning("the trace of step ", step, " holds the first ", most_slices, " slices of a rank and lacks up to ",
                left_out, " more: trace a run with fewer micro-batches");
  if (ranks_.rank() == 0)
    attempt([&] { in_pieces(0, step, clock, shift - origin_, [&](const std::string& piece) { write(piece); }); });
  for (int r = 1; r < ranks_.size(); ++r) {
    if (ranks_.rank() == 0) receive(r);
    if (ranks_.rank() != r) continue;
    in_pieces(r, step, clock, shift - origin_, [&](const std::string& piece) { send_text(ranks_, piece); });
    send_text(ranks_, "");
  }
}

void StepTrace::receive(int rank) {
  for (std::string piece; !(piece = receive_text(ranks_, rank)).empty();) attempt([&] { write(piece); });
}

void StepTrace::write(const std::string& events) {
  const std::string more = (std::exchange(some_, true) ? ",\n" : "") + events;
  file_->append(more.data(), std::int64_t(more.size()));
}

void StepTrace::close() {
  if (!file_) return;
  attempt([&] {
    file_->append(trace_end, std::int64_t(std::strlen(trace_end)));
    file_->publish();
    file_.reset();
    log_info("the trace of steps is in ", path_, ": open it in ui.perfetto.dev");
  });
}

}  // namespace zero
