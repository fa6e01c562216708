#include "text/tokenizer_json.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <new>
#include <unordered_map>
#include <utility>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "text/vocabulary.hpp"

namespace assay::text {
namespace {

namespace dom = simdjson::dom;

constexpr std::size_t kMaxJsonBytes = std::size_t{512} << 20;
constexpr std::size_t kMaxJsonDepth = 32;

/// A value of the file and its path in it, for messages.
struct Field {
  dom::element value;
  std::string path;
  const std::string& origin;

  std::string where() const { return origin + ": " + path; }

  std::string shown() const {
    if (value.is_object() || value.is_array()) return value.is_object() ? "an object" : "a list";
    return value.is_string() ? in_quotes(string()) : simdjson::minify(value);
  }

  [[noreturn]] void refuse(ErrorKind kind, std::string found, std::string expected) const {
    throw Error(kind, {.where = where(),
                       .found = std::move(found),
                       .expected = std::move(expected),
                       .advice = kind == ErrorKind::unsupported
                                     ? "only tokenizers of the Qwen2, Qwen3 and Qwen3.5 kind can be loaded"
                                     : ""});
  }
  [[noreturn]] void malformed(std::string expected) const {
    refuse(ErrorKind::malformed, shown(), std::move(expected));
  }
  [[noreturn]] void unsupported(std::string expected) const {
    refuse(ErrorKind::unsupported, shown(), std::move(expected));
  }

  dom::object object() const {
    if (!value.is_object()) malformed("an object");
    return value.get_object().value_unsafe();
  }
  dom::array list() const {
    if (!value.is_array()) malformed("a list");
    return value.get_array().value_unsafe();
  }
  std::string_view string() const {
    if (!value.is_string()) malformed("a string");
    return value.get_string().value_unsafe();
  }
  bool boolean() const {
    if (!value.is_bool()) malformed("true or false");
    return value.get_bool().value_unsafe();
  }
  std::int32_t id() const {
    std::int64_t number = -1;
    if (!value.is_int64() || value.get_int64().get(number) != simdjson::SUCCESS || number < 0 ||
        number >= kMaxTokenIds) {
      malformed(fmt::format("an id from 0 to {}", kMaxTokenIds - 1));
    }
    return static_cast<std::int32_t>(number);
  }
  void expect_string(std::string_view expected) const {
    if (!value.is_string() || string() != expected) unsupported(fmt::format("\"{}\"", expected));
  }
  void expect_false() const {
    if (boolean()) unsupported("false");
  }

  Field item(std::size_t index, dom::element element) const {
    return {element, fmt::format("{}[{}]", path, index), origin};
  }
};

/// The members of an object, each known by name and asked for; a name twice or one that is not known is an
/// error, since a field passed over could change ids.
class Members {
 public:
  Members(const Field& field, std::initializer_list<std::string_view> known) : field_(field) {
    for (const auto [key, value] : field.object()) {
      Field member{value, field.path.empty() ? std::string(key) : fmt::format("{}.{}", field.path, key),
                   field.origin};
      if (std::find(known.begin(), known.end(), key) == known.end()) {
        member.path = field.path.empty() ? in_quotes(key) : fmt::format("{}.{}", field.path, in_quotes(key));
        member.refuse(ErrorKind::unsupported, "a field that is not known", "");
      }
      if (find(key) != nullptr)
        member.refuse(ErrorKind::malformed, "the field a second time", "each field once");
      members_.emplace_back(key, std::move(member));
    }
  }

  /// Null where the member is missing.
  const Field* find(std::string_view key) const& {
    const auto found =
        std::find_if(members_.begin(), members_.end(), [&](const auto& m) { return m.first == key; });
    return found == members_.end() ? nullptr : &found->second;
  }
  /// Null where the member is missing or null.
  const Field* find_value(std::string_view key) const& {
    const Field* member = find(key);
    return member == nullptr || member->value.is_null() ? nullptr : member;
  }
  const Field& at(std::string_view key) const& {
    if (const Field* member = find(key)) return *member;
    throw Error(
        ErrorKind::malformed,
        {.where = field_.where(), .found = fmt::format("no field \"{}\"", key), .expected = "that field"});
  }

