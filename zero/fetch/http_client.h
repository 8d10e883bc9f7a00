#pragma once
// HttpClient: makes HTTP requests with libcurl and follows their redirects. Proxies come from libcurl's environment
// variables (http_proxy, https_proxy, all_proxy, no_proxy).
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "zero/fetch/hub_settings.h"

namespace zero {

/// The outcome of a request.
struct HttpAnswer {
  int status = 0;                            // HTTP status; 0: there was no answer
  std::string trouble;                       // why the answer is incomplete; empty if it is complete
  bool lasting = false;                      // another try would meet the same trouble
  std::string host;                          // the host that received the last request
  std::string next_page;                     // address of rel="next"
  std::string error_code;                    // X-Error-Code
  std::string error_message;                 // X-Error-Message, or the body's
  std::optional<std::chrono::seconds> wait;  // Retry-After

  bool is_whole() const { return trouble.empty() && (status == 200 || status == 206); }
};

/// Receives the body of an answer with status 200 or 206.
class HttpBody {
 public:
  virtual ~HttpBody() = default;
  /// `offset`: the position in the whole file of the first byte that follows. Not called for an empty body.
  virtual void begin(std::int64_t offset) = 0;
  virtual void add(std::string_view bytes) = 0;
};

class HttpClient {
 public:
  /// `agent`: the User-Agent. Throws InputError if the file of certificates cannot be read.
  HttpClient(const HubSettings& settings, std::string agent);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Requests an address, starting at byte `from`. Follows redirects, but none from https to http. The token goes only
  /// to the endpoint's own scheme, host and port. Rethrows what `body` throws; all other failures are in the answer.
  HttpAnswer get(const std::string& address, std::int64_t from, HttpBody& body);

 private:
  struct Exchange;
  HttpAnswer exchange(const std::string& address, std::int64_t from, HttpBody& body, std::string& redirect);
  void prepare(const std::string& address, std::int64_t from, Exchange& exchange);

  HubSettings settings_;
  std::string agent_, own_origin_;
  bool has_connected_ = false;  // an earlier request had an answer
  std::shared_ptr<void> curl_;  // CURL
};

/// "libcurl/7.88.1 OpenSSL/3.0 ..."
std::string http_library();

/// The host of an address; empty if the text is not an address.
std::string host_of(const std::string& address);

/// "https://host:443" of an address; empty if the text is not an address.
std::string origin_of(const std::string& address);

/// The first byte of "bytes FIRST-LAST/TOTAL" (Content-Range); nothing for any other text.
std::optional<std::int64_t> first_byte_of(const std::string& content_range);

}  // namespace zero
