#pragma once
// Records of TensorBoard's event files. A file is a sequence of TFRecords, and each holds an Event of Protocol Buffers.
//
// Sources: TensorFlow's core/lib/io/record_writer.h (record: length, masked CRC-32C of it, data, masked CRC-32C of
// them), core/util/event.proto (Event, SessionLog), core/framework/summary.proto (Summary), and tensor.proto there
// (TensorProto). The wire format is that of protobuf.dev/programming-guides/encoding.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zero {

/// The first record of every file: its version.
std::string version_record(double time);

/// The beginning of a session: readers drop the records of `step` and later steps in earlier files.
std::string session_record(double time, std::int64_t step);

/// A table of texts for TensorBoard's text plugin, which renders each cell as Markdown.
struct TextTable {
  std::string tag;
  std::size_t columns = 1;
  std::vector<std::string> cells;  // row by row
};

/// The scalars of a step by their tags, stored in fp32 as readers expect them, and a table of texts. A table without
/// cells is left out. `time`: Unix time in seconds.
std::string summary_record(double time, std::int64_t step, const std::vector<std::pair<std::string, double>>& scalars,
                           const TextTable& texts = {});

/// The part of an event that later files depend on.
struct EventHead {
  std::int64_t step = 0;
  bool begins_session = false;
};

/// Removes the first record from `bytes`, the rest of a file, and returns it. Returns none at the end, and if the
/// record is torn or damaged.
std::optional<EventHead> take_record(std::string_view& bytes);

}  // namespace zero
