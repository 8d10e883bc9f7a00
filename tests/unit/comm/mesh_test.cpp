#include "comm/mesh/mesh.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "comm/decorators/forwarding_communicator.h"
#include "comm/fake/fake_communicator.h"
#include "comm/sim/sim_world.h"

namespace zero {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr MeshAxis each[] = {MeshAxis::pipeline, MeshAxis::replicate, MeshAxis::shard, MeshAxis::context,
                             MeshAxis::tensor};

std::vector<AxisSet> all_sets() {
  std::vector<AxisSet> sets;
  for (int bits = 0; bits < 1 << mesh_axes; ++bits) {
    AxisSet set;
    for (int a = 0; a < mesh_axes; ++a)
      if (bits >> a & 1) set = set | each[a];
    sets.push_back(set);
  }
  return sets;
}

std::vector<int> members_of(const MeshShape& shape, int rank, AxisSet along) {
  std::vector<int> members;
  for (int i = 0; i < shape.size(along); ++i) members.push_back(shape.rank_at(rank, along, i));
  return members;
}

TEST(AxisSet, KnowsItsAxesAndTheOthers) {
  constexpr AxisSet set{MeshAxis::shard, MeshAxis::tensor};
  EXPECT_TRUE(set.has(MeshAxis::shard) && set.has(MeshAxis::tensor) && !set.has(MeshAxis::context));
  EXPECT_EQ(set | set.others(), axes::all);
  EXPECT_EQ(axes::tokens | axes::model, axes::all);
  EXPECT_EQ(axes::states | axes::replicas, axes::tokens);
}

// Neighbours in the order of ranks differ along the fastest axis.
TEST(MeshShape, PutsTensorNeighboursSideBySide) {
  const MeshShape shape{.pipeline = 2, .replicate = 1, .shard = 3, .context = 1, .tensor = 2};
  EXPECT_EQ(shape.ranks(), 12);
  EXPECT_THAT(members_of(shape, 4, MeshAxis::tensor), ElementsAre(4, 5));
  EXPECT_THAT(members_of(shape, 4, MeshAxis::shard), ElementsAre(0, 2, 4));
  EXPECT_THAT(members_of(shape, 4, MeshAxis::pipeline), ElementsAre(4, 10));
  EXPECT_THAT(members_of(shape, 4, axes::rows), ElementsAre(0, 2, 4));
  EXPECT_THAT(members_of(shape, 7, axes::model), ElementsAre(0, 1, 6, 7));
  EXPECT_EQ(shape.describe(), "2 pipeline x 3 shard x 2 tensor");
  EXPECT_EQ(MeshShape().describe(), "1 rank");
  EXPECT_EQ(shape.only(axes::model), (MeshShape{.pipeline = 2, .tensor = 2}));
}

// Every set of axes splits the ranks into groups that all their members agree on.
TEST(MeshShape, PartsTheRanksAlongAnyAxes) {
  for (const MeshShape& shape : {MeshShape{2, 2, 3, 1, 2}, MeshShape{1, 3, 2, 2, 1}, MeshShape{1, 1, 1, 1, 1}})
    for (const AxisSet along : all_sets()) {
      std::set<std::vector<int>> groups;
      for (int rank = 0; rank < shape.ranks(); ++rank) {
        const std::vector<int> members = members_of(shape, rank, along);
        EXPECT_EQ(members[std::size_t(shape.index(rank, along))], rank);
        EXPECT_TRUE(std::is_sorted(members.begin(), members.end()));
        for (const int other : members) EXPECT_EQ(members_of(shape, other, along), members);
        EXPECT_EQ(shape.index(rank, along | along.others()), rank);
        groups.insert(members);
      }
      EXPECT_EQ(int(groups.size()) * shape.size(along), shape.ranks());
    }
}

TEST(MeshShape, PutsNeighboursIntoOneShardingGroup) {
  EXPECT_THAT(members_of(MeshShape::hybrid(8, 4), 5, axes::states), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(members_of(MeshShape::hybrid(8, 4), 5, axes::replicas), ElementsAre(1, 5));
  EXPECT_EQ(MeshShape::hybrid(8, 0), (MeshShape{.shard = 8}));
}

// The sum of ranks over each set of axes is that of the members, and a set that flattens several is one group.
TEST(Mesh, TalksAlongAnyAxes) {
  const MeshShape shape{.replicate = 2, .shard = 2, .tensor = 2};
  SimWorld(8).run([&](Communicator& ranks, int rank) {
    Mesh mesh(ranks, shape);
    for (const AxisSet along : all_sets()) {
      Communicator& group = mesh.along(along);
      ASSERT_EQ(group.size(), shape.size(along));
      EXPECT_EQ(group.rank(), mesh.index(along));
      const at::Tensor sum = at::full({3}, double(rank), at::kDouble);
      group.all_reduce(sum, {at::kDouble, false});
      double expected = 0;
      for (const int member : members_of(shape, rank, along)) expected += member;
      EXPECT_EQ(sum[0].item<double>(), expected);
    }
    const auto beside = mesh.another(axes::model);
    EXPECT_EQ(beside->size(), 2);
  });
}

TEST(Mesh, MakesNoGroupForOneRankOrForAll) {
  SimWorld world(2);
  world.run([](Communicator& ranks, int) {
    Mesh mesh(ranks);
    EXPECT_EQ(&mesh.along(axes::states), &ranks);
    EXPECT_EQ(&mesh.along(axes::all), &ranks);
    EXPECT_EQ(mesh.along(axes::replicas).size(), 1);
    EXPECT_EQ(mesh.another(axes::replicas), nullptr);
    Mesh rows(ranks, {.replicate = 2});
    EXPECT_EQ(&rows.along(axes::replicas), &rows.along(axes::rows));
    EXPECT_EQ(&mesh.along(axes::replicas), &mesh.along(axes::replicas));
  });
  EXPECT_TRUE(world.calls(0).empty());
}

class Registers final : public ForwardingCommunicator, private CollectiveMemory {
 public:
  explicit Registers(Communicator& inner) : ForwardingCommunicator(inner) {}
  CollectiveMemory& memory() override { return *this; }

 private:
  at::Tensor allocate(std::int64_t numel, at::ScalarType type) override { return at::empty({numel}, type); }
  void reserve(const std::vector<std::int64_t>&, std::int64_t) override {}
  std::int64_t own_device_bytes() const override { return 100; }
};

TEST(Mesh, CountsWhatItsCommunicatorsHold) {
  FakeCommunicator fake(0, 4);
  Registers ranks(fake);
  Mesh mesh(ranks, MeshShape::hybrid(4, 2));
  mesh.along(axes::all);
  mesh.along(axes::model);  // of one rank
  EXPECT_EQ(mesh.own_device_bytes(), 100);
}

TEST(Mesh, RefusesAShapeThatIsNotTheRanks) {
  FakeCommunicator ranks(0, 6);
  try {
    Mesh mesh(ranks, {.replicate = 2, .shard = 2});
    FAIL() << "no error";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("2 replicate x 2 shard has 4 places, and the job 6"));
  }
  EXPECT_THROW(Mesh(ranks, {.shard = 0}), InputError);
}

}  // namespace
}  // namespace zero
