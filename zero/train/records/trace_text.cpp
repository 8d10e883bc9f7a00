#include "zero/train/records/trace_text.h"

#include <cstdio>

#include "base/log.h"

namespace zero {
namespace {

constexpr int tracks = 4;
constexpr const char* track_words[tracks] = {"steps", "compute", "communication", "disk"};

// Perfetto takes process 0 and thread 0 for the system's idle one.
int process_of(int rank) { return rank + 1; }
int thread_of(int rank, Track track) { return rank * tracks + int(track) + 1; }

/// "12.345" microseconds, without rounding.
std::string microseconds(std::int64_t nanoseconds) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%lld.%03lld", static_cast<long long>(nanoseconds / 1000),
                static_cast<long long>(nanoseconds % 1000));
  return buffer;
}

std::string complete_event(int rank, Track track, const TimeSlice& slice, std::int64_t shift, const std::string& name,
                           const std::string& arguments) {
  return text(R"({"ph":"X","pid":)", process_of(rank), R"(,"tid":)", thread_of(rank, track), R"(,"ts":)",
              microseconds(slice.begin + shift), R"(,"dur":)", microseconds(slice.end - slice.begin), R"(,"name":")",
              name, R"(","cat":")", name_of(slice.doing.activity), R"(","args":{)", arguments, "}}");
}

std::string arguments_of(const Doing& doing) {
  std::string found;
  const auto add = [&](const char* name, const std::string& value) {
    found += text(found.empty() ? "" : ",", '"', name, "\":", value);
  };
  if (doing.phase) add("phase", text('"', doing.phase, '"'));
  if (doing.unit >= 0) add("unit", std::to_string(doing.unit));
  if (doing.bytes > 0) add("bytes", std::to_string(doing.bytes));
  return found;
}

std::string name_event(int rank, Track track, const char* kind, const std::string& name) {
  return text(R"({"ph":"M","pid":)", process_of(rank), R"(,"tid":)", thread_of(rank, track), R"(,"name":")", kind,
              R"(","args":{"name":")", name, R"("}})");
}

}  // namespace

Track track_of(Activity activity) {
  switch (activity) {
    case Activity::gathers:
    case Activity::sums:
    case Activity::ranks:
      return Track::communication;
    case Activity::disk:
      return Track::disk;
    default:
      return Track::compute;
  }
}

std::string track_names(int rank) {
  std::string events = name_event(rank, Track::steps, "process_name", text("rank ", rank));
  for (int track = 0; track < tracks; ++track)
    events += ",\n" + name_event(rank, Track(track), "thread_name", track_words[track]);
  return events;
}

std::string slice_event(int rank, const TimeSlice& slice, std::int64_t shift) {
  const Doing& doing = slice.doing;
  const bool waits = doing.activity == Activity::ranks && !doing.what;
  return complete_event(rank, track_of(doing.activity), slice, shift,
                        waits        ? "wait for ranks"
                        : doing.what ? doing.what
                                     : name_of(doing.activity),
                        arguments_of(doing));
}

std::string step_event(int rank, std::int64_t step, const TimeSlice& slice, std::int64_t shift) {
  return complete_event(rank, Track::steps, slice, shift, text("step ", step), "");
}

}  // namespace zero
