#include "zero/data/rows/packing.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/log.h"

namespace zero {

std::vector<std::vector<std::int64_t>> pack(const std::vector<std::int64_t>& lengths, std::int64_t capacity) {
  std::vector<std::int64_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return lengths[a] > lengths[b]; });
  std::vector<std::vector<std::int64_t>> rows;
  std::multimap<std::int64_t, std::size_t> room;  // free space of a row -> the row; equal keys in insertion order
  for (const std::int64_t document : order) {
    const std::int64_t length = lengths[document];
    ZERO_CHECK(length <= capacity, text("a document of ", length, " for rows of ", capacity));
    const auto found = room.lower_bound(length);
    const bool fits = found != room.end();
    const std::size_t row = fits ? found->second : rows.size();
    const std::int64_t left = (fits ? found->first : capacity) - length;
    if (fits)
      room.erase(found);
    else
      rows.emplace_back();
    rows[row].push_back(document);
    room.emplace(left, row);
  }
  for (std::vector<std::int64_t>& row : rows) std::sort(row.begin(), row.end());
  std::sort(rows.begin(), rows.end());
  return rows;
}

}  // namespace zero
