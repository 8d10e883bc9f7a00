#pragma once
// The names of a run's records in its directory. Other files in tb/ and trackio/, which are for dashboards, belong to
// someone else.
#include <cstdint>
#include <optional>
#include <string>

namespace zero {

/// The log-probabilities of a reference model (zero/train/reference.h).
inline constexpr const char* reference_file = "reference.safetensors";

/// The name of an event file for TensorBoard, which reads them in the order of their names. `time`: Unix time in
/// seconds.
std::string event_file_name(std::int64_t time, const std::string& host);
/// The time in such a name; none for another name.
std::optional<std::int64_t> event_file_time(const std::string& name);

/// trace_file_name(): the name of the trace that begins with a step, in trace/ of a run's directory. is_trace_file():
/// true for such a name.
std::string trace_file_name(std::int64_t first_step);
bool is_trace_file(const std::string& name);

/// True for a project's database and the files that SQLite keeps next to it.
bool is_database_file(const std::string& name);

}  // namespace zero
