#include "zero/core/shard_plan.h"

#include "base/error.h"

namespace zero {
namespace {

const char* name_of(Placement placement) { return placement == Placement::sharded ? "sharded" : "resident"; }

}  // namespace

ShardPlan ShardPlan::for_stage(int stage) {
  constexpr auto r = Placement::resident, s = Placement::sharded;
  switch (stage) {
    case 0:
      return {r, r, r};
    case 1:
      return {r, r, s};
    case 2:
      return {r, s, s};
    case 3:
      return {s, s, s};
  }
  throw InputError("zero.stage = " + std::to_string(stage) + ": there are stages 0, 1, 2 and 3");
}

int ShardPlan::stage() const {
  const bool p = parameters == Placement::sharded, g = gradients == Placement::sharded,
             o = optimizer == Placement::sharded;
  if ((p && !g) || (g && !o))
    throw InputError("no ZeRO stage has " + describe() +
                     ": what is sharded earlier in (optimizer, gradients, parameters) may not be resident later");
  return int(p) + int(g) + int(o);
}

std::string ShardPlan::describe() const {
  return std::string("parameters ") + name_of(parameters) + ", gradients " + name_of(gradients) + ", optimizer state " +
         name_of(optimizer);
}

}  // namespace zero
