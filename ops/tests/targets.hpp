#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstdint>

namespace assay::ops {

/// Calls `body` once for each instruction set that Highway both generated and finds here (AVX-512, AVX2,
/// SSE4, … or NEON), with run-time dispatch held to it. Not while another thread runs a vector form.
template <class Body>
void for_each_target(const Body& body) {
  struct Restore {
    ~Restore() { hwy::SetSupportedTargetsForTest(0); }
  } restore;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const testing::ScopedTrace trace(__FILE__, __LINE__, hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    body();
  }
}

}  // namespace assay::ops
