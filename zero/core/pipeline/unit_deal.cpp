#include "zero/core/pipeline/unit_deal.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

std::int64_t matrix_elements(const Parameter& parameter) {
  std::int64_t elements = 0;
  for (const TensorSpec& part : parameter.parts)
    if (part.shape.size() > 1) elements += part.full().numel();
  return elements;
}

/// The work of the run with the most, then how evenly the other units are distributed.
using Balance = std::pair<double, double>;

/// The best way to distribute the first n blocks.
struct Deal {
  Balance balance{std::numeric_limits<double>::infinity(), 0};
  int begin = 0;  // of its last run
};

}  // namespace

std::vector<std::int64_t> costs_of(const Chain& chain) {
  std::vector<std::int64_t> costs;
  for (Unit* unit : chain) {
    std::int64_t cost = 0;
    for (const Parameter& parameter : unit->parameters()) cost += matrix_elements(parameter);
    for (const BorrowedParameter& borrowed : unit->borrowed())
      cost += matrix_elements(chain[std::size_t(borrowed.owner_unit)]->parameters()[borrowed.owner_parameter]);
    costs.push_back(costs.empty() ? 0 : cost);
  }
  return costs;
}

bool has_tied_ends(const Chain& chain) { return !chain.back()->borrowed().empty(); }

// Dynamic programming over runs and blocks.
std::vector<UnitRun> deal_units(const std::vector<std::int64_t>& costs, bool tied, int stages, int chunks) {
  const int blocks = int(costs.size()) - 2, runs = stages * chunks;
  if (runs > blocks)
    throw InputError(text(stages, " stages", chunks > 1 ? text(" x ", chunks, " chunks") : "", " are more than the ",
                          blocks, " blocks of the model"));
  const double head = double(costs.back());
  std::vector<double> before(std::size_t(blocks) + 1);
  for (int b = 0; b < blocks; ++b)
    before[std::size_t(b) + 1] = before[std::size_t(b)] + double(costs[std::size_t(b) + 1]);
  // The first run has the first unit, and the last one the head, so they need no block.
  const auto may_be_empty = [&](int run) { return run == 0 || (run + 1 == runs && !tied); };
  const auto load = [&](int run, int begin, int end) {
    const bool has_head = tied ? run == 0 : run + 1 == runs;
    return before[std::size_t(end)] - before[std::size_t(begin)] + (has_head ? head : 0);
  };
  std::vector<std::vector<Deal>> best(std::size_t(runs), std::vector<Deal>(std::size_t(blocks) + 1));
  for (int run = 0; run < runs; ++run)
    for (int end = 0; end <= blocks; ++end)
      for (int begin = 0; begin <= (run == 0 ? 0 : end); ++begin) {
        if (begin == end && !may_be_empty(run)) continue;
        const Balance earlier = run == 0 ? Balance() : best[std::size_t(run) - 1][std::size_t(begin)].balance;
        const double own = load(run, begin, end);
        const Balance balance{std::max(earlier.first, own), earlier.second + own * own};
        Deal& known = best[std::size_t(run)][std::size_t(end)];
        if (balance < known.balance) known = {balance, begin};
      }
  std::vector<UnitRun> dealt;
  dealt.resize(std::size_t(runs));
  for (int run = runs - 1, end = blocks; run >= 0; --run) {
    const int begin = best[std::size_t(run)][std::size_t(end)].begin;
    dealt[std::size_t(run)] = {begin + 1, end + 1, run % stages};
    end = begin;
  }
  dealt.front().begin = 0;
  if (tied)
    dealt.push_back({blocks + 1, blocks + 2, 0});
  else
    dealt.back().end = blocks + 2;
  return dealt;
}

}  // namespace zero
