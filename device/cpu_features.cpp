#include "device/cpu_features.hpp"

#include <array>
#include <fstream>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace assay::device {
namespace {

#if defined(__x86_64__)

struct Leaf {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Leaf cpuid(unsigned leaf, unsigned subleaf) {
  Leaf r;
  if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return {};
  return r;
}

bool bit(unsigned word, unsigned index) {
  return ((word >> index) & 1u) != 0;
}

std::uint64_t enabled_state() {
  unsigned low = 0;
  unsigned high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (std::uint64_t{high} << 32) | low;
}

bool request_tile_permission() {
  constexpr int kArchReqXcompPerm = 0x1023;
  constexpr int kXfeatureXtiledata = 18;
  return ::syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureXtiledata) == 0;
}

CpuFeatureSet detect() {
  const Leaf basic = cpuid(1, 0);
  if (!bit(basic.ecx, 27)) return 0;  // OSXSAVE: without it no wide registers are saved
  const std::uint64_t state = enabled_state();
  const bool ymm = (state & 0x6) == 0x6;
  const bool zmm = (state & 0xe6) == 0xe6;
  const bool tiles = (state & 0x60000) == 0x60000;
  const Leaf extended = cpuid(7, 0);
  const Leaf extended1 = cpuid(7, 1);
  CpuFeatureSet found = 0;
  const auto add = [&found](bool present, CpuFeature feature) {
    if (present) found |= static_cast<CpuFeatureSet>(feature);
  };
  add(ymm && bit(extended.ebx, 5) && bit(basic.ecx, 12), CpuFeature::avx2);
  const bool avx512 =
      zmm && bit(extended.ebx, 16) && bit(extended.ebx, 17) && bit(extended.ebx, 30) && bit(extended.ebx, 31);
  add(avx512, CpuFeature::avx512);
  add(avx512 && bit(extended1.eax, 5), CpuFeature::avx512_bf16);
  add(avx512 && tiles && bit(extended.edx, 22) && bit(extended.edx, 24) && request_tile_permission(),
      CpuFeature::amx_bf16);
  return found;
}

#elif defined(__aarch64__)
CpuFeatureSet detect() {
  return static_cast<CpuFeatureSet>(CpuFeature::neon);
}
#else
CpuFeatureSet detect() {
  return 0;
}
#endif

}  // namespace

CpuFeatureSet cpu_features() {
  static const CpuFeatureSet features = detect();
  return features;
}

bool cpu_supports(CpuFeatureSet needs) {
  return (cpu_features() & needs) == needs;
}

std::string describe(CpuFeatureSet features) {
  static constexpr std::array<std::pair<CpuFeature, const char*>, 5> kNames{{
      {CpuFeature::avx2, "avx2"},
      {CpuFeature::avx512, "avx512"},
      {CpuFeature::avx512_bf16, "avx512_bf16"},
      {CpuFeature::amx_bf16, "amx_bf16"},
      {CpuFeature::neon, "neon"},
  }};
  std::string text;
  for (const auto& [feature, name] : kNames) {
    if ((features & static_cast<CpuFeatureSet>(feature)) == 0) continue;
    if (!text.empty()) text += '+';
    text += name;
  }
  return text.empty() ? "any" : text;
}

std::string cpu_model_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name")) continue;
    const auto colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
#if defined(__aarch64__)
  return "aarch64";
#else
  return "unknown processor";
#endif
}

}  // namespace assay::device
