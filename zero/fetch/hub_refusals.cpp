#include "zero/fetch/hub_refusals.h"

#include "base/log.h"
#include "zero/fetch/patience.h"

namespace zero {
namespace {

/// " (the hub's words)", or nothing.
std::string words_of(const HttpAnswer& answer) {
  return answer.error_message.empty() ? "" : " (" + answer.error_message + ")";
}

std::string kind_hint(const Repository& repository) {
  return repository.kind == RepositoryKind::model ? "; a data set takes --dataset" : "; a model takes no --dataset";
}

std::string refusal_of_access(const HttpAnswer& answer, const Repository& repository, const HubSettings& settings) {
  const std::string page = settings.endpoint + repository.page_path(), tokens = settings.endpoint + "/settings/tokens";
  const bool gated = answer.error_code == "GatedRepo";
  if (settings.token.empty() && gated)
    return text(repository.name, ": is gated: ask for access at ", page, ", then set HF_TOKEN to a token of that ",
                "account (", tokens, ")");
  if (settings.token.empty())
    return text(repository.name, ": does not exist at ", settings.endpoint, ", or is private", words_of(answer),
                ": check the name, or set HF_TOKEN to a token that may read it", kind_hint(repository));
  if (gated || answer.status == 403)
    return text(repository.name, ": the token in ", settings.token_place, " may not read it", words_of(answer),
                ": ask for access at ", page, " with its account, or name a token of another one in HF_TOKEN");
  return text(repository.name, ": ", answer.host, " does not accept the token in ", settings.token_place,
              words_of(answer), ": make a new one at ", tokens);
}

}  // namespace

std::string refusal_of(const HttpAnswer& answer, const Repository& repository, const HubSettings& settings) {
  const bool answered = answer.trouble.empty();
  if (answered && (answer.status == 401 || answer.status == 403))
    return refusal_of_access(answer, repository, settings);
  if (answered && answer.status == 404 && answer.error_code == "RevisionNotFound")
    return text(repository.name, ": has no revision \"", repository.revision, "\": ", settings.endpoint,
                repository.page_path(), "/tree/main lists its branches and tags");
  if (answered && answer.status == 404 && answer.error_code == "EntryNotFound")
    return text(answer.host, " has no such file", words_of(answer));
  if (answered && answer.status == 404)
    return text(repository.name, ": does not exist at ", settings.endpoint,
                settings.token.empty() ? "" : ", or the token in " + settings.token_place + " may not see it",
                ": check the name", kind_hint(repository));
  const bool certificate = answer.lasting && answer.trouble.find("ertificate") != std::string::npos;
  const bool name = answer.lasting && answer.trouble.find("not resolve") != std::string::npos;
  return text(repository.name, ": ", failure_of(answer),
              certificate ? "; name the file of trusted certificates in CURL_CA_BUNDLE"
              : name      ? "; check the network, or the name of the hub in HF_ENDPOINT"
                          : "");
}

}  // namespace zero
