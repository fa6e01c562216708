#include "formats/pickle.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/error.hpp"

namespace assay::formats {
namespace {

// A checkpoint's metadata has some hundreds of values; these bounds leave room and keep memory small.
constexpr std::size_t kMaxPickleBytes = std::size_t{16} << 20;
constexpr std::size_t kMaxValues = std::size_t{1} << 17;
// Of all containers together: one whose items are copied from another costs memory that no byte of the pickle
// paid.
constexpr std::size_t kMaxItems = std::size_t{1} << 20;
constexpr std::size_t kMaxTreeBytes = std::size_t{64} << 20;
constexpr int kMaxValueDepth = 64;
constexpr std::size_t kMaxDimensions = 32;

// Names as in CPython's Lib/pickle.py.
enum Op : unsigned char {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kFloat = 'F',
  kInt = 'I',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kLong = 'L',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinPersistentId = 'Q',
  kReduce = 'R',
  kBinString = 'T',
  kShortBinString = 'U',
  kUnicode = 'V',
  kBinUnicode = 'X',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kDict = 'd',
  kEmptyDict = '}',
  kAppends = 'e',
  kGet = 'g',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kList = 'l',
  kEmptyList = ']',
  kPut = 'p',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kEmptyTuple = ')',
  kSetItems = 'u',
  kBinFloat = 'G',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95
};

using Id = std::uint32_t;

enum class Kind { none, boolean, integer, number, string, list, tuple, dict, function, storage, tensor };

/// The few functions and classes that a pickle may name.
enum class Function { ordered_dict, rebuild_tensor, rebuild_parameter, size, storage_type };

struct Node {
  Kind kind = Kind::none;
  std::int64_t integer = 0;  ///< also a boolean; a storage's element count
  double number = 0;
  std::string text{};       ///< also a storage's key
  std::vector<Id> items{};  ///< of a dict: key, value, key, value, …
  Function function = Function::size;
  DType type = DType::f32;  ///< of a storage type or storage
  std::shared_ptr<const TorchTensor> tensor = nullptr;
};

std::optional<DType> storage_type(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, DType>, 10> kTypes = {
      {{"FloatStorage", DType::f32},
       {"BFloat16Storage", DType::bf16},
       {"HalfStorage", DType::f16},
       {"DoubleStorage", DType::f64},
       {"LongStorage", DType::i64},
       {"IntStorage", DType::i32},
       {"ShortStorage", DType::i16},
       {"CharStorage", DType::i8},
       {"ByteStorage", DType::u8},
       {"BoolStorage", DType::boolean}}};
  for (const auto& [key, type] : kTypes) {
    if (key == name) return type;
  }
  return std::nullopt;
}

/// Copies a plain or shared node graph into a tree of values, refusing cycles, depth, and sharing that would
/// grow without bound once written out ("billion laughs").
class TreeBuilder {
 public:
  TreeBuilder(const std::vector<Node>& nodes, const std::string& origin) : nodes_(nodes), origin_(origin) {}

  TorchValue build(Id id, int depth = 0) {
    const Node& node = nodes_[id];
    spend(sizeof(TorchValue) + node.text.size());
    switch (node.kind) {
      case Kind::none:
        return TorchValue();
      case Kind::boolean:
        return TorchValue(node.integer != 0);
      case Kind::integer:
        return TorchValue(node.integer);
      case Kind::number:
        return TorchValue(node.number);
      case Kind::string:
        return TorchValue(node.text);
      case Kind::tensor:
        return TorchValue(*node.tensor);
      case Kind::list:
      case Kind::tuple:
      case Kind::dict:
        return build_container(id, depth);
      case Kind::function:
      case Kind::storage:
        break;
    }
    fail("a class or storage as a value", "plain data and tensors");
  }

 private:
  TorchValue build_container(Id id, int depth) {
    if (std::ranges::find(path_, id) != path_.end()) fail("a value that contains itself", "a tree");
    if (depth == kMaxValueDepth) fail("nesting of more than 64 levels", "a shallow tree");
    path_.push_back(id);
    TorchValue value =
        nodes_[id].kind == Kind::dict ? build_dict(nodes_[id], depth) : build_list(nodes_[id], depth);
    path_.pop_back();
    return value;
  }

