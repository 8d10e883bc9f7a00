#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <torch/data/transforms.h>

#include <set>

#include "base/error.h"
#include "examples/cpp/vision/cifar10.h"
#include "tests/unit/library/worlds.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"
#include "zero/library/include/zero/loader.h"

namespace zero {
namespace vision_test {

using namespace vision;

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Records whose byte b of pixel data is (7 record + b) mod 251.
std::string records(const std::vector<int>& labels) {
  std::string bytes;
  for (std::size_t r = 0; r < labels.size(); ++r) {
    bytes += char(labels[r]);
    for (std::size_t b = 0; b < 3072; ++b) bytes += char((7 * r + b) % 251);
  }
  return bytes;
}

class CifarFiles : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& bytes) { return folder_.write(name, bytes); }
  std::string path(const std::string& name) const { return folder_.path(name); }
  std::string folder() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

TEST_F(CifarFiles, AreReadPictureByPicture) {
  for (int number = 1; number <= 5; ++number)
    write("data_batch_" + std::to_string(number) + ".bin", records({number, 9}));
  write("test_batch.bin", records({3, 1, 4}));
  Cifar10 train(folder(), Cifar10::Part::train),
      test(folder(), Cifar10::Part::test, {.mean = {0, 0.5, 0}, .std = {1, 2, 1}});
  EXPECT_EQ(*train.size(), 10u);
  EXPECT_EQ(*test.size(), 3u);
  EXPECT_EQ(train.labels()[4].item<std::int64_t>(), 3);
  const auto example = test.get(2);
  EXPECT_EQ(example.target.item<std::int64_t>(), 4);
  EXPECT_EQ(example.data.sizes(), (std::vector<std::int64_t>{3, 32, 32}));
  // green, row 1, column 5 is byte 1024 + 32 + 5
  EXPECT_FLOAT_EQ(example.data[1][1][5].item<float>(), (float((14 + 1061) % 251) / 255 - 0.5f) / 2);
}

TEST_F(CifarFiles, ThatAreAbsentCutOffOrOfAnotherKindAreRefused) {
  const auto refusal = [&](const std::string& name, int classes = 10) {
    return message_of<InputError>([&] { Cifar10({path(name)}, {.classes = classes}); });
  };
  EXPECT_THAT(message_of<InputError>([&] { Cifar10(folder(), Cifar10::Part::train); }),
              AllOf(HasSubstr("data_batch_1.bin"), HasSubstr("cifar-10-binary.tar.gz")));
  write("cut.bin", records({1, 2}).substr(0, 6000));
  EXPECT_THAT(refusal("cut.bin"), AllOf(HasSubstr("cut.bin: 6000 bytes"), HasSubstr("3073")));
  write("empty.bin", "");
  EXPECT_THAT(refusal("empty.bin"), HasSubstr("0 bytes"));
  write("labels.bin", records({1, 2, 10, 3}));
  EXPECT_THAT(refusal("labels.bin"), AllOf(HasSubstr("record 2 (from 0) has the label 10"), HasSubstr("10 classes")));
  EXPECT_EQ(*Cifar10({path("labels.bin")}, {.classes = 11}).size(), 4u);
}

TEST(CropAndFlip, CutsAPartOfThePaddedPicture) {
  const at::Tensor picture = at::arange(1, 3 * 8 * 8 + 1).view({3, 8, 8});
  const at::Tensor padded = at::constant_pad_nd(picture, {2, 2, 2, 2});
  std::set<std::tuple<std::int64_t, std::int64_t, bool>> seen;
  for (std::size_t sample = 0; sample < 600; ++sample) {
    const at::Tensor cut = CropAndFlip{.padding = 2}(picture, 0, sample);
    for (std::int64_t top = 0; top <= 4; ++top)
      for (std::int64_t left = 0; left <= 4; ++left) {
        const at::Tensor part = padded.narrow(1, top, 8).narrow(2, left, 8);
        if (cut.equal(part)) seen.insert({top, left, false});
        if (cut.equal(part.flip(2))) seen.insert({top, left, true});
      }
    EXPECT_EQ(cut.sizes(), picture.sizes());
  }
  EXPECT_EQ(seen.size(), 50u);  // all there are, and each picture was one of them or fewer would be seen
  for (std::size_t sample = 0; sample < 50; ++sample)
    EXPECT_TRUE((CropAndFlip{.padding = 0, .flip = false}(picture, 0, sample).equal(picture)));
}

TEST(CropAndFlip, AlternatesFromADrawnStart) {
  const at::Tensor picture = at::arange(3 * 32 * 32).view({3, 32, 32});
  const CropAndFlip alternating{.padding = 0, .alternating = true};
  int flipped = 0;
  for (std::size_t sample = 0; sample < 100; ++sample) {
    const at::Tensor first = alternating(picture, 0, sample);
    flipped += first.equal(picture.flip(2));
    EXPECT_TRUE(alternating(picture, 1, sample).equal(first.flip(2)));
    EXPECT_TRUE(alternating(picture, 2, sample).equal(first));
  }
  EXPECT_GT(flipped, 30);
  EXPECT_LT(flipped, 70);
}

TEST(CropAndFlip, FollowsFromSeedEpochAndSampleAlone) {
  const at::Tensor picture = at::arange(3 * 32 * 32).view({3, 32, 32});
  const auto differing = [&](const CropAndFlip& other, std::int64_t epoch, std::size_t moved) {
    int count = 0;
    for (std::size_t sample = 0; sample < 100; ++sample)
      count += !CropAndFlip{}(picture, 0, sample).equal(other(picture, epoch, sample + moved));
    return count;
  };
  EXPECT_EQ(differing({}, 0, 0), 0);
  EXPECT_GT(differing({}, 1, 0), 90);
  EXPECT_GT(differing({}, 0, 1), 90);
  EXPECT_GT(differing({.seed = 1}, 0, 0), 90);
}

TEST_F(CifarFiles, AreAugmentedAlikeWhateverTheProcessesAndThreads) {
  write("pictures.bin", records({0, 1, 2, 3, 4, 5, 6}));
  Cifar10 alone({path("pictures.bin")}, {.augmentation = CropAndFlip{.seed = 4}});
  alone.set_epoch(2);
  std::vector<at::Tensor> expected;
  for (std::size_t i = 0; i < 7; ++i) expected.push_back(alone.get(i).data);
  Cifar10 plain({path("pictures.bin")});
  EXPECT_FALSE(plain.get(1).data.equal(expected[1]));
  for (int workers : {0, 2}) {
    const Cifar10 pictures({path("pictures.bin")}, {.augmentation = CropAndFlip{.seed = 4}});
    on_worlds(2, [&](const World& world) {
      auto loader = make_data_loader(Cifar10(pictures).map(torch::data::transforms::Stack<>()), world,
                                     {.batch_size = 4, .workers = workers});
      loader.set_epoch(2);
      std::size_t next = 0;
      for (auto& batch : loader) {
        for (std::int64_t row = 0; row < batch.data.size(0); ++row)
          EXPECT_TRUE(batch.data[row].equal(expected[next + std::size_t(loader.rows().begin + row)]));
        next += std::size_t(loader.global_rows());
      }
      EXPECT_EQ(next, 7u);
    });
  }
}

}  // namespace vision_test
}  // namespace zero
