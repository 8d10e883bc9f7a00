#pragma once
// The token cache: a text's ids, made once, and used again as long as the text, the tokenizer and the rule are the same.
//
// Layout of a cache file, little-endian: 8 bytes magic "ZEROTOKS", uint32 format version, uint32 width of an id in bytes,
// uint64 number of ids, 32 bytes each SHA-256 of the text, of the tokenizer and of the rule's name, 8 bytes zero; then the ids.
#include <string>

#include "zero/data/text_encoder.h"
#include "zero/data/token_file.h"

namespace zero {

class Communicator;

/// The ids of the text file at `path`, from its cache in `folder` (made if need be), which all ranks must see. Rank 0
/// checks the cache against text and tokenizer and writes it anew where it does not fit; the others wait. Collective;
/// every error is thrown on all ranks: InputError for the text, Error where the folder cannot be written.
TokenFile open_token_cache(const std::string& path, const TextEncoder& encoder, const std::string& folder, Communicator& comm);

/// Where that cache lies: the text's file name and a hash of its whole path.
std::string token_cache_path(const std::string& path, const std::string& folder);

}  // namespace zero
