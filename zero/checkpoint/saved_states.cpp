#include "zero/checkpoint/saved_states.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/log.h"

namespace zero {

SavedStates::SavedStates(FileCalls& calls, const std::string& folder)
    : calls_(calls), folder_(folder), manifest_(read_manifest(calls, folder)), extents_(manifest_.groups.size()) {
  for (int g = 0; g < int(manifest_.groups.size()); ++g)
    for (const FlatTensor& tensor : manifest_.groups[g].tensors)
      places_[tensor.spec.name] = {g, tensor.offset, tensor.spec.shape};
  for (int f = 0; f < int(manifest_.files.size()); ++f)
    for (int s = 0; s < int(manifest_.files[f].sections.size()); ++s) {
      const ShardSection& section = manifest_.files[f].sections[s];
      if (section.count > 0) extents_[section.group].push_back({section.begin, section.begin + section.count, f, s});
    }
  for (auto& extents : extents_)
    std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
}

std::vector<TensorSpec> SavedStates::tensors() const {
  std::vector<TensorSpec> all;
  for (const SavedGroup& group : manifest_.groups)
    for (const FlatTensor& tensor : group.tensors) all.push_back(tensor.spec);
  return all;
}

ShardReader& SavedStates::reader(int file) {
  if (file != open_file_) {
    const SavedFile& saved = manifest_.files[file];
    reader_.reset();
    open_file_ = -1;
    reader_ = std::make_unique<ShardReader>(
        calls_, folder_ + "/" + saved.name,
        ShardFormat(saved.sections, manifest_.chunk_elements, manifest_.element_bytes), saved.mark);
    open_file_ = file;
  }
  return *reader_;
}

const SavedStates::Extent& SavedStates::extent_of(int group, std::int64_t element) const {
  const auto& extents = extents_[group];
  const auto behind = std::upper_bound(extents.begin(), extents.end(), element,
                                       [](std::int64_t e, const Extent& x) { return e < x.begin; });
  if (behind == extents.begin() || (behind - 1)->end <= element)
    throw Error(text(folder_, ": no file holds element ", element, " of group ", group));
  return *(behind - 1);
}

void SavedStates::read(const std::string& name, std::int64_t begin, std::int64_t count, const StateSpan& to) {
  const auto found = places_.find(name);
  if (found == places_.end()) throw Error(folder_ + ": holds no " + name);
  const Place& place = found->second;
  const std::int64_t first = place.offset + begin;
  for (std::int64_t done = 0; done < count;) {
    const Extent& extent = extent_of(place.group, first + done);
    const std::int64_t n = std::min(count - done, extent.end - first - done);
    const auto at = [&](void* states) {
      return states ? static_cast<std::byte*>(states) + done * manifest_.element_bytes : nullptr;
    };
    reader(extent.file).read(extent.section, first + done, n, {at(to.master), at(to.m), at(to.v)});
    done += n;
  }
}

void SavedStates::verify() {
  for (int f = 0; f < int(manifest_.files.size()); ++f) reader(f).verify();
}

void check_same_tensors(const SavedStates& saved, const Engine& engine) {
  std::map<std::string, std::vector<std::int64_t>> stored;
  for (const TensorSpec& spec : saved.tensors()) stored[spec.name] = spec.shape;
  for (const auto& group : engine.groups()) {
    if (!group->spec().trainable) continue;
    for (const FlatTensor& tensor : group->layout().tensors()) {
      const auto found = stored.find(tensor.spec.name);
      if (found == stored.end())
        throw InputError(saved.folder() + ": does not hold " + tensor.spec.name +
                         ", which this run trains: it is of another model");
      if (found->second != tensor.spec.shape)
        throw InputError(saved.folder() + ": " + tensor.spec.name + " has another shape there: it is of another model");
      stored.erase(found);
    }
  }
  if (!stored.empty())
    throw InputError(saved.folder() + ": holds " + stored.begin()->first +
                     ", which this run does not train: it is of another model");
}

void restore_states(SavedStates& saved, Engine& engine) {
  const std::int64_t width = saved.manifest().element_bytes;
  ZERO_CHECK(width == std::int64_t(c10::elementSize(engine.options().precision.master)), "states of another type");
  for (const auto& group : engine.groups()) {
    if (!group->spec().trainable) continue;
    group->visit_states(StateAccess::write, [&](const StateChunk& chunk) {
      void* const states[] = {chunk.master, chunk.m, chunk.v};
      const auto at = [&](int s, std::int64_t element) { return static_cast<std::byte*>(states[s]) + element * width; };
      std::int64_t end = 0;  // what lies between the slices is padding
      const auto clear_until = [&](std::int64_t begin) {
        for (int s = 0; s < 3; ++s) std::memset(at(s, end), 0, static_cast<std::size_t>((begin - end) * width));
      };
      for (const FlatSlice& slice : group->layout().slices(group->own_begin() + chunk.begin, chunk.end - chunk.begin)) {
        clear_until(slice.range_begin);
        saved.read(group->layout().tensors()[slice.tensor].spec.name, slice.tensor_begin, slice.count,
                   {at(0, slice.range_begin), at(1, slice.range_begin), at(2, slice.range_begin)});
        end = slice.range_begin + slice.count;
      }
      clear_until(chunk.end - chunk.begin);
    });
  }
}

}  // namespace zero
