#pragma once
// CallRecord: one call of a communicator, as seen by backends, logs, failure reports and tests.
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace zero {

/// The part of a training run that issues a call.
enum class Phase : std::uint8_t {
  setup,
  forward,
  backward,
  reduce,
  optimizer,
  gather_updated,
  activations,  // between the ranks of the tensor axis
  validate,
  save,
  load,
  on_main,  // before rank 0 works alone
  other
};
const char* name_of(Phase phase);

/// The purpose of a call. It travels with the call into logs, desync reports, traces and fault plans.
struct CallTag {
  Phase phase = Phase::other;
  int unit = -1;   // index in the chain, or a number from CallNames; -1 if none
  int group = -1;  // index of the parameter group; -1 if none

  bool operator==(const CallTag&) const = default;
};

/// A unit's name as text of a fixed size, for records that other processes read. A name that is too long loses its
/// beginning.
class UnitName {
 public:
  UnitName() = default;
  explicit UnitName(std::string_view name);
  std::string_view view() const { return text_; }
  bool empty() const { return text_[0] == 0; }

 private:
  char text_[80] = {};  // ends with a zero
};

enum class CollectiveKind : std::uint8_t {
  all_gather,
  reduce_scatter,
  all_reduce,
  broadcast,
  all_to_all,
  send,
  recv,
  settle,
  barrier,
  split
};
const char* name_of(CollectiveKind kind);

/// One call as a backend sees it.
struct CallRecord {
  std::uint64_t sequence = 0;  // counts the calls on this communicator from 0
  CollectiveKind kind = CollectiveKind::barrier;
  std::int64_t numel = 0;           // of the full vector: size x shard for all_gather and reduce_scatter; all_to_all:
                                    // the elements that this rank sends, also to itself
  at::ScalarType type = at::kByte;  // of the data sent
  int peer = -1;                    // root of a broadcast, or the other rank of a send or recv
  CallTag tag;
  UnitName name;  // of tag.unit in the communicator's CallNames; if empty, messages use the number

  bool has_data() const { return kind != CollectiveKind::barrier && kind != CollectiveKind::split; }
  std::string type_name() const;  // "bfloat16"
  /// Formats one line: "#12 reduce_scatter of 589824 bfloat16 (backward, unit 3, group 3)". If the unit has a name, the
  /// parentheses hold "(backward of encoder.layers.3)", or "(world.sum())" if the call has no phase.
  std::string describe() const;
};

/// True if the calls of two ranks of a group match. Their tags must match too, since calls of different phases, units
/// or parameter groups may otherwise look the same. In an all_to_all the ranks may send different numbers of elements.
bool is_same_call(const CallRecord& a, const CallRecord& b);

/// The message for calls that do not match. It describes each rank's call and says that all ranks must issue the same
/// calls. `rank` and `other_rank` are the ranks' names in messages.
std::string describe_mismatch(const std::string& rank, const std::string& call, const std::string& other_rank,
                              const std::string& other_call);

}  // namespace zero
