#pragma once
// BufferSizes: the buffers that an engine needs for weights being gathered and gradients being reduced. Integers only.
#include <cstdint>
#include <vector>

#include "zero/core/buffers/flat_layout.h"
#include "zero/core/group_plan.h"

namespace zero {

struct BufferOptions {
  std::int64_t element_bytes = 2;  // of the compute type
  bool keep_frozen = false;        // frozen weights are never gathered
  bool overlap = false;            // the next unit's weights and the last one's gradients beside the present ones
  bool quantize_frozen = false;    // frozen blocks are held in NF4 and come and go at every stage
  bool parameters_sharded = true;
  bool quantize_scales = false;  // of the NF4 blocks
};

/// Bytes of each buffer. Those for gathering exist where weights come and go, those for reducing where gradients are
/// sharded.
struct BufferSizes {
  std::vector<std::int64_t> gather, reduce;
};

/// At any moment one unit is open and perhaps the next one on its way, beside it the groups that it borrows from and
/// those that span the model. `layouts` are those of `specs`.
BufferSizes buffer_sizes(const Chain& chain, const std::vector<GroupSpec>& specs,
                         const std::vector<FlatLayout>& layouts, const BufferOptions& options);

}  // namespace zero
