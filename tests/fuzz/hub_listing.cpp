// A page of a hub's listing: what is accepted leads below a folder, and files are selected from it.
#include "zero/fetch/listing.h"

#include <filesystem>

#include "base/error.h"
#include "tests/fuzz/fuzz_target.h"
#include "zero/fetch/repository.h"
#include "zero/fetch/selection.h"

namespace zero {
namespace hub_listing_target {

void use(const FuzzFiles& files) {
  const std::vector<HubFile> listed = parse_tree(files.begin()->second, "here");
  for (const HubFile& file : listed) {
    const std::filesystem::path path(file.path);
    if (path.is_absolute() || path.lexically_normal() != path || path.begin()->string() == "..")
      throw InternalError("a path that leads out of the folder");
    if (file.bytes < 0 || (file.hash.size() != 40 && file.hash.size() != 64)) throw InternalError("no size or hash");
  }
  require_distinct(listed, "here");
  next_page_of(files.begin()->second);
  select_files(listed, {{"*"}, {"*.bin"}}, Repository{});
  select_files(listed, {}, Repository{});
}

const FuzzTarget target("hub_listing",
                        {{"page",
                          FileForm::json,
                          {R"("../x")", R"("/x")", R"("a/./b")", R"("a//b")", R"("model.safetensors")",
                           R"("directory")", "-1", "9223372036854775808", R"({"oid": "x", "size": 1})",
                           R"("<a>; rel=\\"next\\"")"}}},
                        use);

}  // namespace hub_listing_target
}  // namespace zero