  TorchValue build_list(const Node& node, int depth) {
    TorchValue::List list;
    for (const Id item : node.items) list.push_back(build(item, depth + 1));
    return TorchValue(std::move(list));
  }

  TorchValue build_dict(const Node& node, int depth) {
    TorchValue::Dict dict;
    std::set<std::string_view> keys;
    for (std::size_t i = 0; i < node.items.size(); i += 2) {
      const Node& key = nodes_[node.items[i]];
      if (key.kind == Kind::string && !keys.insert(key.text).second) {
        fail("the key '" + key.text.substr(0, 80) + "' twice", "one value a key");
      }
      TorchValue key_value = build(node.items[i], depth + 1);
      dict.items.push_back({std::move(key_value), build(node.items[i + 1], depth + 1)});
    }
    return TorchValue(std::move(dict));
  }

  void spend(std::size_t bytes) {
    spent_ += bytes;
    if (spent_ > kMaxTreeBytes)
      fail("values of more than 64 MiB once shared ones are written out", "a checkpoint");
  }

  [[noreturn]] void fail(std::string found, std::string expected) const {
    throw Error(ErrorKind::malformed,
                {.where = origin_, .found = std::move(found), .expected = std::move(expected)});
  }

  const std::vector<Node>& nodes_;
  const std::string& origin_;
  std::vector<Id> path_;
  std::size_t spent_ = 0;
};

class Machine {
 public:
  Machine(std::span<const std::byte> pickle, const std::string& origin, const StorageLoader& load_storage)
      : pickle_(pickle), origin_(origin), load_storage_(load_storage) {}

  TorchValue run() {
    while (true) {
      const auto op = static_cast<Op>(read_byte());
      if (op == kStop) break;
      if (!push_scalar(op) && !build_structure(op) && !use_memo(op) && !call(op)) refuse(op);
    }
    if (stack_.size() != 1 || !marks_.empty()) fail("values left over at its end", "one value");
    if (at_ != pickle_.size()) fail("bytes after its end", "one pickle");
    return TreeBuilder(nodes_, origin_).build(stack_.back());
  }

 private:
  // Reading

  std::string_view read_bytes(std::uint64_t count) {
    if (count > pickle_.size() - at_) fail("an end in the middle of an operation", "a whole pickle");
    const std::string_view bytes(reinterpret_cast<const char*>(pickle_.data()) + at_, count);
    at_ += count;
    return bytes;
  }

  unsigned char read_byte() { return static_cast<unsigned char>(read_bytes(1)[0]); }

  std::uint64_t read_unsigned(std::size_t bytes) {
    const std::string_view raw = read_bytes(bytes);
    std::uint64_t value = 0;
    std::memcpy(&value, raw.data(), bytes);
    return value;
  }

  std::string_view read_line() {
    const std::string_view rest(reinterpret_cast<const char*>(pickle_.data()) + at_, pickle_.size() - at_);
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) fail("an end in the middle of a line", "a whole pickle");
    at_ += end + 1;
    return rest.substr(0, end);
  }

  template <class T>
  T read_decimal(std::string_view line) {
    T value{};
    const auto [end, code] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (code != std::errc() || end != line.data() + line.size()) {
      fail("'" + std::string(line.substr(0, 40)) + "'", "a number of at most 64 bits");
    }
    return value;
  }

  /// Two's complement, little-endian, of any length that 64 bits hold.
  std::int64_t read_long(std::uint64_t bytes) {
    if (bytes > 8) fail("an integer of more than 64 bits", "one that fits");
    if (bytes == 0) return 0;
    std::uint64_t value = read_unsigned(bytes);
    const auto unused = static_cast<int>(64 - 8 * bytes);
    value <<= unused;
    return static_cast<std::int64_t>(value) >> unused;
  }

  double read_binary_float() {
    std::uint64_t bits = 0;
    for (const char c : read_bytes(8)) bits = bits << 8 | static_cast<unsigned char>(c);
    return std::bit_cast<double>(bits);
  }

  // The stack