  // A member lives no longer than this.
  const Field* find(std::string_view key) && = delete;
  const Field* find_value(std::string_view key) && = delete;
  const Field& at(std::string_view key) && = delete;

 private:
  const Field& field_;
  std::vector<std::pair<std::string_view, Field>> members_;
};

/// The "type" of an object of which nothing else is known yet.
std::string_view type_of(const Field& field) {
  std::string_view type;
  if (field.object().at_key("type").get_string().get(type) != simdjson::SUCCESS)
    field.malformed("a \"type\"");
  return type;
}

[[noreturn]] void unsupported_type(const Field& field, std::string expected) {
  Field type{field.value, field.path + ".type", field.origin};
  type.refuse(ErrorKind::unsupported, in_quotes(type_of(field)), std::move(expected));
}

bool reads_nfc(const Field& normalizer) {
  const std::string_view type = type_of(normalizer);
  if (type == "NFC") {
    const Members only_the_type(normalizer, {"type"});
    return true;
  }
  if (type != "Sequence") unsupported_type(normalizer, "NFC, or no normalizer");
  const Members members(normalizer, {"type", "normalizers"});
  const Field& list = members.at("normalizers");
  bool nfc = false;
  std::size_t index = 0;
  for (const auto step : list.list()) nfc |= reads_nfc(list.item(index++, step));
  return nfc;
}

std::string read_split(const Field& split) {
  if (type_of(split) != "Split") unsupported_type(split, "Split");
  const Members members(split, {"type", "pattern", "behavior", "invert"});
  members.at("behavior").expect_string("Isolated");
  members.at("invert").expect_false();
  const Field& pattern = members.at("pattern");
  const Members kinds(pattern, {"Regex", "String"});
  const Field* expression = kinds.find("Regex");
  if (expression == nullptr) pattern.unsupported("a \"Regex\"");
  return std::string(expression->string());
}

void check_byte_level(const Field& step) {
  if (type_of(step) != "ByteLevel") unsupported_type(step, "ByteLevel");
  const Members members(step, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
  members.at("add_prefix_space").expect_false();
  // Left out it means true: a second pattern within the pieces of the first.
  members.at("use_regex").expect_false();
}

std::string read_pre_tokenizer(const Field& pre_tokenizer) {
  if (pre_tokenizer.value.is_null()) pre_tokenizer.unsupported("a Sequence of Split and ByteLevel");
  if (type_of(pre_tokenizer) != "Sequence")
    unsupported_type(pre_tokenizer, "a Sequence of Split and ByteLevel");
  const Members members(pre_tokenizer, {"type", "pretokenizers"});
  const Field& list = members.at("pretokenizers");
  const dom::array steps = list.list();
  if (steps.size() != 2) {
    list.refuse(ErrorKind::unsupported, fmt::format("{} steps", steps.size()), "Split, then ByteLevel");
  }
  check_byte_level(list.item(1, steps.at(1).value_unsafe()));
  return read_split(list.item(0, steps.at(0).value_unsafe()));
}

bool is_the_text(const dom::element& piece) {
  std::string_view sequence;
  return piece.at_key("Sequence").at_key("id").get_string().get(sequence) == simdjson::SUCCESS &&
         sequence == "A";
}

/// The tokens behind the text. Nothing else may be around it.
void read_template(const Field& field, TextTemplate text_template, TokenizerParts& parts) {
  const Members members(field, {"type", "single", "pair", "special_tokens"});
  const Field& single = members.at("single");
  const dom::array pieces = single.list();
  const bool may_append = text_template == TextTemplate::read;
  if (pieces.size() == 0 || !is_the_text(pieces.at(0).value_unsafe()) || (pieces.size() > 1 && !may_append)) {
    single.unsupported(may_append ? "the text first" : "the text alone, with nothing put around it");
  }
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    std::string_view token;
    if (pieces.at(i).at_key("SpecialToken").at_key("id").get_string().get(token) != simdjson::SUCCESS) {
      single.unsupported("special tokens behind the text");
    }
    parts.appended.emplace_back(token);
  }
}

void read_post_processor(const Field& field, TextTemplate text_template, TokenizerParts& parts) {
  const std::string_view type = type_of(field);
  if (type == "TemplateProcessing") return read_template(field, text_template, parts);
  // It moves offsets only.
  if (type == "ByteLevel") return;
  if (type != "Sequence") unsupported_type(field, "a post-processor that adds no tokens");
  const Members members(field, {"type", "processors"});
  const Field& list = members.at("processors");
  std::size_t index = 0;
  for (const auto step : list.list()) read_post_processor(list.item(index++, step), text_template, parts);
}

void read_vocabulary(const Field& vocab, TokenizerParts& parts) {
  const dom::object tokens = vocab.object();
  parts.vocabulary.reserve(tokens.size());
  for (const auto [text, id] : tokens) {
    if (parts.vocabulary.size() == kMaxTokenIds) {
      vocab.refuse(ErrorKind::malformed, "more tokens than ids", fmt::format("at most {}", kMaxTokenIds));
    }
    // The path is made for a message only: there are hundreds of thousands of these.
    std::int64_t number = -1;
    if (!id.is_int64() || id.get_int64().get(number) != simdjson::SUCCESS || number < 0 ||
        number >= kMaxTokenIds) {
      Field{id, fmt::format("{}[{}]", vocab.path, in_quotes(text)), vocab.origin}.id();
    }
    parts.vocabulary.emplace_back(text, static_cast<std::int32_t>(number));
  }
}

// "a b" in older files, ["a", "b"] since tokenizers 0.20.
bool read_merge(dom::element merge, TokenizerParts& parts) {
  std::string_view left, right;
  if (merge.is_string()) {
    const std::string_view line = merge.get_string().value_unsafe();
    if (line.starts_with("#version")) return true;
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) return false;
    left = line.substr(0, space);
    right = line.substr(space + 1);
    if (right.find(' ') != std::string_view::npos) return false;
  } else {
    dom::array pair;
    if (merge.get_array().get(pair) != simdjson::SUCCESS || pair.size() != 2) return false;
    if (pair.at(0).get_string().get(left) != simdjson::SUCCESS) return false;
    if (pair.at(1).get_string().get(right) != simdjson::SUCCESS) return false;
  }
  parts.merges.emplace_back(left, right);
  return true;
}

void read_merges(const Field& merges, TokenizerParts& parts) {
  std::size_t index = 0;
  bool pairs = false;
  const dom::array list = merges.list();
  parts.merges.reserve(list.size());
  for (const auto merge : list) {
    if (index == 0) pairs = merge.is_array();
    if (merge.is_array() != pairs || !read_merge(merge, parts)) {
      merges.item(index, merge).malformed(pairs ? "two tokens" : "two tokens with a space between");
    }
    ++index;
  }
}

void read_model(const Field& model, TokenizerParts& parts) {
  if (type_of(model) != "BPE") unsupported_type(model, "BPE");
  const Members members(
      model, {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
              "byte_fallback", "ignore_merges", "vocab", "merges"});
  if (const Field* dropout = members.find_value("dropout")) {
    double rate = 1;
    if (dropout->value.get_double().get(rate) != simdjson::SUCCESS || rate != 0)
      dropout->unsupported("no dropout");
  }
  if (const Field* token = members.find_value("unk_token")) token->unsupported("null");
  for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (const Field* affix = members.find_value(name)) affix->expect_string("");
  }
  for (const char* name : {"fuse_unk", "byte_fallback"}) {
    if (const Field* flag = members.find_value(name)) flag->expect_false();
  }
  if (const Field* flag = members.find_value("ignore_merges")) parts.ignore_merges = flag->boolean();
  read_vocabulary(members.at("vocab"), parts);
  read_merges(members.at("merges"), parts);
}

