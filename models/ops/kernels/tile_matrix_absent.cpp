// For processors other than x86-64.
#include "models/ops/kernels/tile_matrix.h"

namespace zero::kernels {

bool has_tile_products() { return false; }
std::size_t tile_workspace_bytes(const TileProduct&) { return 0; }
void tile_multiply(const TileProduct&, void*) {}

}  // namespace zero::kernels
