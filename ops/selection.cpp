#include "ops/selection.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "base/error.hpp"
#include "base/log.hpp"
#include "device/cpu_features.hpp"
#include "ops/form_listing.hpp"

namespace assay::ops {
namespace {

/// Form names, best first; empty ones end the list.
using Order = std::array<std::string_view, 4>;

struct DefaultOrder {
  std::string_view op;
  Order fp32;
  Order bf16;
};

// What runs without a selection made from receipts: by instruction set, fastest first. Only matmul and the
// convolutions have forms of their own at bf16; the rest is fp32 in both.
constexpr Order kVectorFirst = {"vector", "reference"};
// Measured in gated_delta_rule/README.md: the shortest chunk is the fastest at every length there.
constexpr Order kGatedDeltaRule = {"chunk_16", "vector", "reference"};
constexpr Order kBf16Products = {"amx_bf16", "avx512_bf16", "vector_bf16", "reference_bf16"};
constexpr auto kDefaultOrders = std::to_array<DefaultOrder>({
    {"matmul", kVectorFirst, kBf16Products},
    {"gated_delta_rule", kGatedDeltaRule, kGatedDeltaRule},
    {"causal_conv1d", kVectorFirst, kVectorFirst},
    {"attention", kVectorFirst, kVectorFirst},
    {"rms_norm", kVectorFirst, kVectorFirst},
    {"rope", kVectorFirst, kVectorFirst},
    {"swiglu", kVectorFirst, kVectorFirst},
    {"embed", kVectorFirst, kVectorFirst},
    {"conv1d", kVectorFirst, kBf16Products},
    {"conv_transpose1d", kVectorFirst, kBf16Products},
    {"snake", kVectorFirst, kVectorFirst},
});

/// visit(op name, its forms, its place in the selection) for each op.
template <class AnySelection, class Visit>
void for_each_op(AnySelection& selection, const Visit& visit) {
  visit("matmul", matmul_forms(), selection.matmul);
  visit("gated_delta_rule", gated_delta_rule_forms(), selection.gated_delta_rule);
  visit("causal_conv1d", causal_conv1d_forms(), selection.causal_conv1d);
  visit("attention", attention_forms(), selection.attention);
  visit("rms_norm", rms_norm_forms(), selection.rms_norm);
  visit("rope", rope_forms(), selection.rope);
  visit("swiglu", swiglu_forms(), selection.swiglu);
  visit("embed", embed_forms(), selection.embed);
  visit("conv1d", conv1d_forms(), selection.conv1d);
  visit("conv_transpose1d", conv_transpose1d_forms(), selection.conv_transpose1d);
  visit("snake", snake_forms(), selection.snake);
}

const Order& default_order(std::string_view op, Precision precision) {
  const auto* row = std::ranges::find(kDefaultOrders, op, &DefaultOrder::op);
  if (row == kDefaultOrders.end()) {
    throw Error(ErrorKind::internal, {.where = std::string(op), .found = "no default order of forms"});
  }
  return precision == Precision::bf16 ? row->bf16 : row->fp32;
}

template <class Form>
const Form* find_form(std::span<const Form> forms, std::string_view name) {
  const auto found = std::ranges::find_if(forms, [&](const Form& form) { return form.info.name == name; });
  return found == forms.end() ? nullptr : &*found;
}

bool supports(device::CpuFeatureSet machine, const FormInfo& info) {
  return (machine & info.needs) == info.needs;
}

/// The first of the default order that this build has and the machine supports, or null.
template <class Form>
const Form* default_form(std::string_view op, std::span<const Form> forms, Precision precision,
                         device::CpuFeatureSet machine) {
  for (const std::string_view name : default_order(op, precision)) {
    const Form* form = find_form(forms, name);
    if (form != nullptr && supports(machine, form->info)) return form;
  }
  return nullptr;
}

std::string flag(std::string_view op, std::string_view name) {
  return "--form " + std::string(op) + "=" + std::string(name);
}

template <class Form>
std::string form_names(std::span<const Form> forms) {
  std::string names;
  for (const Form& form : forms) names += (names.empty() ? "" : ", ") + std::string(form.info.name);
  return names;
}

std::string lacking(const FormInfo& info, device::CpuFeatureSet machine) {
  const std::string needs = "needs " + device::describe(info.needs & ~machine);
  if (machine != device::cpu_features()) return needs + ", which the device lacks";
  return needs + ", which this processor (" + device::cpu_model_name() + ") lacks";
}

template <class Form>
const Form* overriding_form(std::string_view op, std::span<const Form> forms, std::string_view name,
                            Precision precision) {
  const Form* form = find_form(forms, name);
  if (form == nullptr) {
    throw Error(ErrorKind::invalid_argument, {.where = flag(op, name),
                                              .found = "no such form of " + std::string(op),
                                              .expected = "one of " + form_names(forms)});
  }
  if (!device::cpu_supports(form->info.needs)) {
    throw Error(ErrorKind::unsupported, {.where = flag(op, name),
                                         .found = lacking(form->info, device::cpu_features()),
                                         .advice = "see `assay forms --why`"});
  }
  if (has_forms_by_precision(op) && form->info.precision != precision) {
    throw Error(ErrorKind::mismatch,
                {.where = flag(op, name),
                 .found = "a form of precision " + std::string(to_string(form->info.precision)),
                 .expected = "the run's precision, " + std::string(to_string(precision)),
                 .advice = "choose another form or --precision"});
  }
  return form;
}

void check_op_names(const FormOverrides& overrides) {
  for (const auto& [op, name] : overrides) {
    if (std::ranges::find(kDefaultOrders, op, &DefaultOrder::op) != kDefaultOrders.end()) continue;
    std::string names;
    for (const DefaultOrder& row : kDefaultOrders) names += (names.empty() ? "" : ", ") + std::string(row.op);
    throw Error(ErrorKind::invalid_argument,
                {.where = flag(op, name), .found = "no such op", .expected = "one of " + names});
  }
}

Selection default_selection(Precision precision, device::CpuFeatureSet machine) {
  Selection selection;
  for_each_op(selection, [&](std::string_view op, auto forms, auto& selected) {
    selected = default_form(op, forms, precision, machine);
  });
  return selection;
}

std::string reason(const FormListing& listing, device::CpuFeatureSet machine) {
  if (!listing.supported) return lacking(listing.info, machine);
  if (listing.selected_fp32 || listing.selected_bf16) {
    return "first of the default order that runs here";
  }
  const auto listed = [&](Precision precision) {
    return std::ranges::count(default_order(listing.op, precision), listing.info.name) != 0;
  };
  if (listed(Precision::fp32) || listed(Precision::bf16)) {
    return "an earlier form of the default order runs here";
  }
  return "not in the default order; only by " + flag(listing.op, listing.info.name);
}

/// A run that fell back to reference forms unasked is slow for a reason that its user cannot see.
void warn_of_slow_defaults(const Selection& selection, const FormOverrides& overrides) {
  for_each_op(selection, [&](std::string_view op, auto /*forms*/, const auto* selected) {
    if (overrides.contains(op) || !selected->info.name.starts_with("reference")) return;
    log().warn("{}={} is slow and no faster form runs here; see `assay forms --why`", op,
               selected->info.name);
  });
}

}  // namespace

bool has_forms_by_precision(std::string_view op) {
  const auto* row = std::ranges::find(kDefaultOrders, op, &DefaultOrder::op);
  return row != kDefaultOrders.end() && row->fp32 != row->bf16;
}

Selection select_forms(Precision precision, const FormOverrides& overrides) {
  check_op_names(overrides);
  Selection selection = default_selection(precision, device::cpu_features());
  for_each_op(selection, [&](std::string_view op, auto forms, auto& selected) {
    const auto chosen = overrides.find(op);
    if (chosen != overrides.end()) selected = overriding_form(op, forms, chosen->second, precision);
    if (selected != nullptr) return;
    throw Error(ErrorKind::unsupported, {.where = std::string(op),
                                         .found = "no form of the default order at " +
                                                  std::string(to_string(precision)) + " runs here",
                                         .advice = "see `assay forms --why`"});
  });
  warn_of_slow_defaults(selection, overrides);
  return selection;
}

std::vector<FormListing> list_forms() {
  return list_forms_of(device::cpu_features());
}

std::vector<FormListing> list_forms_of(device::CpuFeatureSet machine) {
  std::vector<FormListing> listings;
  const Selection fp32 = default_selection(Precision::fp32, machine);
  Selection bf16 = default_selection(Precision::bf16, machine);
  const auto is_selected = [](const Selection& selection, std::string_view wanted_op, std::string_view name) {
    bool found = false;
    for_each_op(selection, [&](std::string_view op, auto /*forms*/, const auto* selected) {
      found = found || (op == wanted_op && selected != nullptr && selected->info.name == name);
    });
    return found;
  };
  for_each_op(bf16, [&](std::string_view op, auto forms, auto& /*selected*/) {
    for (const auto& form : forms) {
      FormListing listing{.op = op,
                          .info = form.info,
                          .supported = supports(machine, form.info),
                          .selected_fp32 = is_selected(fp32, op, form.info.name),
                          .selected_bf16 = is_selected(bf16, op, form.info.name),
                          .why = {}};
      listing.why = reason(listing, machine);
      listings.push_back(std::move(listing));
    }
  });
  return listings;
}

std::string describe(const Selection& selection) {
  std::string text;
  for_each_op(selection, [&](std::string_view op, auto /*forms*/, const auto* selected) {
    if (!text.empty()) text += ' ';
    text += std::string(op) + '=' + (selected != nullptr ? std::string(selected->info.name) : "none");
  });
  return text;
}

}  // namespace assay::ops
