#pragma once
// Changed copies of tokenizer files and chat templates: each is a function of its sources and a number.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

namespace zero {

class Mutations {
 public:
  explicit Mutations(std::uint64_t seed) : random_(seed) {}

  /// Changes, removes or duplicates bytes, or inserts some from `words` and from the other sources.
  std::string of_bytes(std::string text, const std::vector<std::string>& sources,
                       const std::vector<std::string>& words);

  /// Changes a JSON document: replaces values (by extreme ones, by `parts`, by those of other documents), or removes,
  /// duplicates or wraps them. Lists and objects with thousands of members are not chosen more often than others.
  nlohmann::ordered_json of_json(nlohmann::ordered_json document, const std::vector<nlohmann::ordered_json>& sources,
                                 const std::vector<nlohmann::ordered_json>& parts);

  /// Changes a template: removes or duplicates tags and words, or exchanges them with those of other templates and of
  /// `words`.
  std::string of_template(const std::string& text, const std::vector<std::string>& sources,
                          const std::vector<std::string>& words);

  std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random_() % n); }
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[below(list.size())];
  }

 private:
  nlohmann::ordered_json& somewhere(nlohmann::ordered_json& document);
  nlohmann::ordered_json wild(const nlohmann::ordered_json& old);
  std::string wild_text(std::string text);

  std::mt19937_64 random_;
};

}  // namespace zero