  Id add(Node node) {
    if (nodes_.size() == kMaxValues) fail("too many values", "a checkpoint's metadata");
    items_ += node.items.size();
    if (items_ > kMaxItems) fail("too many values in its containers", "a checkpoint's metadata");
    nodes_.push_back(std::move(node));
    return static_cast<Id>(nodes_.size() - 1);
  }

  void push_id(Id id) {
    if (stack_.size() == kMaxValues) fail("too many values on the stack", "a checkpoint's metadata");
    stack_.push_back(id);
  }
  bool push(Node node) {
    push_id(add(std::move(node)));
    return true;
  }

  Id top() const {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back()))
      fail("an operation without its operand", "a value");
    return stack_.back();
  }

  Id pop() {
    const Id id = top();
    stack_.pop_back();
    return id;
  }

  std::vector<Id> pop_mark() {
    if (marks_.empty()) fail("an operation without its mark", "a mark");
    const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<Id> items(first, stack_.end());
    stack_.erase(first, stack_.end());
    marks_.pop_back();
    return items;
  }

  std::vector<Id> pop_some(std::size_t count) {
    std::vector<Id> items(count);
    for (std::size_t i = count; i-- > 0;) items[i] = pop();
    return items;
  }

  Node& top_of(Kind kind, const char* expected) {
    Node& node = nodes_[top()];
    if (node.kind != kind) fail("an operation on another kind of value", expected);
    return node;
  }

  // Operations, by group; each says whether the operation was of its group.

  bool push_scalar(Op op) {
    switch (op) {
      case kNone:
        return push({});
      case kNewTrue:
        return push({.kind = Kind::boolean, .integer = 1});
      case kNewFalse:
        return push({.kind = Kind::boolean, .integer = 0});
      case kBinInt:
        return push_integer(read_long(4));
      case kBinInt1:
        return push_integer(read_byte());
      case kBinInt2:
        return push_integer(static_cast<std::int64_t>(read_unsigned(2)));
      case kLong1:
        return push_integer(read_long(read_byte()));
      case kInt:
        return push_int_line(read_line());
      case kLong:
        return push_long_line(read_line());
      case kFloat:
        return push({.kind = Kind::number, .number = read_decimal<double>(read_line())});
      case kBinFloat:
        return push({.kind = Kind::number, .number = read_binary_float()});
      case kShortBinString:
      case kShortBinUnicode:
        return push_text(read_unsigned(1));
      case kBinString:
      case kBinUnicode:
        return push_text(read_unsigned(4));
      case kBinUnicode8:
        return push_text(read_unsigned(8));
      default:
        return false;
    }
  }

  bool push_integer(std::int64_t value) { return push({.kind = Kind::integer, .integer = value}); }

  bool push_text(std::uint64_t bytes) {
    return push({.kind = Kind::string, .text = std::string(read_bytes(bytes))});
  }

  /// Protocol 0 writes True and False as the integers 01 and 00.
  bool push_int_line(std::string_view line) {
    if (line == "00" || line == "01") return push({.kind = Kind::boolean, .integer = line == "01" ? 1 : 0});
    return push_integer(read_decimal<std::int64_t>(line));
  }

  bool push_long_line(std::string_view line) {
    if (line.ends_with('L')) line.remove_suffix(1);
    return push_integer(read_decimal<std::int64_t>(line));
  }

  bool build_structure(Op op) {
    switch (op) {
      case kMark:
        return mark();
      case kPop:
        return drop();
      case kPopMark:
        pop_mark();
        return true;
      case kDup:
        push_id(top());
        return true;
      case kEmptyList:
        return push({.kind = Kind::list});
      case kEmptyTuple:
        return push({.kind = Kind::tuple});
      case kEmptyDict:
        return push({.kind = Kind::dict});
      case kList:
        return push({.kind = Kind::list, .items = pop_mark()});
      case kTuple:
        return push({.kind = Kind::tuple, .items = pop_mark()});
      case kTuple1:
        return push({.kind = Kind::tuple, .items = pop_some(1)});
      case kTuple2:
        return push({.kind = Kind::tuple, .items = pop_some(2)});
      case kTuple3:
        return push({.kind = Kind::tuple, .items = pop_some(3)});
      case kDict:
        return make_dict(pop_mark());
      case kAppend:
        return append(pop_some(1));
      case kAppends:
        return append(pop_mark());
      case kSetItem:
        return set_items(pop_some(2));
      case kSetItems:
        return set_items(pop_mark());
      default:
        return false;
    }
  }

  bool mark() {
    if (marks_.size() == kMaxValues) fail("too many marks", "a checkpoint's metadata");
    marks_.push_back(stack_.size());
    return true;
  }

  bool drop() {
    const bool at_mark = !marks_.empty() && marks_.back() == stack_.size();
    at_mark ? marks_.pop_back() : static_cast<void>(pop());
    return true;
  }

  bool append(const std::vector<Id>& items) {
    std::vector<Id>& list = top_of(Kind::list, "a list to append to").items;
    list.insert(list.end(), items.begin(), items.end());
    return true;
  }

  void check_pairs(const std::vector<Id>& items) const {
    if (items.size() % 2 != 0) fail("a key without a value", "pairs");
    for (std::size_t i = 0; i < items.size(); i += 2) {
      const Kind kind = nodes_[items[i]].kind;
      const bool scalar = kind == Kind::string || kind == Kind::integer || kind == Kind::boolean ||
                          kind == Kind::none || kind == Kind::number;
      if (!scalar) fail("a dict key that is no scalar", "a string or a number");
    }
  }

  bool make_dict(std::vector<Id> items) {
    check_pairs(items);
    return push({.kind = Kind::dict, .items = std::move(items)});
  }

  bool set_items(const std::vector<Id>& items) {
    check_pairs(items);
    std::vector<Id>& dict = top_of(Kind::dict, "a dict to set items of").items;
    dict.insert(dict.end(), items.begin(), items.end());
    return true;
  }

  bool use_memo(Op op) {
    switch (op) {
      case kPut:
        memo_[read_decimal<std::uint32_t>(read_line())] = top();
        return true;
      case kBinPut:
        memo_[read_byte()] = top();
        return true;
      case kLongBinPut:
        memo_[static_cast<std::uint32_t>(read_unsigned(4))] = top();
        return true;
      case kMemoize:
        memo_[static_cast<std::uint32_t>(memo_.size())] = top();
        return true;
      case kGet:
        return recall(read_decimal<std::uint32_t>(read_line()));
      case kBinGet:
        return recall(read_byte());
      case kLongBinGet:
        return recall(static_cast<std::uint32_t>(read_unsigned(4)));
      default:
        return false;
    }
  }

  bool recall(std::uint32_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) fail("a reference to a value that was never kept", "one that was");
    push_id(found->second);
    return true;
  }

  bool call(Op op) {
    switch (op) {
      case kProto:
        return check_protocol(read_byte());
      case kFrame:
        read_unsigned(8);
        return true;
      case kGlobal: {
        const std::string_view module = read_line();
        return push_function(module, read_line());
      }
      case kStackGlobal:
        return stack_global();
      case kBinPersistentId:
        return push_storage(pop());
      case kReduce:
        return reduce();
      case kBuild:
        return build();
      default:
        return false;
    }
  }

  bool check_protocol(unsigned char protocol) {
    if (protocol > 5) fail("protocol " + std::to_string(protocol), "at most 5");
    return true;
  }

  bool push_function(std::string_view module, std::string_view name) {
    if (module == "collections" && name == "OrderedDict") return push_known(Function::ordered_dict);
    if (module == "torch._utils" && name == "_rebuild_tensor_v2") return push_known(Function::rebuild_tensor);
    if (module == "torch._utils" && name == "_rebuild_parameter")
      return push_known(Function::rebuild_parameter);
    if (module == "torch" && name == "Size") return push_known(Function::size);
    if (module == "torch") {
      if (const auto type = storage_type(name)) {
        return push({.kind = Kind::function, .function = Function::storage_type, .type = *type});
      }
    }
    const std::string full = std::string(module.substr(0, 80)) + "." + std::string(name.substr(0, 80));
    throw Error(ErrorKind::unsupported,
                {.where = origin_,
                 .found = "would run code: " + full,
                 .expected = "dicts, lists, scalars, strings and tensors only",
                 .advice = "do not load this file with other programs unless you trust it"});
  }

  bool push_known(Function function) { return push({.kind = Kind::function, .function = function}); }

  bool stack_global() {
    const Id name = pop();
    const Id module = pop();
    if (nodes_[name].kind != Kind::string || nodes_[module].kind != Kind::string) {
      fail("a class without a name", "strings");
    }
    return push_function(nodes_[module].text, nodes_[name].text);
  }

  /// torch/serialization.py, persistent_id: ("storage", type, key, location, element count).
  bool push_storage(Id id) {
    const Node& tuple = nodes_[id];
    if (tuple.kind != Kind::tuple || tuple.items.size() < 5)
      fail("a persistent id that is no storage", "a storage");
    const Node& tag = nodes_[tuple.items[0]];
    const Node& type = nodes_[tuple.items[1]];
    const Node& key = nodes_[tuple.items[2]];
    const Node& count = nodes_[tuple.items[4]];
    const bool well_formed = tag.kind == Kind::string && tag.text == "storage" &&
                             type.kind == Kind::function && type.function == Function::storage_type &&
                             key.kind == Kind::string && count.kind == Kind::integer && count.integer >= 0;
    if (!well_formed) fail("a persistent id that is no storage", "('storage', type, key, location, count)");
    return push({.kind = Kind::storage, .integer = count.integer, .text = key.text, .type = type.type});
  }

  bool reduce() {
    const Id arguments = pop();
    const Id callee = pop();
    if (nodes_[callee].kind != Kind::function || nodes_[arguments].kind != Kind::tuple) {
      fail("a call of something that is no function", "a known function and its arguments");
    }
    const std::vector<Id>& items = nodes_[arguments].items;
    switch (nodes_[callee].function) {
      case Function::ordered_dict:
        return make_ordered_dict(items);
      case Function::rebuild_tensor:
        return make_tensor(items);
      case Function::rebuild_parameter:
        return make_parameter(items);
      case Function::size:
        return make_size(items);
      case Function::storage_type:
        break;
    }
    fail("a storage outside the archive", "storages by persistent id");
  }

  /// OrderedDict() with its items set after, or OrderedDict([[key, value], …]) as Python 2 wrote it.
  bool make_ordered_dict(const std::vector<Id>& arguments) {
    std::vector<Id> items;
    if (arguments.size() > 1) fail("an OrderedDict with several arguments", "one list of pairs");
    if (arguments.size() == 1) {
      if (!is_sequence(nodes_[arguments[0]])) fail("an OrderedDict of no list", "a list of pairs");
      for (const Id pair : nodes_[arguments[0]].items) {
        if (!is_sequence(nodes_[pair]) || nodes_[pair].items.size() != 2)
          fail("an item that is no pair", "pairs");
        items.insert(items.end(), nodes_[pair].items.begin(), nodes_[pair].items.end());
      }
    }
    return make_dict(std::move(items));
  }

  static bool is_sequence(const Node& node) { return node.kind == Kind::list || node.kind == Kind::tuple; }

  /// torch/_utils.py: _rebuild_parameter(data, requires_grad, backward_hooks).
  bool make_parameter(const std::vector<Id>& arguments) {
    if (arguments.size() != 3 || nodes_[arguments[0]].kind != Kind::tensor)
      fail("a parameter of no tensor", "a tensor");
    push_id(arguments[0]);
    return true;
  }

  bool make_size(const std::vector<Id>& arguments) {
    if (arguments.size() != 1 || !is_sequence(nodes_[arguments[0]]))
      fail("a torch.Size of no list", "a tuple");
    return push({.kind = Kind::tuple, .items = nodes_[arguments[0]].items});
  }

  /// torch/_utils.py: _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks[,
  /// metadata]).
  bool make_tensor(const std::vector<Id>& arguments) {
    if (arguments.size() != 6 && arguments.size() != 7) fail("a tensor with other arguments", "six or seven");
    const Node& storage = nodes_[arguments[0]];
    if (storage.kind != Kind::storage) fail("a tensor of no storage", "a storage");
    auto tensor = std::make_shared<TorchTensor>();
    tensor->type = storage.type;
    tensor->origin = origin_ + ": storage '" + storage.text.substr(0, 80) + "'";
    tensor->offset = extent(arguments[1]);
    tensor->shape = extents(arguments[2]);
    tensor->strides = extents(arguments[3]);
    check_view(*tensor, static_cast<std::uint64_t>(storage.integer));
    tensor->storage =
        load_storage_(storage.text, storage_bytes(storage.type, static_cast<std::uint64_t>(storage.integer)));
    return push({.kind = Kind::tensor, .tensor = std::move(tensor)});
  }

  std::uint64_t extent(Id id) const {
    const Node& node = nodes_[id];
    if (node.kind != Kind::integer || node.integer < 0)
      fail("a tensor size that is no count", "whole numbers");
    return static_cast<std::uint64_t>(node.integer);
  }

  std::vector<std::uint64_t> extents(Id id) const {
    const Node& node = nodes_[id];
    if (!is_sequence(node) || node.items.size() > kMaxDimensions)
      fail("a tensor shape of no tuple", "a short tuple");
    std::vector<std::uint64_t> values;
    for (const Id item : node.items) values.push_back(extent(item));
    return values;
  }

  /// The last element that the view reaches lies in the storage, and the view has no more elements than it:
  /// an expanded view could otherwise stand for any amount of memory.
  void check_view(const TorchTensor& tensor, std::uint64_t stored) const {
    if (tensor.shape.size() != tensor.strides.size())
      fail("a shape and strides of different length", "one length");
    std::uint64_t count = 1;
    std::uint64_t last = tensor.offset;
    if (std::ranges::find(tensor.shape, 0u) != tensor.shape.end()) return;
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
      const std::uint64_t steps = tensor.shape[i] - 1;
      const bool fits = tensor.shape[i] <= stored && count <= stored / tensor.shape[i] &&
                        (steps == 0 || tensor.strides[i] <= stored / steps);
      if (!fits) fail_view(tensor, stored);
      count *= tensor.shape[i];
      last += steps * tensor.strides[i];
      if (last >= stored) fail_view(tensor, stored);
    }
    if (last >= stored) fail_view(tensor, stored);
  }

  [[noreturn]] void fail_view(const TorchTensor& tensor, std::uint64_t stored) const {
    throw Error(ErrorKind::malformed,
                {.where = tensor.origin,
                 .found = "a view that leaves or exceeds it",
                 .expected = "elements within the storage's " + std::to_string(stored)});
  }

  /// nn.Module.state_dict() returns an OrderedDict with an attribute, _metadata, that says nothing of the
  /// weights.
  bool build() {
    const Id state = pop();
    if (nodes_[state].kind != Kind::dict || nodes_[top()].kind != Kind::dict) {
      throw Error(ErrorKind::unsupported, {.where = origin_,
                                           .found = "would run code: an object's own state",
                                           .expected = "dicts, lists, scalars, strings and tensors only"});
    }
    return true;
  }

  [[noreturn]] void refuse(Op op) const {
    throw Error(ErrorKind::unsupported,
                {.where = origin_ + " at byte " + std::to_string(at_ - 1),
                 .found = "pickle operation " + std::to_string(static_cast<unsigned>(op)) +
                          ", which is not plain data",
                 .expected = "dicts, lists, scalars, strings and tensors only"});
  }

  [[noreturn]] void fail(std::string found, std::string expected) const {
    throw Error(ErrorKind::malformed, {.where = origin_ + " at byte " + std::to_string(at_),
                                       .found = std::move(found),
                                       .expected = std::move(expected)});
  }

  std::span<const std::byte> pickle_;
  const std::string& origin_;
  const StorageLoader& load_storage_;
  std::size_t at_ = 0;
  std::vector<Node> nodes_;
  std::size_t items_ = 0;  // of all nodes when they were made
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;  ///< stack heights
  std::unordered_map<std::uint32_t, Id> memo_;
};

}  // namespace

TorchValue unpickle(std::span<const std::byte> pickle, const std::string& origin,
                    const StorageLoader& load_storage) {
  if (pickle.size() > kMaxPickleBytes) {
    throw Error(ErrorKind::limit_exceeded, {.where = origin,
                                            .found = std::to_string(pickle.size()) + " bytes of pickle",
                                            .expected = "at most " + std::to_string(kMaxPickleBytes)});
  }
  return Machine(pickle, origin, load_storage).run();
}

}  // namespace assay::formats
