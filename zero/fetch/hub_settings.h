#pragma once
// HubSettings: the hub, the user's token, and the location of the cache. The environment variables are
// huggingface_hub's ("Environment variables" in its documentation).
#include <chrono>
#include <functional>
#include <string>

namespace zero {

struct HubSettings {
  std::string endpoint = "https://huggingface.co";  // without a slash at its end
  std::string token;                                // empty: none. Never print it.
  std::string token_place;                          // the token's variable or file, for messages
  std::string cache;                                // folder of the cache; empty: no home directory is known
  std::string certificates;                         // file of trusted certificates; empty: libcurl's own
  std::chrono::seconds stall{30};                   // a transfer that receives no byte for this long is abandoned

  /// `variable` returns an environment variable's value, or null. Reads the token's file. Throws InputError for a
  /// value that cannot be used, and for HF_HUB_OFFLINE.
  ///
  /// - endpoint: HF_ENDPOINT
  /// - token: HF_TOKEN, HUGGING_FACE_HUB_TOKEN, or the file HF_TOKEN_PATH (HF_HOME/token), which `hf auth login` writes
  /// - cache: HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, or HF_HOME/hub; HF_HOME is ~/.cache/huggingface
  /// - certificates: CURL_CA_BUNDLE, REQUESTS_CA_BUNDLE or SSL_CERT_FILE
  /// - stall: HF_HUB_DOWNLOAD_TIMEOUT
  static HubSettings of(const std::function<const char*(const char*)>& variable);
};

}  // namespace zero
