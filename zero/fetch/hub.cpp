#include "zero/fetch/hub.h"

#include <algorithm>
#include <iterator>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "zero/fetch/hub_refusals.h"

namespace zero {
namespace {

constexpr std::size_t largest_answer = 64 << 20;
constexpr std::int64_t renewing_bytes = 1 << 20;  // a try that brings so many was no failure of the hub
constexpr std::size_t most_files = 1'000'000;

/// An answer of the API, kept whole.
class TextBody : public HttpBody {
 public:
  explicit TextBody(std::string& words) : words_(words) { words_.clear(); }
  void begin(std::int64_t) override { words_.clear(); }
  void add(std::string_view bytes) override {
    words_ += bytes;
    if (words_.size() > largest_answer)
      throw Error(text("the hub's answer has more than ", largest_answer, " bytes; is it a Hugging Face hub?"));
  }

 private:
  std::string& words_;
};

/// The address of a next page, at the endpoint that was named: a mirror passes on the hub's own addresses.
std::string own_address(const std::string& page, const std::string& endpoint) {
  const std::string hub = HubSettings().endpoint;
  if (page.starts_with("/")) return endpoint + page;
  return page.starts_with(hub + "/") ? endpoint + page.substr(hub.size()) : page;
}

bool is_missing(const HttpAnswer& answer) { return answer.trouble.empty() && answer.status == 404; }

}  // namespace

Hub::Hub(const HubSettings& settings, Repository repository, int tries, std::string agent)
    : settings_(settings), repository_(std::move(repository)), tries_(tries), client_(settings, std::move(agent)) {}

Patience Hub::patience(const std::string& what) const {
  return {tries_, what, [](std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }};
}

/// The first answer that will not change.
HttpAnswer Hub::ask(const std::string& address, const std::string& what, std::string& body) {
  for (Patience left = patience(what);;) {
    TextBody words(body);
    HttpAnswer answer = client_.get(address, 0, words);
    if (!may_pass(answer)) return answer;
    left.wait_after(answer);
  }
}

bool Hub::is_repository() {
  std::string body;
  return ask(settings_.endpoint + repository_.api_path(), repository_.name, body).is_whole();
}

std::string Hub::commit() {
  const std::string address =
      settings_.endpoint + repository_.api_path() + "/revision/" + percent_encoded(repository_.revision);
  std::string body;
  HttpAnswer answer = ask(address, repository_.name, body);
  if (is_missing(answer) && answer.error_code.empty() && is_repository()) answer.error_code = "RevisionNotFound";
  if (!answer.is_whole()) throw InputError(refusal_of(answer, repository_, settings_));
  return parse_commit(body, address);
}

std::vector<HubFile> Hub::files(const std::string& commit) {
  const std::string first = settings_.endpoint + repository_.api_path() + "/tree/" + commit + "?recursive=true";
  std::vector<HubFile> files;
  for (std::string address = first; !address.empty();) {
    std::string body;
    const HttpAnswer answer = ask(address, text("the list of files of ", repository_.name), body);
    if (!answer.is_whole()) throw InputError(refusal_of(answer, repository_, settings_));
    std::vector<HubFile> page = parse_tree(body, first);
    const std::string next = own_address(answer.next_page, settings_.endpoint);
    if (page.size() + files.size() > most_files || next == address)
      throw Error(text(first, ": the list of files has no end"));
    files.insert(files.end(), std::make_move_iterator(page.begin()), std::make_move_iterator(page.end()));
    address = next;
  }
  require_distinct(files, first);
  return files;
}

void Hub::refuse(const HubFile& file, HttpAnswer answer, bool written) const {
  if (is_missing(answer)) answer.error_code = "EntryNotFound";
  const std::string words = text(file.path, ": ", refusal_of(answer, repository_, settings_));
  if (written) throw Error(words);
  throw InputError(words);
}

void Hub::read(const HubFile& file, const std::string& commit, PartialFile& partial) {
  const std::string address = settings_.endpoint + repository_.file_path(commit, file.path);
  Patience left = patience(file.path);
  std::int64_t furthest = partial.bytes();
  const std::string own_host = host_of(address);
  // An empty file is asked for too: access is the hub's to give.
  while (partial.bytes() < file.bytes || file.bytes == 0) {
    HttpAnswer answer = client_.get(address, partial.bytes(), partial);
    if (partial.bytes() == file.bytes && (file.bytes > 0 || answer.is_whole())) return;
    if (partial.bytes() >= furthest + renewing_bytes) left.renew();
    furthest = std::max(furthest, partial.bytes());
    if (answer.is_whole()) answer.trouble = text("ends at byte ", partial.bytes(), " of ", file.bytes);
    if (answer.status == 416 && answer.trouble.empty())
      partial.restart();  // the server has another idea of the file's size
    else if (!may_pass(answer) && (answer.lasting || answer.host == own_host))  // elsewhere a signature may be too old
      refuse(file, std::move(answer), furthest > 0);
    left.wait_after(answer);
  }
}

}  // namespace zero
