#include "models/text/known_chat_templates.h"

#include <cctype>
#include <utility>

namespace zero {

const std::vector<KnownChatTemplate>& known_chat_templates() {
  static const std::vector<KnownChatTemplate> known = {
      // TinyLlama-1.1B-Chat and zephyr-7b
      {"zephyr",
       "{% for message in messages %}\n{% if message['role'] == 'user' %}\n{{ '<|user|>\n' + message['content'] + eos_token }}\n"
       "{% elif message['role'] == 'system' %}\n{{ '<|system|>\n' + message['content'] + eos_token }}\n"
       "{% elif message['role'] == 'assistant' %}\n{{ '<|assistant|>\n'  + message['content'] + eos_token }}\n{% endif %}\n"
       "{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n{% endfor %}"},
      // Llama-2-chat
      {"llama-2",
       "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] %}"
       "{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}{% for message in loop_messages %}"
       "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
       "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
       "{% if loop.index0 == 0 and system_message != false %}"
       "{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}"
       "{% else %}{% set content = message['content'] %}{% endif %}"
       "{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"
       "{% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"},
      // Llama-3-Instruct
      {"llama-3",
       "{% set loop_messages = messages %}{% for message in loop_messages %}"
       "{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}"
       "{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}"
       "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"},
      {"chatml",
       "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
       "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"},
      {"chatml",
       "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}"
       "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
       "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"},
      {"chatml",
       "{{ bos_token }}"
       "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
       "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"},
      {"chatml",
       "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nSYSTEM<|im_end|>\n' }}{% endif %}"
       "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
       "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"},
      {"alpaca",
       "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'].strip() + '\n\n' %}"
       "{% else %}{% set loop_messages = messages %}{% set system_message = '' %}{% endif %}{{ bos_token + system_message }}"
       "{% for message in loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
       "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
       "{% if message['role'] == 'user' %}{{ '### Instruction:\n' + message['content'].strip() + '\n\n' }}"
       "{% elif message['role'] == 'assistant' %}{{ '### Response:\n' + message['content'].strip() + eos_token + '\n\n' }}{% endif %}"
       "{% if loop.last and message['role'] == 'user' and add_generation_prompt %}{{ '### Response:\n' }}{% endif %}{% endfor %}"},
      // an older spelling of the same, which asks for the next instruction
      {"alpaca",
       "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'].strip() + '\n\n' %}"
       "{% else %}{% set loop_messages = messages %}{% set system_message = '' %}{% endif %}{{ bos_token + system_message }}"
       "{% for message in loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
       "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
       "{% if message['role'] == 'user' %}{{ '### Instruction:\n' + message['content'].strip() + '\n\n' }}"
       "{% elif message['role'] == 'assistant' %}{{ '### Response:\n' + message['content'].strip() + eos_token + '\n\n' }}{% endif %}"
       "{% if loop.last and message['role'] == 'user' and add_generation_prompt %}{{ '### Instruction:\n' }}{% endif %}{% endfor %}"},
  };
  return known;
}

const KnownChatTemplate* known_chat_template(std::string_view name) {
  if (name == "tinyllama") name = "zephyr";
  for (const KnownChatTemplate& known : known_chat_templates())
    if (known.name == name) return &known;
  return nullptr;
}

namespace {

/// The expression that writes an answer in the templates of a name, and the same with a generation block.
struct WrittenAnswer {
  std::string_view name, plain, marked;
};

constexpr WrittenAnswer written_answers[] = {
    {"zephyr", "{{ '<|assistant|>\n'  + message['content'] + eos_token }}\n",
     "{{ '<|assistant|>\n' }}{% generation %}{{ message['content'] + eos_token }}{% endgeneration %}{{ '\n' }}"},
    {"llama-2", "{{ ' '  + content.strip() + ' ' + eos_token }}",
     "{{ ' ' }}{% generation %}{{ content.strip() + ' ' + eos_token }}{% endgeneration %}"},
    {"llama-3", "{{ content }}",
     "{% if message['role'] == 'assistant' %}{{ content.removesuffix(message['content'] | trim + '<|eot_id|>') }}"
     "{% generation %}{{ message['content'] | trim + '<|eot_id|>' }}{% endgeneration %}{% else %}{{ content }}{% endif %}"},
    {"chatml", "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}",
     "{{ '<|im_start|>' + message['role'] + '\n' }}{% if message['role'] == 'assistant' %}"
     "{% generation %}{{ message['content'] + '<|im_end|>' }}{% endgeneration %}"
     "{% else %}{{ message['content'] + '<|im_end|>' }}{% endif %}{{ '\n' }}"},
    {"alpaca", "{{ '### Response:\n' + message['content'].strip() + eos_token + '\n\n' }}",
     "{{ '### Response:\n' }}{% generation %}{{ message['content'].strip() + eos_token }}{% endgeneration %}{{ '\n\n' }}"},
};

void replace_first(std::string& text, std::string_view from, std::string_view to) {
  if (const std::size_t at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
}

/// Escapes words for the quotes of a Jinja string.
std::string escaped(std::string_view words) {
  std::string result;
  for (const char c : words) {
    if (c == '\'' || c == '\\') result += '\\';
    if (c == '\n' || c == '\r')
      result += c == '\n' ? "\\n" : "\\r";
    else
      result += c;
  }
  return result;
}

constexpr char separator = jinja_separator;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)); }

