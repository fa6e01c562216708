#include "ops/embed/embed.hpp"

#include "base/tests/expect_error.hpp"
#include "ops/tests/op_testing.hpp"

namespace assay::ops {
namespace {

constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::f16, DType::q8_0};

/// A table of random bytes at an odd address, of exactly its size: any bits are values, and the sanitizer
/// sees a read past the end.
class Table {
 public:
  Table(DType type, std::size_t vocabulary, std::size_t dim)
      : type_(type), vocabulary_(vocabulary), dim_(dim), bytes_(1 + vocabulary * storage_bytes(type, dim)) {
    std::mt19937 random(static_cast<unsigned>(dim));
    for (std::byte& byte : bytes_) byte = static_cast<std::byte>(random() & 0xffu);
  }

  EmbedArgs arguments(std::span<const std::int32_t> ids, float* y, std::size_t stride) const {
    return {type_, bytes_.data() + 1, vocabulary_, dim_, ids, {y, stride}};
  }
  std::vector<float> row(std::int32_t id) const {
    std::vector<float> values(dim_);
    convert_to_float(type_, bytes_.data() + 1 + static_cast<std::size_t>(id) * storage_bytes(type_, dim_),
                     values);
    return values;
  }

 private:
  DType type_;
  std::size_t vocabulary_, dim_;
  std::vector<std::byte> bytes_;
};

TEST(Embed, EveryTypeAndWidthConvertsExactlyFromAnUnalignedTable) {
  Machine machine(2);
  const std::vector<std::int32_t> ids{4, 0, 6, 6, 3};
  for_each_form(embed_forms(), [&](const EmbedForm& form) {
    for (const DType type : kTypes) {
      for (const std::size_t dim : {0u, 1u, 3u, 4u, 5u, 8u, 9u, 15u, 16u, 17u, 32u, 33u, 64u, 160u, 1025u}) {
        if (type == DType::q8_0 && dim % 32 != 0) continue;
        const Table table(type, 7, dim);
        const std::size_t stride = dim + 3;
        Guarded y(ids.size() * stride);
        form.run(machine.context, table.arguments(ids, y.data(), stride));
        EXPECT_TRUE(y.intact());
        for (std::size_t t = 0; t < ids.size(); ++t) {
          ASSERT_TRUE(same_bits(y.span().subspan(t * stride, dim), table.row(ids[t])))
              << to_string(type) << dim;
          ASSERT_TRUE(std::ranges::all_of(y.span().subspan(t * stride + dim, 3),
                                          [](float value) { return value == Guarded::kSentinel; }));
        }
      }
    }
  });
}

TEST(Embed, EveryHalfPrecisionCodeConvertsExactly) {
  std::vector<std::uint16_t> codes(65536);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint16_t>(i);
  const auto* table = reinterpret_cast<const std::byte*>(codes.data());
  const std::vector<std::int32_t> ids{0};
  Machine machine(1);
  for_each_form(embed_forms(), [&](const EmbedForm& form) {
    for (const DType type : {DType::bf16, DType::f16}) {
      std::vector<float> y(codes.size());
      std::vector<float> expected(codes.size());
      convert_to_float(type, table, expected);
      form.run(machine.context, {type, table, 1, codes.size(), ids, {y.data(), y.size()}});
      EXPECT_TRUE(same_bits(y, expected)) << to_string(type);
    }
  });
}

TEST(Embed, AnIdOutsideTheTableIsRefusedBeforeAnythingIsWritten) {
  Machine machine(2);
  for_each_form(embed_forms(), [&](const EmbedForm& form) {
    for (const std::int32_t bad :
         {-1, 7, std::numeric_limits<std::int32_t>::max(), std::numeric_limits<std::int32_t>::min()}) {
      const Table table(DType::bf16, 7, 16);
      const std::vector<std::int32_t> ids{0, 1, bad};
      Guarded y(3 * 16);
      expect_error(ErrorKind::invalid_argument, "token 2: id " + std::to_string(bad),
                   [&] { form.run(machine.context, table.arguments(ids, y.data(), 16)); });
      EXPECT_TRUE(std::ranges::all_of(y.span(), [](float value) { return value == Guarded::kSentinel; }));
    }
  });
}

TEST(Embed, AnEmptyTableAndNoTokensAreServed) {
  Machine machine(2);
  for_each_form(embed_forms(), [&](const EmbedForm& form) {
    EXPECT_NO_THROW(form.run(machine.context, {DType::f32, nullptr, 0, 16, {}, {nullptr, 16}}));
  });
}

TEST(Embed, OtherTypesAndBrokenBlocksAreRefused) {
  Machine machine(1);
  for_each_form(embed_forms(), [&](const EmbedForm& form) {
    expect_error(ErrorKind::unsupported, "I32", [&] {
      form.run(machine.context, {DType::i32, nullptr, 1, 16, {}, {nullptr, 16}});
    });
    expect_error(ErrorKind::malformed, "multiple of 32", [&] {
      form.run(machine.context, {DType::q8_0, nullptr, 1, 33, {}, {nullptr, 33}});
    });
  });
}

}  // namespace
}  // namespace assay::ops
