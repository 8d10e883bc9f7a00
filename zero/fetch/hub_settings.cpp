#include "zero/fetch/hub_settings.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/json_text.h"
#include "base/log.h"

namespace zero {
namespace {

constexpr int longest_stall = 86'400;  // seconds
constexpr std::int64_t largest_token_file = 1 << 16;

/// The environment, of which an empty variable counts as absent.
class Variables {
 public:
  explicit Variables(const std::function<const char*(const char*)>& variable) : variable_(variable) {}

  std::string value(const char* name) const {
    const char* found = variable_(name);
    return found ? found : "";
  }
  /// The first of these that is set: its name and value. Empty: none.
  std::pair<std::string, std::string> first_of(std::initializer_list<const char*> names) const {
    for (const char* name : names)
      if (std::string found = value(name); !found.empty()) return {name, std::move(found)};
    return {};
  }
  /// A path, with the home directory for "~".
  std::string path(std::initializer_list<const char*> names) const {
    std::string found = first_of(names).second;
    if (found == "~" || found.starts_with("~/")) found.replace(0, 1, value("HOME"));
    return found;
  }

 private:
  const std::function<const char*(const char*)>& variable_;
};

std::string endpoint_of(const Variables& variables, std::string otherwise) {
  std::string endpoint = variables.value("HF_ENDPOINT");
  if (endpoint.empty()) return otherwise;
  while (endpoint.ends_with("/")) endpoint.pop_back();
  const std::size_t scheme = endpoint.find("://");
  const bool http = endpoint.starts_with("https://") || endpoint.starts_with("http://");
  if (!http || scheme + 3 == endpoint.size() || endpoint.find_first_of(" \t\r\n?#") != endpoint.npos)
    throw InputError("HF_ENDPOINT must be the address of a hub, such as https://huggingface.co");
  if (endpoint.find('@') != endpoint.npos)
    throw InputError("HF_ENDPOINT must hold no password: messages show it. HF_TOKEN takes a token");
  return endpoint;
}

std::string trimmed(const std::string& words) {
  constexpr const char* space = " \t\r\n";
  const std::size_t begin = words.find_first_not_of(space);
  return begin == words.npos ? "" : words.substr(begin, words.find_last_not_of(space) + 1 - begin);
}

bool is_printable(const std::string& token) {
  return std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 0x7F; });
}

void read_token(HubSettings& settings, const Variables& variables, const std::string& home) {
  auto [place, token] = variables.first_of({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"});
  if (trimmed(token).empty()) {
    place = variables.path({"HF_TOKEN_PATH"});
    if (place.empty() && !home.empty()) place = home + "/token";
    if (place.empty() || !is_there(place)) return;
    token = read_text_file(place, largest_token_file);
  }
  settings.token = trimmed(token);
  settings.token_place = place;
  if (!is_printable(settings.token))
    throw InputError(place + ": holds no token: a token is one word of letters, digits and underscores");
}

bool is_true(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::toupper(c); });
  return word == "1" || word == "ON" || word == "YES" || word == "TRUE";
}

std::chrono::seconds stall_of(const Variables& variables, std::chrono::seconds otherwise) {
  const std::string words = variables.value("HF_HUB_DOWNLOAD_TIMEOUT");
  if (words.empty()) return otherwise;
  const bool digits = words.size() <= 5 && words.find_first_not_of("0123456789") == words.npos;
  const int seconds = digits ? std::stoi(words) : 0;
  if (seconds < 1 || seconds > longest_stall)
    throw InputError(text("HF_HUB_DOWNLOAD_TIMEOUT must be a number of seconds from 1 to ", longest_stall));
  return std::chrono::seconds(seconds);
}

}  // namespace

HubSettings HubSettings::of(const std::function<const char*(const char*)>& variable) {
  const Variables variables(variable);
  if (is_true(variables.first_of({"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"}).second))
    throw InputError("HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set, and a fetch asks the hub: unset it");
  HubSettings settings;
  std::string home = variables.path({"HF_HOME"}), caches = variables.path({"XDG_CACHE_HOME"});
  if (caches.empty() && !variables.value("HOME").empty()) caches = variables.value("HOME") + "/.cache";
  if (home.empty() && !caches.empty()) home = caches + "/huggingface";
  settings.endpoint = endpoint_of(variables, settings.endpoint);
  read_token(settings, variables, home);
  settings.cache = variables.path({"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"});
  if (settings.cache.empty() && !home.empty()) settings.cache = home + "/hub";
  settings.certificates = variables.path({"CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"});
  settings.stall = stall_of(variables, settings.stall);
  return settings;
}

}  // namespace zero