// The body of one {{ }} or {% %} as parts with separators between them.
class Expression {
 public:
  explicit Expression(std::string_view source) : source_(source) {}

  std::string canonical() {
    while (at_ < source_.size()) {
      const char c = source_[at_];
      if (is_blank(c))
        ++at_;
      else if (c == '\'' || c == '"')
        literal();
      else if (is_word(c))
        add(word());
      else if (c == '.')
        member();
      else {
        add(std::string(1, c));
        ++at_;
      }
    }
    std::string result;
    for (const std::string& part : parts_) result += part + separator;
    return result;
  }

  // True if canonical() understood the whole source: every string ends, and has only common escapes.
  bool plain() const { return plain_; }

 private:
  void add(std::string part) { parts_.push_back(std::move(part)); }

  std::string word() {
    const std::size_t begin = at_;
    while (at_ < source_.size() && is_word(source_[at_])) ++at_;
    return std::string(source_.substr(begin, at_ - begin));
  }

  // 'a' + 'b' is the literal 'ab'.
  void literal() {
    std::string value = "'" + unquoted();
    const bool joins = parts_.size() >= 2 && parts_.back() == "+" && parts_[parts_.size() - 2].front() == '\'';
    if (!joins) return add(std::move(value));
    parts_.pop_back();
    parts_.back() += value.substr(1);
  }

  std::string unquoted() {
    static constexpr std::string_view escapes = "nrt\\'\"", meanings = "\n\r\t\\'\"";
    const char quote = source_[at_++];
    std::string value;
    for (; at_ < source_.size() && source_[at_] != quote; ++at_) {
      if (source_[at_] != '\\') {
        value += source_[at_];
        continue;
      }
      const std::size_t known = ++at_ < source_.size() ? escapes.find(source_[at_]) : std::string_view::npos;
      if (known == std::string_view::npos)
        plain_ = false;
      else
        value += meanings[known];
      if (at_ == source_.size()) break;
    }
    if (at_ < source_.size())
      ++at_;
    else
      plain_ = false;
    return value;
  }

  // x.y is x['y'] unless it is called.
  void member() {
    ++at_;
    const std::string name = word();
    if (at_ < source_.size() && source_[at_] == '(') {
      add(".");
      add(name);
      return;
    }
    add("[");
    add("'" + name);
    add("]");
  }

  std::string_view source_;
  std::size_t at_ = 0;
  bool plain_ = true;
  std::vector<std::string> parts_;
};

void trim_end(std::string& text, std::string_view blanks) { text.erase(text.find_last_not_of(blanks) + 1); }

}  // namespace

std::string with_generation_blocks(const KnownChatTemplate& known, std::string_view default_system) {
  std::string jinja(known.jinja);
  for (const auto& [name, plain, marked] : written_answers)
    if (name == known.name) replace_first(jinja, plain, marked);
  replace_first(jinja, "SYSTEM", escaped(default_system));
  return jinja;
}

std::string canonical_jinja(std::string_view source) {
  if (source.ends_with('\n')) source.remove_suffix(1);
  if (source.find(jinja_separator) != std::string_view::npos) return std::string(source);
  std::string result, data;  // data: literal text since the last tag
  bool eat_all = false, eat_newline = false, line_starts = true;
  const auto take_data = [&](std::string_view piece) {
    if (eat_all)
      while (!piece.empty() && is_blank(piece.front())) piece.remove_prefix(1);
    else if (eat_newline && piece.starts_with('\n')) {
      piece.remove_prefix(1);
      line_starts = true;
    }
    eat_all = eat_newline = false;
    data = piece;
  };
  std::size_t at = 0;
  for (;;) {
    std::size_t open = source.find('{', at);
    while (open != std::string_view::npos &&
           (open + 1 >= source.size() || std::string_view("{%#").find(source[open + 1]) == std::string_view::npos))
      open = source.find('{', open + 1);
    line_starts = at == 0;
    take_data(source.substr(at, open == std::string_view::npos ? open : open - at));
    if (open == std::string_view::npos) break;
    const char kind = source[open + 1];
    const std::size_t close = source.find(kind == '{' ? "}}" : kind == '%' ? "%}" : "#}", open + 2);
    if (close == std::string_view::npos) return std::string(source);  // no template at all: equal to nothing known
    std::string_view body = source.substr(open + 2, close - open - 2);
    const std::size_t newline = data.rfind('\n'), line = newline == std::string::npos ? 0 : newline + 1;
    const bool alone = (line > 0 || line_starts) && data.find_first_not_of(" \t", line) == std::string::npos;
    if (body.starts_with('-')) {
      trim_end(data, " \t\r\n");
      body.remove_prefix(1);
    } else if (kind != '{' && alone) {
      data.erase(line);
    }
    if (body.ends_with('-')) {
      eat_all = true;
      body.remove_suffix(1);
    } else {
      eat_newline = kind != '{';
    }
    if (!data.empty()) result += "text" + std::string(1, separator) + data + separator;
    data.clear();
    if (kind != '#') {
      Expression expression(body);
      result += std::string(1, kind) + separator + expression.canonical();
      if (!expression.plain()) return std::string(source);
    }
    at = close + 2;
  }
  if (!data.empty()) result += "text" + std::string(1, separator) + data + separator;
  return result;
}

}  // namespace zero