void read_added_tokens(const Field& list, TokenizerParts& parts) {
  std::size_t index = 0;
  for (const auto element : list.list()) {
    const Field field = list.item(index++, element);
    const Members members(field,
                          {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
    parts.added.push_back({.content = std::string(members.at("content").string()),
                           .id = members.at("id").id(),
                           .special = members.at("special").boolean(),
                           .normalized = members.at("normalized").boolean(),
                           .single_word = members.at("single_word").boolean(),
                           .lstrip = members.at("lstrip").boolean(),
                           .rstrip = members.at("rstrip").boolean()});
  }
}

// Hugging Face's reader gives a token that the vocabulary lacks the next free id whatever the file says, with
// a warning. Such a file has no one meaning.
void check_added_ids(const TokenizerParts& parts, const std::string& origin) {
  std::unordered_map<std::string_view, std::int32_t> known;
  for (const auto& added : parts.added) known.emplace(added.content, -1);
  for (const auto& [text, id] : parts.vocabulary) {
    if (const auto entry = known.find(text); entry != known.end()) entry->second = id;
  }
  auto next = static_cast<std::int32_t>(parts.vocabulary.size());
  for (std::size_t i = 0; i < parts.added.size(); ++i) {
    const auto& added = parts.added[i];
    const std::int32_t in_vocabulary = known[added.content];
    const std::int32_t expected = in_vocabulary >= 0 ? in_vocabulary : next++;
    if (added.id == expected) continue;
    throw Error(ErrorKind::malformed,
                {.where = fmt::format("{}: added_tokens[{}].id", origin, i),
                 .found = fmt::format("{} for {}", added.id, in_quotes(added.content)),
                 .expected = fmt::format("{}, the id that follows from the vocabulary", expected)});
  }
}

}  // namespace

TokenizerParts read_tokenizer_json(std::string_view json, const std::string& origin,
                                   TextTemplate text_template) {
  if (json.size() > kMaxJsonBytes) {
    throw Error(ErrorKind::malformed,
                {.where = origin,
                 .found = fmt::format("{} bytes", json.size()),
                 .expected = fmt::format("a tokenizer.json of at most {}", kMaxJsonBytes)});
  }
  dom::parser parser;
  dom::element root;
  auto failure = parser.allocate(std::max<std::size_t>(json.size(), 1), kMaxJsonDepth);
  if (failure == simdjson::SUCCESS) failure = parser.parse(json.data(), json.size(), true).get(root);
  if (failure == simdjson::MEMALLOC) throw std::bad_alloc();
  if (failure != simdjson::SUCCESS) {
    throw Error(ErrorKind::malformed,
                {.where = origin, .found = simdjson::error_message(failure), .expected = "a tokenizer.json"});
  }
  const Field file{root, "", origin};
  if (!root.is_object()) Field{root, "the file", origin}.malformed("an object");
  const Members members(file, {"version", "truncation", "padding", "added_tokens", "normalizer",
                               "pre_tokenizer", "post_processor", "decoder", "model"});
  if (const Field* version = members.find("version")) version->expect_string("1.0");
  for (const char* name : {"truncation", "padding"}) {
    if (const Field* setting = members.find_value(name)) setting->unsupported("null");
  }
  TokenizerParts parts;
  const Field* normalizer = members.find_value("normalizer");
  parts.nfc = normalizer != nullptr && reads_nfc(*normalizer);
  parts.split_pattern = read_pre_tokenizer(members.at("pre_tokenizer"));
  if (const Field* post_processor = members.find_value("post_processor"))
    read_post_processor(*post_processor, text_template, parts);
  if (const Field* decoder = members.find_value("decoder");
      decoder != nullptr && type_of(*decoder) != "ByteLevel") {
    unsupported_type(*decoder, "ByteLevel");
  }
  read_model(members.at("model"), parts);
  if (const Field* added = members.find_value("added_tokens")) read_added_tokens(*added, parts);
  check_added_ids(parts, origin);
  return parts;
}

}  // namespace assay::text
