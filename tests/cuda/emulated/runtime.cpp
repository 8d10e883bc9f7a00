// The calls of CUDA's runtime that LibTorch and the project make, over the emulated device. The program's own
// definitions come before libcudart's; a call that is missing here reaches libcudart, which finds no driver and says
// so.
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "tests/cuda/emulated/device.h"

using namespace zero::emulated;

namespace {

struct Event {
  std::shared_ptr<Mark> mark = std::make_shared<Mark>();
};

struct Graph {
  std::vector<Task> tasks;
};

thread_local int current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;

Event* event_of(cudaEvent_t event) { return reinterpret_cast<Event*>(event); }
Graph* graph_of(void* graph) { return static_cast<Graph*>(graph); }
int devices() { return static_cast<int>(environment("ZERO_EMULATED_GPUS", 4)); }

cudaError_t failed(cudaError_t error) {
  last_error = error;
  return error;
}

/// Pageable memory is read before the call returns, and written before it, too.
void copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  MemoryMap& map = MemoryMap::get();
  if (map.place_of(from) == Place::pageable) {
    std::vector<char> read(static_cast<const char*>(from), static_cast<const char*>(from) + bytes);
    Scheduler::get().enqueue(stream, {[to, read = std::move(read)] { std::memcpy(to, read.data(), read.size()); }, {}});
  } else {
    Scheduler::get().enqueue(stream, {[to, from, bytes] { std::memmove(to, from, bytes); }, {}});
  }
  if (map.place_of(to) == Place::pageable) Scheduler::get().synchronize(stream);
}

}  // namespace

extern "C" {

// Devices.
cudaError_t cudaGetDeviceCount(int* count) {
  return *count = devices(), *count > 0 ? cudaSuccess : failed(cudaErrorNoDevice);
}
cudaError_t cudaGetDevice(int* device) { return *device = current_device, cudaSuccess; }
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= devices()) return failed(cudaErrorInvalidDevice);
  return current_device = device, cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::memset(properties, 0, sizeof *properties);
  std::strcpy(properties->name, "Emulated GPU");
  properties->major = 9;
  properties->multiProcessorCount = 2;
  properties->totalGlobalMem = MemoryMap::total_bytes();
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->sharedMemPerBlock = 48 << 10;
  properties->sharedMemPerBlockOptin = 227 << 10;
  properties->sharedMemPerMultiprocessor = 228 << 10;
  properties->regsPerBlock = properties->regsPerMultiprocessor = 65536;
  properties->l2CacheSize = 50 << 20;
  properties->unifiedAddressing = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) { return *value = 0, cudaSuccess; }
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) { return *can = 0, cudaSuccess; }
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return *least = 0, *greatest = -5, cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return Scheduler::get().synchronize(), cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  return last_error = cudaSuccess, error;
}
cudaError_t cudaPeekAtLastError() { return last_error; }

// Memory. Freeing waits for the device, as CUDA does.
cudaError_t cudaMalloc(void** begin, size_t bytes) {
  *begin = MemoryMap::get().allocate(bytes, Place::device);
  return *begin ? cudaSuccess : failed(cudaErrorMemoryAllocation);
}
cudaError_t cudaFree(void* begin) {
  if (!begin) return cudaSuccess;
  Scheduler::get().synchronize();
  return MemoryMap::get().release(begin), cudaSuccess;
}
cudaError_t cudaHostAlloc(void** begin, size_t bytes, unsigned) {
  return *begin = MemoryMap::get().allocate(bytes, Place::pinned), cudaSuccess;
}
cudaError_t cudaFreeHost(void* begin) {
  return Scheduler::get().synchronize(), MemoryMap::get().release(begin), cudaSuccess;
}
cudaError_t cudaHostRegister(void* begin, size_t bytes, unsigned) {
  return MemoryMap::get().enrol(begin, bytes), cudaSuccess;
}
cudaError_t cudaHostUnregister(void* begin) {
  return Scheduler::get().synchronize(), MemoryMap::get().forget(begin), cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* left, size_t* total) {
  return *left = MemoryMap::get().free_bytes(), *total = MemoryMap::total_bytes(), cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  std::memset(attributes, 0, sizeof *attributes);
  const Place place = MemoryMap::get().place_of(address);
  attributes->type = place == Place::device   ? cudaMemoryTypeDevice
                     : place == Place::pinned ? cudaMemoryTypeHost
                                              : cudaMemoryTypeUnregistered;
  attributes->device = current_device;
  attributes->devicePointer = attributes->hostPointer = const_cast<void*>(address);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  if (bytes) copy(to, from, bytes, stream);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  if (bytes) copy(to, from, bytes, nullptr);
  return Scheduler::get().synchronize(nullptr), cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  MemoryMap::get().check_device(to, bytes, "cudaMemset");
  Scheduler::get().enqueue(stream, {[=] { std::memset(to, value, bytes); }, {}});
  return cudaSuccess;
}
cudaError_t cudaMemset(void* to, int value, size_t bytes) { return cudaMemsetAsync(to, value, bytes, nullptr); }

// Streams: all are non-blocking, and the default one is a stream like the others.
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  static std::atomic<std::uintptr_t> next{0x1000};
  return *stream = reinterpret_cast<cudaStream_t>(next += 0x10), cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return Scheduler::get().synchronize(stream), cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return Scheduler::get().synchronize(stream), cudaSuccess; }
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return Scheduler::get().query(stream) ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return Scheduler::get().wait(stream, event_of(event)->mark) ? cudaSuccess : failed(cudaErrorStreamCaptureIsolation);
}

// Events.
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return *event = reinterpret_cast<cudaEvent_t>(new Event), cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete event_of(event), cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return Scheduler::get().record(event_of(event)->mark, stream), cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return Scheduler::get().query(*event_of(event)->mark) ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return Scheduler::get().synchronize(*event_of(event)->mark), cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end) {
  return *ms = static_cast<float>((event_of(end)->mark->seconds - event_of(begin)->mark->seconds) * 1e3), cudaSuccess;
}

// Graphs: the work that a stream was given, in its order.
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  return Scheduler::get().begin_capture(stream), cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return *graph = reinterpret_cast<cudaGraph_t>(new Graph{Scheduler::get().end_capture(stream)}), cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return *status = Scheduler::get().captures(stream) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone,
         cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t*, const cudaGraphNode_t**, const cudaGraphEdgeData**, size_t*) {
  if (id) *id = 1;
  return cudaStreamIsCapturing(stream, status);
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*, size_t* count) {
  return *count = graph_of(graph)->tasks.size(), cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  return *exec = reinterpret_cast<cudaGraphExec_t>(new Graph(*graph_of(graph))), cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  for (const Task& task : graph_of(exec)->tasks) Scheduler::get().enqueue(stream, task);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return delete graph_of(graph), cudaSuccess; }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) { return delete graph_of(exec), cudaSuccess; }

// Compiled kernels cannot run: those of the project are built for the host (kernel_host.h), those of LibTorch are
// replaced (operations.cpp).
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t) {
  not_emulated("a compiled kernel was launched");
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t*, const void*, void**) {
  not_emulated("a compiled kernel was launched");
}

}  // extern "C"
