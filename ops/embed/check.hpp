#pragma once

#include <cstddef>

#include "ops/embed/embed.hpp"

namespace assay::ops {

/// Refuses what the contract excludes, before any row is read; returns the bytes of a table row.
std::size_t check_embed(const EmbedArgs& args);

}  // namespace assay::ops
