#pragma once

#include <string>

#include "lab/json_reader.hpp"
#include "lab/receipt/receipt.hpp"

/// Shared by the entries' sources.
namespace assay::lab {

/// The body, field by field; errors name the receipt.
JsonReader reader_of(const Receipt& receipt);

/// "988c…" or "synthetic kev-tiny" of a cost receipt's {"identity", "name"} or {"shape", "seed"}.
std::string model_key(JsonReader model);

nlohmann::ordered_json gate_entry(JsonReader subject, JsonReader result);
nlohmann::ordered_json sweep_entry(JsonReader subject, JsonReader result,
                                   const std::set<std::string>& models);
nlohmann::ordered_json bisect_entry(JsonReader subject, JsonReader result);
nlohmann::ordered_json window_entry(JsonReader subject, JsonReader result,
                                    const std::set<std::string>& models);
nlohmann::ordered_json call_cost_entry(JsonReader subject, JsonReader result);
nlohmann::ordered_json footprint_entry(JsonReader subject, JsonReader result);
nlohmann::ordered_json growth_entry(JsonReader subject, JsonReader result);
nlohmann::ordered_json profile_entry(JsonReader subject, JsonReader result);
nlohmann::ordered_json ceilings_entry(JsonReader subject, JsonReader result);
nlohmann::ordered_json bench_entry(JsonReader subject, JsonReader result);

/// Takes fields as they are, or null where they are absent.
nlohmann::ordered_json take(JsonReader& from, std::initializer_list<const char*> fields);

}  // namespace assay::lab
