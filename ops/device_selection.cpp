#include "ops/device_selection.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/log.hpp"
#include "base/utf8.hpp"
#include "device/cpu_id.hpp"

namespace assay::ops {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kSchema = "assay.selection/1";
constexpr std::size_t kLargest = std::size_t{4} << 20;
constexpr const char* kAdvice = "make it anew with `assay lab select`, or set ASSAY_SELECTION=off";

/// The fields of one object, each known by name and type.
class Fields {
 public:
  Fields(const Json& object, std::string where, std::initializer_list<std::string_view> names)
      : object_(object), where_(std::move(where)) {
    if (!object.is_object()) refuse(where_, "no JSON object");
    for (const auto& [name, value] : object.items()) {
      if (std::ranges::find(names, name) == names.end())
        refuse(where_, "an unknown field " + in_quotes(name));
    }
    for (const std::string_view name : names) {
      if (!object.contains(name)) refuse(where_, "no field '" + std::string(name) + "'");
    }
  }

  std::string text(const char* name) const {
    const Json& value = object_[name];
    if (!value.is_string()) refuse(where_ + ", " + name, "no text");
    return value.get<std::string>();
  }

  const Json& list(const char* name) const {
    const Json& value = object_[name];
    if (!value.is_array()) refuse(where_ + ", " + name, "no list");
    return value;
  }

  [[noreturn]] static void refuse(const std::string& where, std::string found) {
    throw Error(ErrorKind::malformed, {.where = where, .found = std::move(found), .advice = kAdvice});
  }

 private:
  const Json& object_;
  std::string where_;
};

Precision precision_of(const std::string& text, const std::string& where) {
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    if (text == to_string(precision)) return precision;
  }
  Fields::refuse(where, "precision " + in_quotes(text));
}

std::vector<JudgedForm> read_forms(const Json& list, const std::string& where) {
  std::vector<JudgedForm> forms;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string place = where + "[" + std::to_string(i) + "]";
    const Fields fields(list[i], place, {"op", "precision", "form", "why", "receipts"});
    for (const Json& receipt : fields.list("receipts")) {
      if (!receipt.is_string()) Fields::refuse(place + ", receipts", "something that is no SHA-256");
    }
    forms.push_back({.op = fields.text("op"),
                     .precision = precision_of(fields.text("precision"), place),
                     .form = fields.text("form"),
                     .why = fields.text("why")});
  }
  return forms;
}

/// An op twice at one precision, or a form that cannot run, must not be found out in the middle of a run.
void check_choices(const DeviceSelection& selection) {
  for (const JudgedForm& choice : selection.choices) {
    const auto same = [&](const JudgedForm& other) {
      return other.op == choice.op && other.precision == choice.precision;
    };
    if (std::ranges::count_if(selection.choices, same) != 1) {
      Fields::refuse(selection.file + ", choices", "two choices for " + in_quotes(choice.op) + " at " +
                                                       std::string(to_string(choice.precision)));
    }
    try {
      select_forms(choice.precision, {{choice.op, choice.form}});
    } catch (const Error& error) {
      throw Error(ErrorKind::mismatch,
                  {.where = selection.file + ", choices", .found = error.what(), .advice = kAdvice});
    }
  }
}

const JudgedForm* find(const std::vector<JudgedForm>& forms, std::string_view op, std::string_view form,
                       Precision precision) {
  const auto found = std::ranges::find_if(forms, [&](const JudgedForm& judged) {
    return judged.op == op && judged.form == form && judged.precision == precision;
  });
  return found == forms.end() ? nullptr : &*found;
}

}  // namespace

FormOverrides DeviceSelection::complete(FormOverrides wanted, Precision precision) const {
  for (const JudgedForm& choice : choices) {
    if (choice.precision == precision) wanted.emplace(choice.op, choice.form);
  }
  return wanted;
}

const JudgedForm* DeviceSelection::choice(std::string_view op, std::string_view form,
                                          Precision precision) const {
  return find(choices, op, form, precision);
}

const JudgedForm* DeviceSelection::refusal(std::string_view op, std::string_view form,
                                           Precision precision) const {
  return find(refused, op, form, precision);
}

DeviceSelection read_device_selection(const std::filesystem::path& file) {
  const std::string where = file.string();
  const Json document = Json::parse(read_text_file(file, kLargest), nullptr, false);
  const Fields fields(document, where, {"schema", "device", "made", "choices", "refused"});
  if (fields.text("schema") != kSchema) Fields::refuse(where + ", schema", in_quotes(fields.text("schema")));
  DeviceSelection selection{.file = where,
                            .device = fields.text("device"),
                            .choices = read_forms(fields.list("choices"), where + ", choices"),
                            .refused = read_forms(fields.list("refused"), where + ", refused")};
  if (selection.device != device::cpu_id()) {
    throw Error(ErrorKind::mismatch, {.where = where + ", device",
                                      .found = in_quotes(selection.device),
                                      .expected = "this device, " + device::cpu_id(),
                                      .advice = kAdvice});
  }
  check_choices(selection);
  return selection;
}

std::optional<std::filesystem::path> find_device_selection() {
  if (const char* named = std::getenv("ASSAY_SELECTION"); named != nullptr && *named != '\0') {
    if (std::string_view(named) == "off") return std::nullopt;
    return named;
  }
  std::filesystem::path folder;
  if (const char* config = std::getenv("XDG_CONFIG_HOME"); config != nullptr && *config != '\0') {
    folder = config;
  } else if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    folder = std::filesystem::path(home) / ".config";
  } else {
    return std::nullopt;
  }
  std::filesystem::path file = folder / "assay" / "selection" / (device::cpu_id() + ".json");
  std::error_code unreadable;
  if (!std::filesystem::exists(file, unreadable)) return std::nullopt;
  return file;
}

FormOverrides with_device_selection(FormOverrides wanted, Precision precision) {
  const auto file = find_device_selection();
  if (!file) {
    log().info("no selection for this device ({}): the default order of forms decides", device::cpu_id());
    return wanted;
  }
  log().info("forms by {}", file->string());
  return read_device_selection(*file).complete(std::move(wanted), precision);
}

}  // namespace assay::ops
