// One safetensors file: every tensor is read whole, and a range of it as another type.
#include "models/formats/safetensors.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "tests/fuzz/fuzz_folder.h"

namespace zero {
namespace safetensors_target {

void use(const FuzzFiles& files) {
  const SafetensorsFile file(FuzzFolder::with(files) / "model.safetensors");
  for (const StoredTensor& tensor : file.tensors()) {
    if (tensor.end - tensor.begin > std::int64_t(files.begin()->second.size()))
      throw InternalError("a tensor beyond the file's end");
    try {
      const std::int64_t count = file.read(tensor.name).numel();
      if (count < 2) continue;
      file.read(tensor.name, 1, count - 1, at::empty({count - 1}, at::kFloat));
    } catch (const InputError&) {  // the next one may do
    }
  }
}

const FuzzTarget target("safetensors",
                        {{"model.safetensors",
                          FileForm::safetensors,
                          {R"({"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]})",
                           R"({"dtype": "BF16", "shape": [], "data_offsets": [0, 2]})", R"("F8_E4M3")", R"("F4")",
                           R"("I64")", R"("BOOL")", R"("U8")", R"("C64")", "[0, 4]", R"({"format": "pt"})"}}},
                        use);

}  // namespace safetensors_target
}  // namespace zero
