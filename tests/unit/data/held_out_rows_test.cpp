// Rows that are held out for validation: each row is on one side, evenly over the source.
#include "zero/data/rows/held_out_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace zero {
namespace held_out_rows_test {

struct Counted : RowSource {
  explicit Counted(std::int64_t rows) : rows(rows) {}
  std::int64_t size() const override { return rows; }
  Row row(std::int64_t index) const override {
    Row row;
    row.ids = {index};
    return row;
  }
  std::int64_t trained_tokens(std::int64_t index) const override { return index; }
  std::int64_t length(std::int64_t index) const override { return index; }
  std::string describe() const override { return "counted"; }
  std::int64_t rows;
};

TEST(HeldOutRows, DivideTheSourceEvenly) {
  for (const std::int64_t rows : {2, 3, 10, 97, 1000})
    for (const std::int64_t held : {1, 2, 7, 50, 499}) {
      if (held >= rows) continue;
      const auto source = std::make_shared<Counted>(rows);
      const HeldOutRows training(source, held, HeldOutRows::Side::training);
      const HeldOutRows validation(source, held, HeldOutRows::Side::validation);
      ASSERT_EQ(training.size(), rows - held);
      ASSERT_EQ(validation.size(), held);
      std::vector<std::int64_t> all;
      for (const HeldOutRows* side : {&training, &validation})
        for (std::int64_t i = 0; i < side->size(); ++i) {
          all.push_back(side->row(i).ids.front());
          EXPECT_EQ(side->length(i), all.back());
          EXPECT_EQ(side->trained_tokens(i), all.back());
          if (i > 0) EXPECT_LT(side->place(i - 1), side->place(i));
        }
      std::sort(all.begin(), all.end());
      for (std::int64_t i = 0; i < rows; ++i) ASSERT_EQ(all[std::size_t(i)], i) << rows << " " << held;
      for (std::int64_t i = 0; i < held; ++i) {  // one in each of as many equal parts
        EXPECT_GE(validation.place(i), i * rows / held) << rows << " " << held;
        EXPECT_LT(validation.place(i), (i + 1) * rows / held) << rows << " " << held;
      }
    }
}

TEST(HeldOutRows, CountBeyond32Bits) {
  const std::int64_t rows = std::int64_t{1} << 42, held = rows / 20;
  const auto source = std::make_shared<Counted>(rows);
  const HeldOutRows training(source, held, HeldOutRows::Side::training);
  EXPECT_GE(training.place(training.size() - 1), rows - 2);
  EXPECT_LT(training.place(training.size() - 1), rows);
  EXPECT_GT(training.place(training.size() / 2), rows / 2 - 100);
  EXPECT_LT(training.place(training.size() / 2), rows / 2 + 100);
}

}  // namespace held_out_rows_test
}  // namespace zero
