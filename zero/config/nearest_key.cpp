#include "zero/config/nearest_key.h"

#include <algorithm>

namespace zero {

int edit_distance(const std::string& a, const std::string& b) {
  const std::size_t rows = a.size() + 1, columns = b.size() + 1;
  std::vector<std::vector<int>> cost(rows, std::vector<int>(columns));
  for (std::size_t i = 0; i < rows; ++i) cost[i][0] = static_cast<int>(i);
  for (std::size_t j = 0; j < columns; ++j) cost[0][j] = static_cast<int>(j);
  for (std::size_t i = 1; i < rows; ++i)
    for (std::size_t j = 1; j < columns; ++j) {
      const int replace = cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  return cost[a.size()][b.size()];
}

std::string nearest_key(const std::string& word, const std::vector<std::string>& known) {
  if (word.size() > 100) return "";  // the algorithm is quadratic, and no key is this long
  std::string best;
  int best_distance = 0;
  for (const std::string& candidate : known) {
    const int distance = edit_distance(word, candidate);
    if (best.empty() || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return 2 * best_distance > static_cast<int>(best.size()) ? "" : best;
}

std::string choice_among(const std::string& word, const std::vector<std::string>& known) {
  const std::string near = nearest_key(word, known);
  std::string all;
  for (const std::string& name : known) all += (all.empty() ? "" : ", ") + name;
  return (near.empty() ? "" : "; the nearest is " + near) + "; known are " + all;
}

}  // namespace zero
