#include "comm/call_record.h"

#include <cctype>
#include <sstream>

namespace zero {

const char* name_of(Phase phase) {
  switch (phase) {
    case Phase::setup:
      return "setup";
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::reduce:
      return "reduce";
    case Phase::optimizer:
      return "optimizer";
    case Phase::gather_updated:
      return "gather_updated";
    case Phase::activations:
      return "activations";
    case Phase::validate:
      return "validate";
    case Phase::save:
      return "save";
    case Phase::load:
      return "load";
    case Phase::on_main:
      return "on_main";
    case Phase::other:
      return "other";
  }
  return "unknown";
}

const char* name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_gather:
      return "all_gather";
    case CollectiveKind::reduce_scatter:
      return "reduce_scatter";
    case CollectiveKind::all_reduce:
      return "all_reduce";
    case CollectiveKind::broadcast:
      return "broadcast";
    case CollectiveKind::all_to_all:
      return "all_to_all";
    case CollectiveKind::send:
      return "send";
    case CollectiveKind::recv:
      return "recv";
    case CollectiveKind::settle:
      return "settle";
    case CollectiveKind::barrier:
      return "barrier";
    case CollectiveKind::split:
      return "split";
  }
  return "unknown";
}

namespace {

/// The user's call that causes the phase. A module's name follows it.
std::string call_on(Phase phase, const std::string& name) {
  switch (phase) {
    case Phase::other:
      return name;
    case Phase::reduce:
      return "backward of " + name;
    case Phase::setup:
      return "sharding of " + name;
    case Phase::gather_updated:
      return "step of " + name;
    default:
      return std::string(name_of(phase)) + " of " + name;
  }
}

}  // namespace

UnitName::UnitName(std::string_view name) {
  constexpr std::string_view left_out = "...";
  constexpr std::size_t room = sizeof text_ - 1;
  if (name.size() <= room) {
    name.copy(text_, room);
    return;
  }
  left_out.copy(text_, left_out.size());
  const std::size_t kept = room - left_out.size();
  name.substr(name.size() - kept).copy(text_ + left_out.size(), kept);
}

std::string CallRecord::type_name() const {
  std::string name = at::toString(type);
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

std::string CallRecord::describe() const {
  std::ostringstream out;
  out << '#' << sequence << ' ' << name_of(kind);
  if (has_data()) out << " of " << numel << ' ' << type_name();
  if (kind == CollectiveKind::broadcast || kind == CollectiveKind::recv) out << " from rank " << peer;
  if (kind == CollectiveKind::send) out << " to rank " << peer;
  if (!name.empty()) {
    out << " (" << call_on(tag.phase, std::string(name.view())) << ')';
    return out.str();
  }
  out << " (" << name_of(tag.phase);
  if (tag.unit >= 0) out << ", unit " << tag.unit;
  if (tag.group >= 0) out << ", group " << tag.group;
  out << ')';
  return out.str();
}

bool is_same_call(const CallRecord& a, const CallRecord& b) {
  const bool same_numel = a.numel == b.numel || a.kind == CollectiveKind::all_to_all;
  return a.kind == b.kind && same_numel && a.type == b.type && a.peer == b.peer && a.tag == b.tag;
}

std::string describe_mismatch(const std::string& rank, const std::string& call, const std::string& other_rank,
                              const std::string& other_call) {
  std::ostringstream out;
  out << "mismatch of collectives: " << rank << " called " << call << ", but " << other_rank << " called " << other_call
      << ": all ranks make the same calls in the same order, and none is inside what one rank alone does";
  return out.str();
}

}  // namespace zero
