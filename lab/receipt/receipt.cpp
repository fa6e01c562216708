#include "lab/receipt/receipt.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <span>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/path.hpp"
#include "base/sha256.hpp"
#include "base/writable_folder.hpp"
#include "formats/json.hpp"
#include "lab/receipt/build_info.hpp"
#include "lab/receipt/machine.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSchema = "assay.receipt/1";
constexpr std::array kKindNames{"gate",      "sweep",  "bisect",  "window",   "call-cost",
                                "footprint", "growth", "profile", "ceilings", "bench"};
constexpr std::array kFields{"schema", "kind", "made", "program", "device", "subject", "result"};
constexpr std::size_t kLargest = std::size_t{64} << 20;

void refuse_non_finite(const Json& value, const std::string& where) {
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    throw Error(ErrorKind::non_finite, {.where = "receipt, " + where,
                                        .found = "a number that is not finite",
                                        .expected = "finite numbers in a receipt"});
  }
  if (!value.is_structured()) return;
  for (const auto& [key, item] : value.items()) refuse_non_finite(item, where + "/" + key);
}

ReceiptKind kind_of(const Json& body, const std::string& where) {
  const std::string name = body["kind"].is_string() ? body["kind"].get<std::string>() : body["kind"].dump();
  const auto found = std::find(kKindNames.begin(), kKindNames.end(), name);
  if (found == kKindNames.end()) {
    throw Error(ErrorKind::malformed, {.where = where + ", kind",
                                       .found = fmt::format("'{}'", name),
                                       .expected = fmt::format("one of {}", fmt::join(kKindNames, ", "))});
  }
  return static_cast<ReceiptKind>(found - kKindNames.begin());
}

void check_fields(const Json& body, const std::string& where) {
  if (!body.is_object()) throw Error(ErrorKind::malformed, {.where = where, .found = "no JSON object"});
  for (const char* field : kFields) {
    if (!body.contains(field)) {
      throw Error(ErrorKind::malformed, {.where = where, .found = fmt::format("no field '{}'", field)});
    }
  }
  if (body.size() != kFields.size()) {
    throw Error(ErrorKind::malformed,
                {.where = where,
                 .found = fmt::format("{} fields", body.size()),
                 .expected = fmt::format("{} and no others", fmt::join(kFields, ", "))});
  }
  if (body["schema"] != kSchema) {
    throw Error(
        ErrorKind::unsupported,
        {.where = where + ", schema", .found = body["schema"].dump(), .expected = std::string(kSchema)});
  }
  for (const char* field : {"program", "device", "subject", "result"}) {
    if (!body[field].is_object()) {
      throw Error(ErrorKind::malformed, {.where = fmt::format("{}, {}", where, field), .found = "no object"});
    }
  }
  if (!body["made"].is_string()) {
    throw Error(ErrorKind::malformed, {.where = where + ", made",
                                       .found = body["made"].dump(),
                                       .expected = "a time such as 2026-01-31T12:00:00Z"});
  }
}

std::string sha256_of(std::string_view text) {
  return sha256_hex(std::as_bytes(std::span(text)));
}

const std::string& executable_sha256() {
  static const std::string kSha256 = sha256_hex(std::filesystem::path("/proc/self/exe"));
  return kSha256;
}

}  // namespace

std::string_view to_string(ReceiptKind kind) {
  return kKindNames[static_cast<std::size_t>(kind)];
}

Json make_receipt(ReceiptKind kind, Json subject, Json result) {
  const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  const BuildInfo build = build_info();
  Json body{{"schema", kSchema},
            {"kind", to_string(kind)},
            {"made", fmt::format("{:%Y-%m-%dT%H:%M:%S}Z", now)},
            {"program",
             {{"version", build.version},
              {"commit", build.commit},
              {"modified", build.modified},
              {"build", build.build},
              {"sha256", executable_sha256()}}},
            {"device", to_json(this_machine())},
            {"subject", std::move(subject)},
            {"result", std::move(result)}};
  refuse_non_finite(body, "");
  return body;
}

void check_receipt_folder(const std::filesystem::path& folder) {
  try {
    require_writable_folder(folder);
  } catch (const Error& error) {
    throw Error(error.kind(), {.where = "receipts in " + folder.string(),
                               .found = error.parts().found,
                               .expected = "a folder that receipts can be written into",
                               .advice = "nothing was run yet; give --receipts another folder"});
  }
}

Receipt write_receipt(const std::filesystem::path& folder, Json body) {
  check_fields(body, "receipt");
  const std::string text = body.dump(1) + "\n";
  Receipt receipt{.sha256 = sha256_of(text), .file = {}, .kind = kind_of(body, "receipt"), .body = {}};
  receipt.file = folder / (receipt.sha256 + ".json");
  receipt.body = std::move(body);
  make_directories(folder);
  write_file_atomically(receipt.file, text);
  return receipt;
}

Receipt read_receipt(const std::filesystem::path& file) {
  const std::string where = file.string();
  const std::string text = read_text_file(file, kLargest);
  const std::string sha256 = sha256_of(text);
  if (file.stem() != sha256) {
    throw Error(ErrorKind::mismatch, {.where = where,
                                      .found = "bytes with SHA-256 " + sha256,
                                      .expected = "those that the receipt is named by",
                                      .advice = "it was edited or damaged; restore it from the repository"});
  }
  formats::parse_json(text, where);  // strictly; but what it gives has no order
  Json body = Json::parse(text, nullptr, false);
  check_fields(body, where);
  const ReceiptKind kind = kind_of(body, where);
  return {.sha256 = sha256, .file = file, .kind = kind, .body = std::move(body)};
}

std::vector<Receipt> read_receipts(const std::filesystem::path& folder) {
  std::vector<Receipt> receipts;
  if (!is_directory_path(folder)) return receipts;
  for (const auto& file : list_directory(folder)) {
    if (file.extension() == ".json") receipts.push_back(read_receipt(file));
  }
  std::sort(receipts.begin(), receipts.end(), [](const Receipt& a, const Receipt& b) {
    return std::pair(a.body["made"].get<std::string>(), a.sha256) <
           std::pair(b.body["made"].get<std::string>(), b.sha256);
  });
  return receipts;
}

}  // namespace assay::lab
