#pragma once
// The text of a trace: slices of time as events of the Trace Event Format, which ui.perfetto.dev and chrome://tracing
// open. Source of the format: "Trace Event Format", the document of the Chromium project ("X" and "M" events).
#include <cstdint>
#include <string>

#include "base/activity_clock.h"

namespace zero {

/// The tracks of a rank. Every moment of a step is on one of the tracks after `steps`.
enum class Track : std::uint8_t { steps, compute, communication, disk };
Track track_of(Activity activity);

inline constexpr const char* trace_begin = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
inline constexpr const char* trace_end = "\n]}\n";

/// The events that name a rank and its tracks. Events are separated by ",\n".
std::string track_names(int rank);

/// The slice's times come from another clock, so `shift` nanoseconds are added to them.
std::string slice_event(int rank, const TimeSlice& slice, std::int64_t shift);
/// A whole step, from 1.
std::string step_event(int rank, std::int64_t step, const TimeSlice& slice, std::int64_t shift);

}  // namespace zero
