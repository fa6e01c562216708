#pragma once

#include <span>
#include <vector>

#include "decision/checkpoint.hpp"
#include "device/thread_pool.hpp"

namespace assay::decision {

/// Σ a_i·b_i in fp32 with an order that depends on the length alone: sixteen running sums, element i into sum
/// i mod 16, folded by halves. Sizes are equal.
float dot(std::span<const float> a, std::span<const float> b);

/// Logits of a question's options, temperature applied: (K·h_opt + k)·(Q·h_dec + q) / √dim / temperature, all
/// in fp32 (jaredpalmer/kev, kev/model.py, PointerHead.forward).
///
/// `decide` is [hidden], `options` is [count, hidden] row-major. The bits depend on neither the number of
/// threads nor the other options. Throws Error(mismatch) where a vector is not of the head's size,
/// Error(non_finite) for a logit that is not finite.
std::vector<float> option_logits(const PointerHead& head, std::span<const float> decide,
                                 std::span<const float> options, device::ThreadPool& threads);

}  // namespace assay::decision
