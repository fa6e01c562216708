#include "formats/torch_zip.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/tests/support.hpp"

namespace assay::formats {
namespace {

using test::bytes_of;
using test::error_of;
using test::Pickle;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::filesystem::path kTorchData = ASSAY_TEST_DATA;

using Entries = std::vector<std::pair<std::string, std::string>>;

std::string archive(const std::string& pickle, Entries storages = {}) {
  Entries entries = {{"head/data.pkl", pickle}, {"head/byteorder", "little"}};
  for (auto& [key, contents] : storages) entries.emplace_back("head/data/" + key, contents);
  entries.emplace_back("head/version", "3\n");
  return test::zip_of(entries);
}

TorchValue parse(const std::string& file) {
  return parse_torch_file(bytes_of(file), "head.pt");
}
TorchValue load(const Pickle& pickle, Entries storages = {}) {
  return parse(archive(pickle.done(), std::move(storages)));
}
Error refused_zip(const std::string& file) {
  return error_of([&] { parse(file); });
}
Error refused_zip(const Pickle& pickle, Entries storages = {}) {
  return refused_zip(archive(pickle.done(), std::move(storages)));
}

const std::string kSix = test::raw<float>({0, 1, 2, 3, 4, 5});

TEST(TorchFile, ReadsTheFixturesHead) {
  const TorchValue head = read_torch_file(kTorchData / "kev-tiny-hybrid/run/head.pt");
  ASSERT_NE(head.dict(), nullptr);
  EXPECT_EQ(*head.find("base")->string(), "../base");
  EXPECT_TRUE(head.find("base_revision")->is_none());
  EXPECT_EQ(*head.find("lora")->integer(), 8);
  EXPECT_EQ(*head.find("option_isolation")->boolean(), false);
  EXPECT_EQ(*head.find("temperature")->number(), 1.37);
  EXPECT_EQ(*head.find("holdout")->list()->at(0).string(), "x");
  const TorchTensor* weight = head.find("head")->find("q.weight")->tensor();
  ASSERT_NE(weight, nullptr);
  EXPECT_THAT(weight->shape, ElementsAre(64, 256));
  EXPECT_EQ(weight->to_floats().size(), 64u * 256u);
  EXPECT_EQ(head.find("absent"), nullptr);
}

TEST(TorchFile, BuildsPlainData) {
  Pickle pickle;
  pickle.op("}(")
      .text("list")
      .op("](")
      .integer(-1)
      .number(2.5)
      .op("N\x88\x89\x65")
      .text("tuple")
      .op("K\x07M\x01\x02\x86");
  pickle.text("empty")
      .op(")")
      .text("neg")
      .op("J\xfe\xff\xff\xff")
      .text("line")
      .op("I12\n")
      .text("flag")
      .op("I01\n");
  pickle.text("long").op("L-5L\n").text("real").op("F1.25\n").op("u");
  const TorchValue value = load(pickle);
  const TorchValue::List& list = *value.find("list")->list();
  ASSERT_EQ(list.size(), 5u);
  EXPECT_EQ(*list[0].integer(), -1);
  EXPECT_EQ(*list[1].number(), 2.5);
  EXPECT_TRUE(list[2].is_none());
  EXPECT_EQ(*list[3].boolean(), true);
  EXPECT_EQ(*list[4].boolean(), false);
  EXPECT_EQ(*value.find("tuple")->list()->at(1).integer(), 513);
  EXPECT_TRUE(value.find("empty")->list()->empty());
  EXPECT_EQ(*value.find("neg")->integer(), -2);
  EXPECT_EQ(*value.find("line")->integer(), 12);
  EXPECT_EQ(*value.find("flag")->boolean(), true);
  EXPECT_EQ(*value.find("long")->integer(), -5);
  EXPECT_EQ(*value.find("real")->number(), 1.25);
}

TEST(TorchFile, ReadsLaterProtocols) {
  // Protocol 4: a frame, short strings, memoized values, a class by STACK_GLOBAL.
  const std::string body(
      "}\x94(\x8c\x01"
      "a\x94\x8c\x0b"
      "collections\x94\x8c\x0bOrderedDict\x94\x93\x94)R\x94\x8c\x01"
      "bh\x01u.",
      47);
  const std::uint64_t size = body.size();
  const std::string frame(reinterpret_cast<const char*>(&size), 8);
  const TorchValue value = parse(archive("\x80\x04\x95" + frame + body));
  EXPECT_NE(value.find("a")->dict(), nullptr);
  EXPECT_EQ(*value.find("b")->string(), "a");
}

TEST(TorchFile, SharedValuesAreSharedNotLost) {
  Pickle pickle;
  pickle.op("](").text("x").op("q\x05h\x05\x65");
  const TorchValue value = load(pickle);
  EXPECT_EQ(*value.list()->at(1).string(), "x");
}

TEST(TorchFile, ReadsAStateDictWithItsMetadata) {
  Pickle pickle;
  pickle.global("collections", "OrderedDict")
      .op(")R(")
      .text("w")
      .tensor("FloatStorage", "0", 6, 0, {2, 3}, {3, 1})
      .op("u");
  pickle.op("}").text("_metadata").global("collections", "OrderedDict").op(")Rsb");
  const TorchValue value = load(pickle, {{"0", kSix}});
  EXPECT_THAT(value.find("w")->tensor()->to_floats(), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(TorchFile, ReadsViewsByTheirStridesAndOffset) {
  const auto view = [](std::int64_t offset, const std::vector<std::int64_t>& shape,
                       const std::vector<std::int64_t>& strides) {
    Pickle pickle;
    pickle.tensor("FloatStorage", "0", 6, offset, shape, strides);
    return load(pickle, {{"0", kSix}}).tensor()->to_floats();
  };
  EXPECT_THAT(view(0, {3, 2}, {1, 3}), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(view(1, {2}, {3}), ElementsAre(1, 4));
  EXPECT_THAT(view(5, {}, {}), ElementsAre(5));
  EXPECT_THAT(view(0, {2, 0}, {3, 1}), ElementsAre());
  EXPECT_THAT(view(2, {3}, {0}), ElementsAre(2, 2, 2));
  EXPECT_THAT(view(0, {1, 6}, {1000000, 1}), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(TorchFile, ReadsEveryFloatingStorage) {
  const std::vector<std::pair<std::string, std::string>> kinds = {
      {"FloatStorage", test::raw<float>({1.5f, -2})},
      {"BFloat16Storage", test::bf16({1.5f, -2})},
      {"HalfStorage", test::f16({1.5f, -2})},
      {"DoubleStorage", test::raw<double>({1.5, -2})}};
  for (const auto& [type, bytes] : kinds) {
    Pickle pickle;
    pickle.tensor(type, "0", 2, 0, {2}, {1});
    EXPECT_THAT(load(pickle, {{"0", bytes}}).tensor()->to_floats(), ElementsAre(1.5f, -2.0f)) << type;
  }
  Pickle integers;
  integers.tensor("LongStorage", "0", 1, 0, {1}, {1});
  const TorchValue value = load(integers, {{"0", std::string(8, '\0')}});
  EXPECT_EQ(value.tensor()->type, DType::i64);
  EXPECT_EQ(error_of([&] { value.tensor()->to_floats(); }).kind(), ErrorKind::unsupported);
}

TEST(TorchFile, ReadsParametersAndSizes) {
  Pickle pickle;
  pickle.op("(")
      .global("torch._utils", "_rebuild_parameter")
      .op("(")
      .tensor("FloatStorage", "0", 6, 0, {6}, {1});
  pickle.op("\x88")
      .global("collections", "OrderedDict")
      .op(")RtR")
      .global("torch", "Size")
      .numbers({2, 3})
      .op("\x85Rt");
  const TorchValue value = load(pickle, {{"0", kSix}});
  EXPECT_EQ(value.list()->at(0).tensor()->elements(), 6u);
  EXPECT_EQ(*value.list()->at(1).list()->at(1).integer(), 3);
}

TEST(TorchFile, CodeIsRefusedByName) {
  const std::vector<std::pair<std::string, std::string>> functions = {
      {"os", "system"},
      {"posix", "system"},
      {"builtins", "eval"},
      {"__builtin__", "exec"},
      {"subprocess", "Popen"},
      {"torch", "load"},
      {"torch._utils", "_rebuild_tensor"},
      {"torch", "UntypedStorage"},
      {"collections", "Counter"},
      {"torch.nn", "Linear"},
      {"numpy.core.multiarray", "_reconstruct"}};
  for (const auto& [module, name] : functions) {
    Pickle call;
    call.global(module, name).op("(").text("true").op("tR");
    const Error error = refused_zip(call);
    EXPECT_EQ(error.kind(), ErrorKind::unsupported) << name;
    EXPECT_THAT(error.what(), HasSubstr("head.pt: would run code: " + module + "." + name));
    Pickle later;
    later.text(module).text(name).op("\x93)R");
    EXPECT_THAT(refused_zip(later).what(), HasSubstr("would run code: " + module + "." + name));
  }
}

TEST(TorchFile, OperationsThatBuildObjectsAreRefused) {
  for (const char* op : {"o", "\x81", "\x92", "\x82\x01", "P0\n", "\x8f", "\x91"}) {
    Pickle pickle;
    pickle.op("N").op(op);
    EXPECT_EQ(refused_zip(pickle).kind(), ErrorKind::unsupported) << op;
  }
  Pickle instance;
  instance.op("(ios\nsystem\n");
  EXPECT_EQ(refused_zip(instance).kind(), ErrorKind::unsupported);
  Pickle state;
  state.op("]}b");
  EXPECT_THAT(refused_zip(state).what(), HasSubstr("would run code"));
}

TEST(TorchFile, CyclesAreRefused) {
  Pickle list;
  list.op("]q\x01h\x01\x61");
  EXPECT_THAT(refused_zip(list).what(), HasSubstr("contains itself"));
  Pickle dict;
  dict.op("}q\x01").text("self").op("h\x01s");
  EXPECT_THAT(refused_zip(dict).what(), HasSubstr("contains itself"));
  Pickle far;
  far.op("]q\x01]q\x02h\x01\x61\x61");
  EXPECT_THAT(refused_zip(far).what(), HasSubstr("contains itself"));
}

TEST(TorchFile, SharingThatGrowsWithoutBoundIsRefused) {
  Pickle laughs;
  laughs.op("](").text("ha").op("\x65q\x01");
  for (int level = 0; level < 50; ++level) laughs.op("](h\x01h\x01h\x01h\x01\x65q\x01");
  EXPECT_EQ(refused_zip(laughs).kind(), ErrorKind::malformed);
  Pickle strings;
  strings.op("](").text(std::string(1 << 20, 'x')).op("q\x01");
  for (int i = 0; i < 100; ++i) strings.op("h\x01");
  EXPECT_EQ(refused_zip(strings.op("\x65")).kind(), ErrorKind::malformed);
}

TEST(TorchFile, CopiesOfAContainerAreCounted) {
  // A long list q0, the tuple (q0,) as q2, and a function called on it again and again.
  const auto copies = [](const std::string& function, const std::string& item) {
    Pickle pickle;
    pickle.op(item)
        .op("q\x01"
            "0]q")
        .op(std::string(1, '\0'))
        .op("(");
    for (int i = 0; i < 50000; ++i) pickle.op("h\x01");
    pickle
        .op("\x65"
            "0h")
        .op(std::string(1, '\0'))
        .op("\x85q\x02"
            "0c")
        .op(function)
        .op("q\x03"
            "0](");
    for (int i = 0; i < 1000; ++i) pickle.op("h\x03h\x02R");
    return pickle.op("\x65");
  };
  EXPECT_THAT(refused_zip(copies("torch\nSize\n", "N")).what(),
              HasSubstr("too many values in its containers"));
  EXPECT_THAT(refused_zip(copies("collections\nOrderedDict\n", "NN\x86")).what(),
              HasSubstr("too many values in its containers"));
}

TEST(TorchFile, DeepNestingIsRefused) {
  Pickle deep;
  deep.op(std::string(100000, ']')).op(std::string(99999, 'a'));
  EXPECT_THAT(refused_zip(deep).what(), HasSubstr("64 levels"));
}

TEST(TorchFile, AbsurdCountsAreRefusedBeforeTheyAreAllocated) {
  const auto op_with = [](const std::string& op, std::size_t bytes) {
    Pickle pickle;
    return pickle.op(op).op(std::string(bytes, '\xff'));
  };
  EXPECT_EQ(refused_zip(op_with("X", 4)).kind(), ErrorKind::malformed);
  EXPECT_EQ(refused_zip(op_with("T", 4)).kind(), ErrorKind::malformed);
  EXPECT_EQ(refused_zip(op_with("\x8d", 8)).kind(), ErrorKind::malformed);
  EXPECT_EQ(refused_zip(op_with("\x8a", 256)).kind(), ErrorKind::malformed);
  EXPECT_EQ(refused_zip(Pickle().op(std::string((1 << 20) + 1, ']'))).kind(), ErrorKind::malformed);
  EXPECT_EQ(refused_zip(Pickle().op(std::string((1 << 20) + 1, '('))).kind(), ErrorKind::malformed);
  EXPECT_EQ(refused_zip(Pickle().op("N").op(std::string((1 << 20) + 1, '2'))).kind(), ErrorKind::malformed);
  // A memo index is a name, not a size.
  EXPECT_EQ(*load(Pickle().integer(3).op("r\xff\xff\xff\xff")).integer(), 3);
}

TEST(TorchFile, StackAndMemoMistakesAreRefused) {
  for (const char* ops :
       {"",        "0",     "t",        "1",    "2",     "a",         "e",
        "s",       "u",     "b",        "R",    "Q",     "\x85",      "h\x07",
        "g7\n",    "gx\n",  "q\x01",    "NN",   "(",     "(N",        "(a",
        "]]N\x65", "NNa",   "}NNe",     "}(Nu", "}](Nu", "}]Ns",      "](NNu",
        "NNR",     "NQ",    ")Q",       "I\n",  "Ix\n",  "Fx\n",      "L99999999999999999999L\n",
        "K",       "M\x01", "G1234567", "I5",   "cos",   "\x80\x06N", "\x95",
        "NN\x93"}) {
    const Error error = refused_zip(Pickle().op(ops));
    EXPECT_EQ(error.kind(), ErrorKind::malformed) << ops << ": " << error.what();
  }
}

TEST(TorchFile, AKeyTwiceIsRefused) {
  EXPECT_THAT(refused_zip(Pickle().op("}(").text("a").integer(1).text("a").integer(2).op("u")).what(),
              HasSubstr("the key 'a' twice"));
}

TEST(TorchFile, ViewsThatLeaveTheirStorageAreRefused) {
  const std::vector<std::tuple<std::int64_t, std::vector<std::int64_t>, std::vector<std::int64_t>>> views = {
      {1, {6}, {1}},
      {0, {7}, {1}},
      {6, {}, {}},
      {0, {2, 3}, {4, 1}},
      {0, {2}, {6}},
      {std::int64_t{1} << 62, {1}, {1}},
      {0, {std::int64_t{1} << 62}, {0}},
      {0, {1 << 20, 1 << 20}, {0, 0}},
      {0, {7}, {0}},
      {0, {2}, {std::int64_t{1} << 62}},
      {0, {3, 3}, {std::int64_t{1} << 62, std::int64_t{1} << 62}},
      {-1, {1}, {1}},
      {0, {-1}, {1}},
      {0, {2}, {-1}},
      {0, {2}, {1, 1}},
      {0, std::vector<std::int64_t>(40, 1), std::vector<std::int64_t>(40, 1)}};
  for (const auto& [offset, shape, strides] : views) {
    Pickle pickle;
    pickle.tensor("FloatStorage", "0", 6, offset, shape, strides);
    const Error error = refused_zip(pickle, {{"0", kSix}});
    EXPECT_EQ(error.kind(), ErrorKind::malformed) << error.what();
  }
}

TEST(TorchFile, StoragesOfAnotherSizeOrNotThereAreNamed) {
  Pickle pickle;
  pickle.tensor("FloatStorage", "0", 6, 0, {6}, {1});
  EXPECT_THAT(refused_zip(pickle, {{"0", kSix + "x"}}).what(),
              HasSubstr("storage '0': 25 bytes; expected 24"));
  EXPECT_EQ(refused_zip(pickle, {{"1", kSix}}).kind(), ErrorKind::missing);
  Pickle huge;
  huge.tensor("FloatStorage", "0", std::int64_t{1} << 62, 0, {6}, {1});
  EXPECT_EQ(refused_zip(huge, {{"0", kSix}}).kind(), ErrorKind::malformed);
  Pickle negative;
  negative.tensor("FloatStorage", "0", -1, 0, {6}, {1});
  EXPECT_EQ(refused_zip(negative, {{"0", kSix}}).kind(), ErrorKind::malformed);
}

TEST(TorchFile, NonFiniteValuesAreNamed) {
  Pickle pickle;
  pickle.tensor("FloatStorage", "0", 2, 0, {2}, {1});
  const TorchValue value = load(pickle, {{"0", test::raw<float>({1, NAN})}});
  const Error error = error_of([&] { value.tensor()->to_floats(); });
  EXPECT_EQ(error.kind(), ErrorKind::non_finite);
  EXPECT_THAT(error.what(), HasSubstr("head.pt: storage '0'"));
}

TEST(TorchFile, BigEndianAndLegacyFilesAreUnsupported) {
  const std::string big =
      test::zip_of({{"head/data.pkl", Pickle().integer(1).done()}, {"head/byteorder", "big"}});
  EXPECT_EQ(refused_zip(big).kind(), ErrorKind::unsupported);
  EXPECT_THAT(refused_zip(big).what(), HasSubstr("big-endian"));
  const Error legacy = refused_zip(Pickle().integer(1).done());
  EXPECT_EQ(legacy.kind(), ErrorKind::unsupported);
  EXPECT_THAT(legacy.what(), HasSubstr("before 1.6"));
}

TEST(TorchFile, AnArchiveWithoutOnePickleIsRefused) {
  EXPECT_EQ(refused_zip(test::zip_of({{"head/version", "3"}})).kind(), ErrorKind::malformed);
  const std::string pickle = Pickle().integer(1).done();
  EXPECT_EQ(refused_zip(test::zip_of({{"a/data.pkl", pickle}, {"b/data.pkl", pickle}})).kind(),
            ErrorKind::malformed);
  EXPECT_EQ(refused_zip("PK").kind(), ErrorKind::malformed);
  EXPECT_EQ(refused_zip("").kind(), ErrorKind::malformed);
}

TEST(TorchFile, CompressedEntriesAreReadWithinABound) {
  const std::string file = test::zip_of({{"head/data.pkl", Pickle().integer(7).done()}}, true);
  EXPECT_EQ(*parse(file).integer(), 7);
  constexpr std::size_t kLarge = std::size_t{65} << 20;
  Pickle pickle;
  pickle.tensor("ByteStorage", "0", kLarge, 0, {1}, {1});
  const std::string bomb =
      test::zip_of({{"head/data.pkl", pickle.done()}, {"head/data/0", std::string(kLarge, '\0')}}, true);
  ASSERT_LT(bomb.size(), std::size_t{1} << 20);
  EXPECT_THAT(refused_zip(bomb).what(), HasSubstr("exceed 64 MiB"));
}

TEST(TorchFile, AFileCutAtAnyByteIsRefused) {
  Pickle pickle;
  pickle.tensor("FloatStorage", "0", 6, 0, {6}, {1});
  const std::string file = archive(pickle.done(), {{"0", kSix}});
  for (std::size_t size = 0; size < file.size(); ++size) refused_zip(file.substr(0, size));
}

TEST(TorchFile, APickleCutAtAnyByteIsRefused) {
  Pickle pickle;
  pickle.op("}(").text("w").tensor("FloatStorage", "0", 6, 0, {6}, {1}).op("u");
  const std::string whole = pickle.done();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(refused_zip(archive(whole.substr(0, size), {{"0", kSix}})).kind(), ErrorKind::malformed)
        << size;
  }
  EXPECT_EQ(refused_zip(archive(whole + "x", {{"0", kSix}})).kind(), ErrorKind::malformed);
}

TEST(TorchFile, AnyByteOfThePickleChangedIsReadOrRefusedCleanly) {
  Pickle pickle;
  pickle.op("}(").text("w").tensor("FloatStorage", "0", 6, 0, {6}, {1}).op("u");
  const std::string whole = pickle.done();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char with : {'\0', '\x7f', '\xff', '(', 'R', 'b', 'h', '.'}) {
      std::string changed = whole;
      changed[at] = with;
      try {
        const TorchValue value = parse(archive(changed, {{"0", kSix}}));
        if (const TorchValue* tensor = value.find("w"); tensor != nullptr && tensor->tensor() != nullptr)
          tensor->tensor()->to_floats();
      } catch (const Error& error) {
        EXPECT_NE(error.kind(), ErrorKind::internal) << error.what();
      }
    }
  }
}

TEST(TorchFile, ADamagedStorageIsFoundByItsChecksum) {
  std::string file = read_text_file(kTorchData / "kev-tiny-hybrid/run/head.pt");
  const std::size_t at = file.size() / 2;
  file[at] = static_cast<char>(file[at] ^ 1);
  EXPECT_EQ(refused_zip(file).kind(), ErrorKind::malformed);
}

}  // namespace
}  // namespace assay::formats
