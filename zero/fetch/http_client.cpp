#include "zero/fetch/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/json_text.h"
#include "base/log.h"
#include "zero/fetch/listing.h"

namespace zero {
namespace {

constexpr int most_redirects = 10;
constexpr long connect_seconds = 15;
constexpr std::size_t error_bytes = 16 << 10;  // of an error's body
constexpr std::size_t error_words = 300;       // characters of it that a message shows

std::string part_of(CURLU* address, CURLUPart part, unsigned flags = 0) {
  char* words = nullptr;
  if (curl_url_get(address, part, &words, flags) != CURLUE_OK) return "";
  std::string result = words;
  curl_free(words);
  return result;
}

std::string header_of(CURL* curl, const char* name) {
  curl_header* header = nullptr;
  return curl_easy_header(curl, name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK ? header->value : "";
}

long status_of(CURL* curl) {
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  return status;
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

bool is_lasting(CURLcode code) {
  switch (code) {
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      return true;
    default:
      return false;
  }
}

/// The words of an error, printable, on one line and without the token, should a server repeat it. They are the
/// header's, else those of a JSON body {"error": "..."}.
std::string error_message_of(const std::string& header, const std::string& body, const std::string& token) {
  std::string words = header;
  if (words.empty()) {
    const auto parsed = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
    if (parsed.is_object() && parsed.contains("error") && parsed["error"].is_string())
      words = parsed["error"].get<std::string>();
  }
  for (std::size_t at; !token.empty() && (at = words.find(token)) != words.npos;)
    words.replace(at, token.size(), "...");
  std::replace_if(
      words.begin(), words.end(), [](char c) { return c < ' ' || c > '~'; }, ' ');
  return words.substr(0, error_words);
}

}  // namespace

/// One request on its way. Exceptions may not cross libcurl's frames.
struct HttpClient::Exchange {
  CURL* curl;
  HttpBody& body;
  bool begun = false;
  std::string error_body = {};
  std::exception_ptr failure = {};
  char trouble[CURL_ERROR_SIZE] = "";
  std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers{nullptr, curl_slist_free_all};

  void take(std::string_view bytes) {
    const long status = status_of(curl);
    if (status != 200 && status != 206) {
      error_body.append(bytes.substr(0, error_bytes - std::min(error_bytes, error_body.size())));
      return;
    }
    if (!begun) {
      const auto first = status == 206 ? first_byte_of(header_of(curl, "Content-Range")) : 0;
      if (!first) throw Error("an answer of status 206 does not say which bytes it holds");
      body.begin(*first);
      begun = true;
    }
    body.add(bytes);
  }

  static std::size_t write(char* bytes, std::size_t, std::size_t count, void* self) {
    auto& exchange = *static_cast<Exchange*>(self);
    try {
      exchange.take({bytes, count});
      return count;
    } catch (...) {
      exchange.failure = std::current_exception();
      return 0;
    }
  }
};

HttpClient::HttpClient(const HubSettings& settings, std::string agent)
    : settings_(settings), agent_(std::move(agent)), own_origin_(origin_of(settings.endpoint)) {
  if (!settings.certificates.empty()) File::open(settings.certificates);
  ZERO_CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK, "libcurl does not start");
  curl_ = std::shared_ptr<void>(curl_easy_init(), curl_easy_cleanup);
  ZERO_CHECK(curl_, "libcurl gives no handle");
}

HttpClient::~HttpClient() {
  curl_.reset();
  curl_global_cleanup();
}

HttpAnswer HttpClient::get(const std::string& address, std::int64_t from, HttpBody& body) {
  std::string at = address, redirect;
  for (int asked = 0; asked <= most_redirects; ++asked) {
    HttpAnswer answer = exchange(at, from, body, redirect);
    if (!answer.trouble.empty() || !is_redirect(answer.status)) return answer;
    if (redirect.empty() || (at.starts_with("https://") && !redirect.starts_with("https://"))) {
      answer.trouble = "a redirect leads to no address that may be followed (https stays https)";
      answer.lasting = true;
      return answer;
    }
    at = redirect;
  }
  HttpAnswer lost;
  lost.host = host_of(at);
  lost.trouble = text("more than ", most_redirects, " redirects");
  lost.lasting = true;
  return lost;
}

void HttpClient::prepare(const std::string& address, std::int64_t from, Exchange& exchange) {
  CURL* curl = exchange.curl;
  curl_easy_reset(curl);  // keeps connections
  curl_easy_setopt(curl, CURLOPT_URL, address.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);  // get() does, and decides who sees the token
  curl_easy_setopt(curl, CURLOPT_USERAGENT, agent_.c_str());
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, connect_seconds);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(settings_.stall.count()));
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, exchange.trouble);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Exchange::write);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &exchange);
  if (!settings_.certificates.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, settings_.certificates.c_str());
  if (from > 0) curl_easy_setopt(curl, CURLOPT_RANGE, (std::to_string(from) + "-").c_str());
  if (!settings_.token.empty() && origin_of(address) == own_origin_) {
    exchange.headers.reset(curl_slist_append(nullptr, ("Authorization: Bearer " + settings_.token).c_str()));
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, exchange.headers.get());
  }
}

