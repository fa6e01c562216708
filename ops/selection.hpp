#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ops/attention/attention.hpp"
#include "ops/causal_conv1d/causal_conv1d.hpp"
#include "ops/conv1d/conv1d.hpp"
#include "ops/conv_transpose1d/conv_transpose1d.hpp"
#include "ops/embed/embed.hpp"
#include "ops/gated_delta_rule/gated_delta_rule.hpp"
#include "ops/matmul/matmul.hpp"
#include "ops/rms_norm/rms_norm.hpp"
#include "ops/rope/rope.hpp"
#include "ops/snake/snake.hpp"
#include "ops/swiglu/swiglu.hpp"

namespace assay::ops {

/// The form that a run uses for each op.
struct Selection {
  const MatmulForm* matmul = nullptr;
  const GatedDeltaRuleForm* gated_delta_rule = nullptr;
  const CausalConv1dForm* causal_conv1d = nullptr;
  const AttentionForm* attention = nullptr;
  const RmsNormForm* rms_norm = nullptr;
  const RopeForm* rope = nullptr;
  const SwigluForm* swiglu = nullptr;
  const EmbedForm* embed = nullptr;
  const Conv1dForm* conv1d = nullptr;
  const ConvTranspose1dForm* conv_transpose1d = nullptr;
  const SnakeForm* snake = nullptr;
};

/// Op name to form name, as `--form op=name` gives them.
using FormOverrides = std::map<std::string, std::string, std::less<>>;

/// Per op the first form of the default order that this machine supports and whose precision is that of the
/// run; an override replaces it. The choice never depends on a call's shape: an answer's bits must not
/// depend on what else is in the batch.
/// Throws Error(invalid_argument) for an unknown op or form (listing those there are), Error(unsupported)
/// for a form whose instruction sets this machine lacks, Error(mismatch) for a form of the other precision
/// where the op has forms at both.
Selection select_forms(Precision precision, const FormOverrides& overrides = {});

/// Whether a run uses the op's forms of its own precision alone: matmul and the convolutions, the ops of
/// matrix products, have forms at both. Every other op is fp32 in every run.
bool has_forms_by_precision(std::string_view op);

/// A row of `assay forms`.
struct FormListing {
  std::string_view op;
  FormInfo info;
  bool supported = false;
  bool selected_fp32 = false;  ///< what a run at that precision uses here without overrides
  bool selected_bf16 = false;
  std::string why;  ///< one sentence: what decides whether a run here uses it
};
std::vector<FormListing> list_forms();

/// "op=name op=name …" of a selection, for receipts and logs.
std::string describe(const Selection& selection);

}  // namespace assay::ops
