#pragma once
// Words for what a hub refuses, with the remedy. The hub's reasons are in its header X-Error-Code, as huggingface_hub
// reads it: RepoNotFound, RevisionNotFound, EntryNotFound, GatedRepo.
#include <string>

#include "zero/fetch/http_client.h"
#include "zero/fetch/hub_settings.h"
#include "zero/fetch/repository.h"

namespace zero {

/// The message for an answer that will be the same next time: its reason and the remedy. Never holds the token.
std::string refusal_of(const HttpAnswer& answer, const Repository& repository, const HubSettings& settings);

}  // namespace zero
