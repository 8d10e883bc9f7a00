#include "zero/fetch/selection.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "tests/unit/message_of.h"

namespace zero {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> selected(const std::vector<std::string>& paths, const Selection& selection = {},
                                  RepositoryKind kind = RepositoryKind::model) {
  std::vector<HubFile> files;
  for (const std::string& path : paths) files.push_back({path, 1, std::string(40, 'a')});
  std::vector<std::string> names;
  for (const HubFile& file : select_files(files, selection, Repository{kind, "a/b"})) names.push_back(file.path);
  return names;
}

TEST(Selection, OfAModelHasItsWeightsOnceAndTheFilesAtItsTop) {
  EXPECT_THAT(selected({"config.json", "flax_model.msgpack", "model.safetensors", "model.safetensors.index.json",
                        "model-00001-of-00001.safetensors", "model.fp16.safetensors", "onnx/config.json",
                        "onnx/model.onnx", "pytorch_model.bin", "tokenizer.json", ".gitattributes", "LICENSE.md"}),
              ElementsAre("LICENSE.md", "model.safetensors", "tokenizer.json", "config.json"));
  EXPECT_THAT(
      selected({"config.json", "consolidated.safetensors", "model-00001-of-00002.safetensors",
                "model-00002-of-00002.safetensors", "model.safetensors.index.json", "original/tokenizer.model"}),
      ElementsAre("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                  "model.safetensors.index.json", "config.json"));
  EXPECT_THAT(selected({"adapter_config.json", "adapter_model.safetensors", "optimizer.pt"}),
              ElementsAre("adapter_model.safetensors", "adapter_config.json"));
}

TEST(Selection, OfADataSetHasAllFiles) {
  EXPECT_THAT(selected({".gitattributes", "README.md", "data/a.parquet"}, {}, RepositoryKind::dataset),
              ElementsAre("README.md", "data/a.parquet"));
}

TEST(Selection, FollowsGlobsOfWholePaths) {
  const std::vector<std::string> paths{"a.gguf", "b/c.gguf", "b/d/e.txt", "config.json"};
  EXPECT_THAT(selected(paths, {{"*.gguf"}, {}}), ElementsAre("a.gguf", "b/c.gguf"));
  EXPECT_THAT(selected(paths, {{"b/"}, {"*.gguf"}}), ElementsAre("b/d/e.txt"));
  EXPECT_THAT(selected(paths, {{"?.gguf", "config.json"}, {}}), ElementsAre("a.gguf", "config.json"));
  EXPECT_THAT(selected(paths, {{"*"}, {"[ab]*"}}), ElementsAre("config.json"));
}

TEST(Selection, IsRefusedWithoutFilesOrWeights) {
  const auto refused = [](const std::vector<std::string>& paths, const Selection& selection) {
    return message_of<InputError>([&] { selected(paths, selection); });
  };
  EXPECT_THAT(refused({"config.json", "pytorch_model.bin"}, {}),
              AllOf(HasSubstr("no model.safetensors"), HasSubstr("pytorch_model.bin"), HasSubstr("--include")));
  EXPECT_THAT(refused({"data.jsonl"}, {}), HasSubstr("--dataset"));
  EXPECT_THAT(refused({"config.json"}, {{"*.txt"}, {}}), HasSubstr("none of its 1 files"));
  EXPECT_THAT(refused({"config.json"}, {{"*"}, {"*"}}), HasSubstr("--exclude"));
}

}  // namespace
}  // namespace zero
