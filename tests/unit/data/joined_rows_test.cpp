// Several sources as one: rows keep their values, and numbers go from source to source.
#include "zero/data/rows/joined_rows.h"

#include <gmock/gmock.h>

namespace zero {
namespace joined_rows_test {

using ::testing::ElementsAre;

struct Tens : RowSource {
  Tens(std::int64_t ten, std::int64_t rows) : ten(ten), rows(rows) {}
  std::int64_t size() const override { return rows; }
  Row row(std::int64_t index) const override {
    Row row;
    row.ids = {ten + index};
    return row;
  }
  std::int64_t trained_tokens(std::int64_t index) const override { return ten + index + 100; }
  std::int64_t first_trained(std::int64_t index) const override { return ten + index + 200; }
  std::int64_t length(std::int64_t index) const override { return ten + index + 300; }
  std::vector<std::string> named_tensors() const override { return {"name"}; }
  std::string describe() const override { return "tens of " + std::to_string(ten); }
  std::string warning() const override { return ten == 20 ? "few" : ""; }
  std::int64_t ten, rows;
};

TEST(JoinedRows, FollowEachOther) {
  const JoinedRows rows({std::make_shared<Tens>(10, 2), std::make_shared<Tens>(20, 1), std::make_shared<Tens>(30, 3)});
  ASSERT_EQ(rows.size(), 6);
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    ids.push_back(rows.row(i).ids.front());
    EXPECT_EQ(rows.trained_tokens(i), ids.back() + 100);
    EXPECT_EQ(rows.first_trained(i), ids.back() + 200);
    EXPECT_EQ(rows.length(i), ids.back() + 300);
  }
  EXPECT_THAT(ids, ElementsAre(10, 11, 20, 30, 31, 32));
  EXPECT_THAT(rows.named_tensors(), ElementsAre("name"));
  EXPECT_EQ(rows.describe(), "tens of 10; tens of 20; tens of 30");
  EXPECT_EQ(rows.warning(), "few");
}

TEST(JoinedRows, OneSourceStaysItself) {
  const auto one = std::make_shared<Tens>(10, 2);
  EXPECT_EQ(joined({one}), one);
}

}  // namespace joined_rows_test
}  // namespace zero
