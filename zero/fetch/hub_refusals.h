#pragma once
// Messages about a hub's refusals, with the remedy. The hub states its reason in the header X-Error-Code, which
// huggingface_hub reads too: RepoNotFound, RevisionNotFound, EntryNotFound, GatedRepo.
#include <string>

#include "zero/fetch/http_client.h"
#include "zero/fetch/hub_settings.h"
#include "zero/fetch/repository.h"

namespace zero {

/// The message about an answer that another try would not change: the reason and the remedy. Never contains the token.
std::string refusal_of(const HttpAnswer& answer, const Repository& repository, const HubSettings& settings);

}  // namespace zero
