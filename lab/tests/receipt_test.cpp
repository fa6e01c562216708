#include "lab/receipt/receipt.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "base/file.hpp"
#include "base/tests/expect_error.hpp"
#include "base/tests/temporary_directory.hpp"
#include "lab/receipt/machine.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

Json example() {
  return make_receipt(ReceiptKind::gate, {{"model", "abc"}}, {{"pass", true}, {"max", 0.25}});
}

TEST(Receipt, ComesBackAsItWasWritten) {
  const TemporaryDirectory folder;
  const Receipt written = write_receipt(folder.path() / "receipts", example());
  const Receipt read = read_receipt(written.file);
  EXPECT_EQ(read.sha256, written.sha256);
  EXPECT_EQ(read.kind, ReceiptKind::gate);
  EXPECT_EQ(read.body, written.body);
  EXPECT_EQ(read.body["device"]["id"], this_machine().id);
  EXPECT_EQ(read.body["program"]["sha256"].get<std::string>().size(), 64u);
}

TEST(Receipt, TheSameBytesTwiceAreOneFile) {
  const TemporaryDirectory folder;
  const Json body = example();
  write_receipt(folder.path(), body);
  write_receipt(folder.path(), body);
  EXPECT_EQ(read_receipts(folder.path()).size(), 1u);
}

TEST(Receipt, AnyEditedByteIsNoticed) {
  const TemporaryDirectory folder;
  const Receipt written = write_receipt(folder.path(), example());
  const std::string text = read_text_file(written.file);
  for (std::size_t i = 0; i < text.size(); i += 7) {
    std::string edited = text;
    edited[i] = static_cast<char>(edited[i] ^ 1);
    write_file_atomically(written.file, edited);
    expect_error(ErrorKind::mismatch, written.file.string(), [&] { read_receipt(written.file); });
  }
  write_file_atomically(written.file, text.substr(0, text.size() - 1));
  expect_error(ErrorKind::mismatch, "SHA-256", [&] { read_receipts(folder.path()); });
}

TEST(Receipt, FieldsAreThoseOfTheSchemaAndNoOthers) {
  const TemporaryDirectory folder;
  const Json whole = example();
  for (const auto& [field, value] : whole.items()) {
    Json body = example();
    body.erase(field);
    expect_error(ErrorKind::malformed, field, [&] { write_receipt(folder.path(), body); });
  }
  Json more = example();
  more["comment"] = "fast";
  expect_error(ErrorKind::malformed, "8 fields", [&] { write_receipt(folder.path(), more); });
  Json other = example();
  other["schema"] = "assay.receipt/2";
  expect_error(ErrorKind::unsupported, "assay.receipt/2", [&] { write_receipt(folder.path(), other); });
  Json kind = example();
  kind["kind"] = "rumour";
  expect_error(ErrorKind::malformed, "rumour", [&] { write_receipt(folder.path(), kind); });
}

TEST(Receipt, HoldsFiniteNumbersOnly) {
  for (const double value : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    expect_error(ErrorKind::non_finite, "/result/times/1", [&] {
      make_receipt(ReceiptKind::window, Json::object(), {{"times", {1.0, value}}});
    });
  }
}

TEST(Receipt, AFolderThatIsNotThereHoldsNone) {
  const TemporaryDirectory folder;
  EXPECT_TRUE(read_receipts(folder.path() / "none").empty());
}

TEST(Machine, KnowsItself) {
  const Machine machine = this_machine();
  EXPECT_GE(machine.cores, 1u);
  EXPECT_GT(machine.memory_bytes, std::size_t{1} << 20);
  EXPECT_EQ(machine.id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string::npos);
  EXPECT_EQ(machine.id, this_machine().id);
}

}  // namespace
}  // namespace assay::lab