HttpAnswer HttpClient::exchange(const std::string& address, std::int64_t from, HttpBody& body, std::string& redirect) {
  CURL* curl = static_cast<CURL*>(curl_.get());
  Exchange exchange{curl, body};
  prepare(address, from, exchange);
  const CURLcode code = curl_easy_perform(curl);
  if (exchange.failure) std::rethrow_exception(exchange.failure);
  HttpAnswer answer;
  answer.status = static_cast<int>(status_of(curl));
  answer.host = host_of(address);
  if (code != CURLE_OK) answer.trouble = *exchange.trouble ? exchange.trouble : curl_easy_strerror(code);
  // A name that no server knows is misspelt, unless a request has reached a host before.
  const bool is_unknown = code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY;
  answer.lasting = is_lasting(code) || (is_unknown && !has_connected_);
  has_connected_ |= code == CURLE_OK;
  answer.next_page = next_page_of(header_of(curl, "Link"));
  answer.error_code = header_of(curl, "X-Error-Code");
  answer.error_message = error_message_of(header_of(curl, "X-Error-Message"), exchange.error_body, settings_.token);
  curl_off_t seconds = 0;
  if (curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &seconds) == CURLE_OK && seconds > 0)
    answer.wait = std::chrono::seconds(seconds);
  const char* target = nullptr;
  curl_easy_getinfo(curl, CURLINFO_REDIRECT_URL, &target);
  redirect = target ? target : "";
  return answer;
}

std::string http_library() { return curl_version(); }

std::string host_of(const std::string& address) {
  const std::unique_ptr<CURLU, void (*)(CURLU*)> parsed(curl_url(), curl_url_cleanup);
  if (curl_url_set(parsed.get(), CURLUPART_URL, address.c_str(), 0) != CURLUE_OK) return "";
  return part_of(parsed.get(), CURLUPART_HOST);
}

std::string origin_of(const std::string& address) {
  const std::unique_ptr<CURLU, void (*)(CURLU*)> parsed(curl_url(), curl_url_cleanup);
  if (curl_url_set(parsed.get(), CURLUPART_URL, address.c_str(), 0) != CURLUE_OK) return "";
  std::string host = part_of(parsed.get(), CURLUPART_HOST);
  std::transform(host.begin(), host.end(), host.begin(), [](unsigned char c) { return std::tolower(c); });
  return part_of(parsed.get(), CURLUPART_SCHEME) + "://" + host + ":" +
         part_of(parsed.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
}

std::optional<std::int64_t> first_byte_of(const std::string& content_range) {
  constexpr std::string_view unit = "bytes ";
  if (!content_range.starts_with(unit)) return std::nullopt;
  std::int64_t first = 0;
  const char* begin = content_range.data() + unit.size();
  const char* end = content_range.data() + content_range.size();
  const auto [stop, error] = std::from_chars(begin, end, first);
  return error == std::errc() && stop != end && *stop == '-' && first >= 0 ? std::optional(first) : std::nullopt;
}

}  // namespace zero
