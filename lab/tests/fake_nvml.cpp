// Stands for libnvidia-ml.so.1 in tests: one GPU, with the functions and types of nvml.h that
// lab/window/nvml.cpp calls.
#include <cstring>

// NOLINTBEGIN(readability-identifier-naming): the names are the library's.
extern "C" {

struct FakeProcess {
  unsigned int pid;
  unsigned long long used_memory;
  unsigned int gpu_instance;
  unsigned int compute_instance;
};

int nvmlInit_v2() {
  return 0;
}
int nvmlShutdown() {
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned int* count) {
  *count = 1;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** device) {
  static int gpu;
  *device = &gpu;
  return index == 0 ? 0 : 2;
}
int nvmlDeviceGetName(void*, char* name, unsigned int length) {
  std::strncpy(name, "Example GPU", length);
  return 0;
}
int nvmlDeviceGetClockInfo(void*, int clock, unsigned int* megahertz) {
  *megahertz = clock == 1 ? 1410 : 2619;
  return 0;
}
int nvmlDeviceGetMaxClockInfo(void*, int, unsigned int* megahertz) {
  *megahertz = 1980;
  return 0;
}
int nvmlDeviceGetTemperature(void*, int, unsigned int* celsius) {
  *celsius = 61;
  return 0;
}
// An older driver: the reasons have their earlier name.
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  *reasons = 0x44;
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned int* count, FakeProcess* processes) {
  if (*count < 2) return 7;
  *count = 2;
  processes[0] = {1, 1 << 20, 0, 0};
  processes[1] = {4194305, 1 << 20, 0, 0};  // above the largest pid that Linux gives
  return 0;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
